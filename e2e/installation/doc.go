// Package installation runs HealthScope as a user would have it: the monitor,
// the controller and an A&AI as processes of their own, each with the rights
// of its own ServiceAccount, on a control plane that is already there. The
// demo and the end-to-end tests share it.
package installation
