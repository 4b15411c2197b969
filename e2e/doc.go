// Package e2e holds the end-to-end tests: the real programs, with the rights
// of their own ServiceAccounts, beside a real Kubernetes control plane with
// real controllers and an A&AI over HTTP. The demo is in a folder of its own.
package e2e
