// Package installation runs HealthScope as for a user, on an existing control plane: the monitor, the controller and an A&AI are
// separate processes. Monitor and controller have the rights of their own ServiceAccounts. The demo and the end-to-end tests
// share the package.
package installation
