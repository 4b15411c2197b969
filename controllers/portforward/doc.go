// Package portforward asks pods by HTTP through the API server, as kubectl port-forward does, but with no port of this machine in
// between, which others could use. The caller's rights and its way to the API server are all that is needed.
package portforward
