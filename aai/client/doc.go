// Package client is the client of A&AI's REST API for k8s-resources and the operational-status of modules: typed calls,
// headers and encoding, errors classified by how to handle them, and a circuit breaker. Package sync and the preview of
// controllers/inventory call it. It must never remember what A&AI holds, never retry a request, which its callers decide, and
// never import any package of this project except package aai.
//
// It hides from its callers that A&AI answers with XML by default, with 404 for an empty list and with 400 for a timeout.
package client
