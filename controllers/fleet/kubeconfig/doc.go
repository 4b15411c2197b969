// Package kubeconfig turns the kubeconfig of a member cluster, which whoever
// may write a Secret has written, into a client configuration that can be used
// without trust.
//
// Parse refuses everything that would make the hub run a program, read a file,
// go through a proxy, talk without TLS or to a server that is not verified, or
// speak in the name of another. It connects to nothing. The configuration that
// it returns does not trust the server either: it follows no redirect, and
// bounds the time and size of what the server answers.
package kubeconfig
