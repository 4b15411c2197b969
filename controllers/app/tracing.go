package app

import (
	"context"

	"github.com/go-logr/logr"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/tracing"
)

// startTracing creates the tracer provider, if tracing is configured. stop flushes it when the program stops.
func (o *Options) startTracing(ctx context.Context, command string, config *configv1alpha1.Configuration, logger logr.Logger) (stop func(), err error) {
	if config.Tracing == nil {
		return func() {}, nil
	}
	provider, err := tracing.Start(ctx, tracing.Options{
		Endpoint: config.Tracing.Endpoint, SamplingPercent: *config.Tracing.SamplingPercent,
		Service: "healthscope-" + command, Version: o.Version, Cluster: config.ClusterName, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	o.spans = provider
	return func() { provider.Stop(ctx) }, nil
}
