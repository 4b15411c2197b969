// Package e2e holds the end-to-end tests: the real programs, with the rights
// of their own ServiceAccounts, beside a real Kubernetes control plane with
// real controllers and an A&AI over HTTP. A new test belongs
//
//   - here, if it is about an application in three clusters: a hub and two edges;
//   - into charted, if it is about a release of the Helm chart in one cluster: its
//     installation, its upgrades, what its pods serve, and what it leaves behind;
//   - into chart, if the objects that the chart makes are enough;
//   - into rights, if it is about what an account may do and does;
//   - into observed, if it is about an alert or the dashboard;
//   - into newcomer, if it is about what the README or a tutorial says;
//   - into the suite of a controller, if an API server without controllers is enough.
//
// The demo prints the steps of story, which is a test of this package too.
package e2e
