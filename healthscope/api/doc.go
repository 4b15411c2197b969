// Package api owns the status REST server: its routes, the formats of its responses, its streams and its OpenAPI document.
// Package controllers/app runs it, and provides the sources of scopes, contexts and bundles, and the Guard. It must never decide about
// health, never return a state that is not current without marking it, and never import a Kubernetes client or controller-runtime.
//
// openapi.json describes what the server serves. It is generated from the types and routes of this package, and the server serves it, too. A
// scope is a JSON document of its own format, not the Kubernetes object, or in text/plain one of the words "healthy", "unhealthy" and "unknown".
// Both show the status that the scope controller has written. Package status defines the status documents. Errors are problem documents
// (RFC 9457), whatever media type the caller accepts.
package api
