// Package e2e holds the end-to-end tests: they run the real programs, with the
// rights of their own ServiceAccounts, against a real Kubernetes control plane
// with real controllers and an A&AI over HTTP. A new test belongs
//
//   - here, if it tests an application in three clusters: a hub and two edges;
//   - in charted, if it tests a release of the Helm chart in one cluster: its
//     installation, its upgrades, what its pods serve, and what it leaves behind;
//   - in chart, if the objects that the chart renders are enough;
//   - in rights, if it tests what an account may do and does;
//   - in observed, if it tests an alert or the dashboard;
//   - in newcomer, if it tests the README or a tutorial;
//   - in the suite of a controller, if an API server without controllers is enough.
//
// The demo prints the steps of package story, which a test of this package also runs.
package e2e
