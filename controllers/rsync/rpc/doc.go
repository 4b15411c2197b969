// Package rpc has the gRPC services of EMCO's rsync: messages, clients and servers that are generated from the .proto files
// beside it. Their names and numbers are EMCO's, and cannot change.
package rpc
