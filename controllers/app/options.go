package app

import (
	"context"
	goruntime "runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/metric"
	"github.com/healthscope/healthscope/controllers/tracing"
)

// Options are the settings of a program that are not in its configuration file.
type Options struct {
	// REST is the configuration of the client for the program's own cluster.
	REST *rest.Config
	// ConfigFile is the path of the configuration file, which is watched. Empty means that there is none.
	ConfigFile string
	// LeaseNamespace is the namespace of the program's Lease.
	LeaseNamespace string
	// ProbeAddress is the host:port of /healthz and /readyz; "0" for none.
	ProbeAddress string
	// Version is the version of the program, and Commit the revision in git that it was built from; empty when that is not known.
	Version, Commit string

	// spans is nil when tracing is not configured.
	spans trace.TracerProvider
	// stop ends the program gracefully.
	stop func()
}

// run runs a program, with traces if tracing is configured, until ctx ends or until the configuration changes in a way that requires
// a restart.
func (o Options) run(ctx context.Context, name string, config *configv1alpha1.Configuration, logger logr.Logger, run func(context.Context, *Options) error) error {
	if config.Tracing != nil {
		provider, err := tracing.Start(ctx, tracing.Options{
			Endpoint: config.Tracing.Endpoint, SamplingPercent: *config.Tracing.SamplingPercent,
			Service: "healthscope-" + name, Version: o.Version, Cluster: config.ClusterName, Logger: logger.WithName("tracing"),
		})
		if err != nil {
			return err
		}
		defer provider.Stop(ctx)
		o.spans = provider
	}
	ctx, o.stop = context.WithCancel(ctx)
	defer o.stop()
	return run(ctx, &o)
}

// NewScheme returns a scheme with the types of Kubernetes and of HealthScope.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1alpha2.AddToScheme, k8spluginv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, errors.Wrap(err, "cannot register types")
		}
	}
	return scheme, nil
}

// addProbes adds the checks of /healthz and /readyz.
func addProbes(mgr ctrl.Manager, ready healthz.Checker) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return errors.Wrap(err, "cannot add the health check")
	}
	return errors.Wrap(mgr.AddReadyzCheck("synced", ready), "cannot add the readiness check")
}

var metricBuildInfo = metric.New(metric.Gauge, "healthscope_build_info",
	"1, with the version of the program, the commit that it was built from, if that is known, and the version of Go that it was built with.", "version", "revision", "goversion")

// buildInfo returns the collector of metricBuildInfo.
func buildInfo(version, commit string) prometheus.Collector {
	return prometheus.CollectorFunc(func(out chan<- prometheus.Metric) {
		out <- metricBuildInfo.Value(1, version, commit, goruntime.Version())
	})
}
