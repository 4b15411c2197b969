// Package tracing owns the traces that are sent to an OpenTelemetry collector: one span for each reconcile, and below it
// one for each request that it sends to A&AI, which learns of the trace by the header traceparent
// (https://www.w3.org/TR/trace-context/). Package app sets it up, and the controllers wrap their reconcilers in it. A
// span must never hold a token, a body or an error message.
//
// Spans hold the object, the duration and the outcome of a reconcile. The log has the messages, under the same reconcileID.
package tracing
