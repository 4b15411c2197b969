// Package faults has a proxy that stands between a program and an API server
// and makes the network, or the API server, behave badly on demand: slow, away,
// refusing, or forgetful of what it was being watched for.
//
// Beside it, a wire passes bytes on without a look at them, so that TLS passes
// through, and can be made a black hole, reset, or half open.
//
// An etcd tap does the like for etcd: it counts what is read, and makes it slow.
//
// It is for tests. It listens on loopback only. The proxy speaks plain HTTP to its client
// and uses the credentials it was given towards the API server.
package faults
