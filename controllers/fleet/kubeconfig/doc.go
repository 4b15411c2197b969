// Package kubeconfig owns the way from the kubeconfig of a member cluster, which any user with the right to write a
// Secret may have written, to a client configuration that can be used without trust. Packages fleet, enrol and app call
// it. It must never connect to anything, and never return a configuration that runs a program, reads a file, or sends a
// request elsewhere.
//
// Parse refuses everything that would make the hub run a program, read a file,
// go through a proxy, talk without TLS or to a server that is not verified, or
// speak in the name of another. It connects to nothing. The configuration that
// it returns does not trust the server either: it follows no redirect, and
// bounds the time and size of what the server answers.
package kubeconfig
