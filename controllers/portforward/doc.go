// Package portforward sends HTTP requests to pods through the API server, as kubectl port-forward does. Packages commands
// and support call it, with the rights of the caller. It must never open a port on this machine, which other users could
// connect to.
package portforward
