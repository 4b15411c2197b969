// Package kubeconfig makes a client configuration that is safe to use from the kubeconfig of a member cluster, which is
// not trusted: any user with the right to write a Secret may have written it. Packages fleet, enrol and app call it. It
// must never connect to anything, and never return a configuration that runs a program, reads a file, or sends a
// request to another server.
//
// Parse refuses a kubeconfig that would make the hub run a program, read a file,
// use a proxy, connect without TLS or to a server that is not verified, or
// impersonate another user. The configuration that it returns does not trust the
// server either: it follows no redirect, and limits the time and the size of the
// server's answers.
package kubeconfig
