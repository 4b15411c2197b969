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
	// exportTimeout is the deadline of sending one batch, retries included.
	exportTimeout = 10 * time.Second
	// flushTimeout bounds how long Stop waits for the last batch.
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
	// Logger logs when the collector becomes unreachable, and when it is reachable again.
	Logger logr.Logger
}

// Provider creates spans and sends them to the collector in batches, in the
// background. It drops spans that it cannot send in time, and blocks no caller.
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
	// The handler gets the other errors of the SDK, such as spans that the collector has rejected.
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

// Stop sends the remaining spans, within three seconds, even if ctx has ended. The provider creates no spans afterwards.
func (p *Provider) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	_ = p.Shutdown(ctx) // The exporter has logged the error, if there is one.
}

// exporter logs once that the collector is unreachable, and once that it is reachable again.
type exporter struct {
	sdktrace.SpanExporter
	logger      logr.Logger
	unreachable atomic.Bool
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch before := e.unreachable.Swap(err != nil); {
	case err != nil && !before:
		e.logger.Error(err, "Cannot send traces; they are lost until the collector takes them")
	case err == nil && before:
		e.logger.Info("Traces are sent again")
	}
	return nil
}
