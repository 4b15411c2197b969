// Package support gathers what somebody needs who is to find out what is wrong
// with an installation, and writes it into an archive that can be sent to them.
//
// Nothing secret is in it: the data of Secrets are not asked for, values of
// environment variables and annotations of others are left out, and of
// configuration files what the program knows is written anew. What looks like a
// password, token or key all the same is taken out of every file.
package support
