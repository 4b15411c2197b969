// Package portforward owns requests to pods by HTTP through the API server, as kubectl port-forward sends them. Packages
// commands and support call it, with the rights of the caller. It must never open a port of this machine, which others
// could use.
package portforward
