// Package tracing sends traces to an OpenTelemetry collector: one span for each
// reconcile, and below it one for each request that it sends to A&AI, which
// learns of the trace by the header traceparent (https://www.w3.org/TR/trace-context/).
//
// Spans say what was looked at, how long it took and what came of it. There are
// no tokens, bodies and error messages in them: the log has these, under the same reconcileID.
package tracing
