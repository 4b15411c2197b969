// Package rights compares the rights that ServiceAccounts have with the rights that they use, according to the API server's
// audit log. Its suite runs HealthScope as its chart installs it, and checks that both are the same: no request is refused, and
// no right is unused.
//
// The comparison is pure; only ReadAudit reads a file.
package rights
