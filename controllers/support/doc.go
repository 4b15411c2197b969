// Package support owns the archive with what is needed to find out what is wrong with an installation, which can be sent
// to others. The command support-bundle calls it. It must never put anything secret into it, and never change anything
// in a cluster.
//
// Nothing secret is in it: the data of Secrets are not asked for, values of
// environment variables and annotations of others are left out, and of
// configuration files only the fields that the program knows are written. What looks like a
// password, token or key all the same is taken out of every file.
package support
