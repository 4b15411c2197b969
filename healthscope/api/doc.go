// Package api is the status REST server: it shows people and programs that have
// no Kubernetes client whether their applications are healthy, and what is wrong
// when they are not.
//
// What it serves is described in openapi.json, which is generated from its types
// and its routes, and which it serves too. A scope is a
// JSON document of its own, not the Kubernetes object, or in text/plain the one
// word "healthy", "unhealthy" or "unknown". Errors are problem documents (RFC 9457) for any
// media type that the caller accepts.
//
// The package decides nothing about health: it shows what the scope controller
// wrote into status, and says so where nothing was written or where the writing
// is behind. Status documents are those of package status, made of what etcd holds
// and of what the hub sees. Where all that comes from, who callers are and what they
// may ask for is handed in. The package imports net/http, the API types, the core
// and apimachinery, and must not import a Kubernetes client or controller-runtime.
package api
