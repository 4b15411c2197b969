// Package faults has a proxy between a program and an API server. On demand, it delays requests, breaks connections, refuses
// requests, or expires watches.
//
// A wire forwards the bytes of connections without reading them, so that TLS passes through. On demand, it holds back all bytes,
// resets connections, or leaves them half open.
//
// An etcd tap counts reads from etcd, and delays messages to it.
//
// The package is for tests. Everything in it listens on loopback only. The proxy serves plain HTTP to its clients, and sends its
// configuration's credentials to the API server.
package faults
