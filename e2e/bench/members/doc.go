// Package members is the API servers of many workload clusters in one process,
// as far as a hub asks them: they list and watch ResourceBundleStates and the
// Lease of the monitor, over TLS, to whoever has the token, and say that they are
// ready. They watch as Kubernetes does, with resource versions, with bookmarks,
// and from the start when they are asked for that (sendInitialEvents). What is in
// them is put there by the program itself; nobody can write through the API.
//
// See https://kubernetes.io/docs/reference/using-api/api-concepts/ for the protocol.
package members
