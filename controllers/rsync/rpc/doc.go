// Package rpc owns the gRPC services of EMCO's rsync: messages, clients and servers that are generated from the .proto files in
// this directory. Package controllers/rsync/server serves them. Their names and numbers are those of EMCO, and must never change.
package rpc
