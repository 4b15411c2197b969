// Package client owns the REST interface of A&AI, for k8s-resources and the operational-status of modules: typed calls,
// headers and encoding, errors by what to do about them, and a circuit breaker. Package sync calls it, and the preview of
// controllers/inventory. It must never remember what A&AI holds, never repeat a request, which its callers decide, and never
// import anything of this project but package aai.
//
// Its callers need not know that A&AI answers XML by default, calls an empty list 404 and a timeout 400.
package client
