package tracing

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// exportTimeout is the deadline of sending one batch, repetitions included.
	exportTimeout = 10 * time.Second
	// flushTimeout bounds how long a stop waits for the last batch.
	flushTimeout = 3 * time.Second
	// tracesPath is where a collector takes traces (https://opentelemetry.io/docs/specs/otlp/#otlphttp-request).
	tracesPath = "/v1/traces"
)

// Options configure Start.
type Options struct {
	// Endpoint is the URL of the collector, without the path.
	Endpoint string
	// SamplingPercent is the share of traces that is sent, from 0 to 100.
	SamplingPercent int32
	// Service and Version name the program, and Cluster the cluster it runs in, in every trace.
	Service, Version, Cluster string
	// Logger logs when the collector cannot be reached, and when it can again.
	Logger logr.Logger
}

// Provider makes spans and sends them, in batches and by itself. What it cannot
// send in time is dropped: nothing waits for it.
type Provider struct {
	*sdktrace.TracerProvider
}

// Start returns a provider. It does not wait for the collector.
func Start(ctx context.Context, o Options) (*Provider, error) {
	otlp, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(strings.TrimRight(o.Endpoint, "/")+tracesPath),
		otlptracehttp.WithTimeout(exportTimeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: exportTimeout}),
	)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client for the collector of traces")
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	// What the SDK complains of besides, such as spans that a collector has refused.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Logger.V(1).Info("A problem with traces", "cause", err.Error()) }))
	return &Provider{sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.TraceIDRatioBased(float64(o.SamplingPercent)/100)),
		sdktrace.WithBatcher(&exporter{SpanExporter: otlp, logger: o.Logger}, sdktrace.WithExportTimeout(exportTimeout)),
		sdktrace.WithResource(resource.NewSchemaless(
			// The names are those of https://opentelemetry.io/docs/specs/semconv/resource/.
			attribute.String("service.name", o.Service), attribute.String("service.version", o.Version), attribute.String("service.instance.id", host),
			attribute.String("k8s.cluster.name", o.Cluster),
		)),
	)}, nil
}

// Stop sends what is left, as far as that is possible in three seconds, also when ctx has ended. No spans are made from then on.
func (p *Provider) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	_ = p.Shutdown(ctx) // The exporter has said what is wrong, if anything is.
}

// exporter logs that the collector is away, once, and that it is back.
type exporter struct {
	sdktrace.SpanExporter
	logger logr.Logger
	away   atomic.Bool
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch before := e.away.Swap(err != nil); {
	case err != nil && !before:
		e.logger.Error(err, "Cannot send traces; they are lost until the collector takes them")
	case err == nil && before:
		e.logger.Info("Traces are sent again")
	}
	return nil
}
