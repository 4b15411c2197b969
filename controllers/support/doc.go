// Package support writes an archive of the state of an installation, for troubleshooting, that users can send to others.
// The command support-bundle calls it. It must never put a secret into the archive, and never change anything in a
// cluster.
//
// It does not read the data of Secrets. It leaves out the values of environment variables, the annotations of other
// programs, and those fields of configuration files that HealthScope does not know. It redacts whatever else looks like a
// password, token or key in any file.
package support
