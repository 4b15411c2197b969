package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// scopeName names the instrumentation, in every span.
const scopeName = "github.com/healthscope/healthscope/controllers/tracing"

// Attributes of the spans of reconciles.
const (
	// AttributeController is the name of the controller.
	AttributeController = attribute.Key("healthscope.controller")
	// AttributeNamespace, AttributeName and AttributeCluster name the object of the reconcile; those that do not apply are left out.
	AttributeNamespace = attribute.Key("k8s.namespace.name")
	AttributeName      = attribute.Key("healthscope.name")
	AttributeCluster   = attribute.Key("healthscope.cluster")
	// AttributeOutcome is success, requeue_after or error, as the label result of controller_runtime_reconcile_total.
	AttributeOutcome = attribute.Key("healthscope.outcome")
	// AttributeReconcileID is the reconcileID in log lines.
	AttributeReconcileID = attribute.Key("healthscope.reconcile_id")
	// AttributeTransaction is the X-TransactionId of a request to A&AI, by which its own logs know it.
	AttributeTransaction = attribute.Key("healthscope.aai.transaction_id")
)

// ObjectRef is the object of a reconcile. Fields that do not apply are empty.
type ObjectRef struct {
	Namespace, Name, Cluster string
}

// Object returns the subject of a request for an object of the own cluster.
func Object(r ctrl.Request) ObjectRef { return ObjectRef{Namespace: r.Namespace, Name: r.Name} }

// Reconciler returns a reconciler that creates a span for each call of next. It returns next if spans is nil.
func Reconciler[request comparable](spans trace.TracerProvider, name string, subject func(request) ObjectRef, next reconcile.TypedReconciler[request]) reconcile.TypedReconciler[request] {
	if spans == nil {
		return next
	}
	tracer := spans.Tracer(scopeName)
	return reconcile.TypedFunc[request](func(ctx context.Context, r request) (ctrl.Result, error) {
		ctx, span := tracer.Start(ctx, "reconcile "+name, trace.WithAttributes(describe(ctx, name, subject(r))...))
		defer span.End()
		failed := false
		result, err := next.Reconcile(context.WithValue(ctx, failedKey{}, &failed), r)
		outcome := "success"
		switch {
		case err != nil || failed:
			outcome = "error"
			span.SetStatus(codes.Error, "")
		case result.RequeueAfter > 0:
			outcome = "requeue_after"
		}
		span.SetAttributes(AttributeOutcome.String(outcome))
		return result, err
	})
}

// failedKey is the context key of the flag that MarkFailed sets.
type failedKey struct{}

// MarkFailed marks the reconcile that ctx belongs to as failed, although it returns no error because it knows when to retry. The
// reconciler must call it from its own goroutine.
func MarkFailed(ctx context.Context) {
	if failed, ok := ctx.Value(failedKey{}).(*bool); ok {
		*failed = true
	}
}

// describe returns the attributes that are known from the start.
func describe(ctx context.Context, name string, s ObjectRef) []attribute.KeyValue {
	attributes := []attribute.KeyValue{AttributeController.String(name), AttributeReconcileID.String(string(controller.ReconcileIDFromContext(ctx)))}
	for _, a := range []attribute.KeyValue{AttributeNamespace.String(s.Namespace), AttributeName.String(s.Name), AttributeCluster.String(s.Cluster)} {
		if a.Value.AsString() != "" {
			attributes = append(attributes, a)
		}
	}
	return attributes
}

// Transport returns a transport that creates a span for each request to A&AI, and passes the trace context to A&AI. It returns next
// if spans is nil.
func Transport(spans trace.TracerProvider, next http.RoundTripper) http.RoundTripper {
	if spans == nil {
		return next
	}
	return otelhttp.NewTransport(transactionTransport{next},
		otelhttp.WithTracerProvider(spans),
		otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithMeterProvider(noop.NewMeterProvider()),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return "A&AI " + r.Method }),
	)
}

// transactionTransport records the X-TransactionId of a request in its span.
type transactionTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transactionTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if id := r.Header.Get("X-TransactionId"); id != "" {
		trace.SpanFromContext(r.Context()).SetAttributes(AttributeTransaction.String(id))
	}
	return t.next.RoundTrip(r)
}
