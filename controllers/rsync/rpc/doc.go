// Package rpc owns the gRPC services of EMCO's rsync: messages, clients and servers that are generated from the .proto
// files beside it. Package controllers/rsync/server serves them. Their names and numbers are EMCO's, and must never
// change.
package rpc
