// Package api owns the status REST server: its routes, the forms of its answers, its streams and its OpenAPI document. Package
// controllers/app runs it, and hands in where scopes, contexts and bundles are read from, who callers are and what they may ask
// for. It must never decide about health, never answer with a state that is not known now without saying so, and never import a
// Kubernetes client or controller-runtime.
//
// What it serves is described in openapi.json, which is generated from its types and its routes, and which it serves too. A
// scope is a JSON document of its own, not the Kubernetes object, or in text/plain the one word "healthy", "unhealthy" or
// "unknown": what the scope controller wrote into status. Status documents are those of package status. Errors are problem
// documents (RFC 9457) for any media type that the caller accepts.
package api
