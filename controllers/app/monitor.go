package app

import (
	"context"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
)

// probeTimeout bounds the answer to a probe of the kubelet.
const probeTimeout = 500 * time.Millisecond

// RunMonitor runs the monitor of a workload cluster. It returns nil when ctx ends, and when the configuration has changed so
// that the program must be restarted.
func RunMonitor(ctx context.Context, o Options, config *configv1alpha1.Configuration, logger logr.Logger) error {
	return o.run(ctx, "monitor", config, logger, func(ctx context.Context, o *Options) error {
		checks := newHealthChecks(config, logger)
		monitorOptions := monitorOptionsOf(config.Monitor)
		monitorOptions.LeaseNamespace, monitorOptions.Spans = o.LeaseNamespace, o.spans
		monitorOptions.Rules, monitorOptions.RulesChanged = checks, checks.Subscribe
		options, err := monitor.ManagerOptions(monitorOptions)
		if err != nil {
			return err
		}
		options.HealthProbeBindAddress = o.ProbeAddress
		mgr, err := newMetricsManager(o, &config.Metrics, options)
		if err != nil {
			return err
		}
		if err := monitor.Setup(mgr, monitorOptions); err != nil {
			return err
		}
		if err := o.addHealthChecks(mgr, checks); err != nil {
			return err
		}
		if err := addProbes(mgr, cacheSynced(mgr)); err != nil {
			return err
		}
		logger.Info("Starting the monitor", "version", o.Version, "labelKeys", config.Monitor.LabelKeys)
		return mgr.Start(ctx)
	})
}

// monitorOptionsOf turns the section of a configuration, defaults filled in, into the monitor's options.
func monitorOptionsOf(m configv1alpha1.Monitor) monitor.Options {
	kinds := monitor.DefaultKinds()
	for _, k := range m.Kinds {
		kinds = append(kinds, schema.FromAPIVersionAndKind(k.APIVersion, k.Kind))
	}
	o := monitor.Options{
		LabelKeys: m.LabelKeys, Kinds: kinds, Discover: m.Discover, Namespaces: m.Namespaces, TrustedNamespaces: m.TrustedNamespaces,
		AllowedLabels: m.AllowedLabels, ListBudget: kibibytes(m.ListBudgetKiB), HardLimit: kibibytes(m.LimitKiB),
	}
	if m.CreateBundles != nil {
		o.CreateBundles = m.CreateBundles.LabelKey
	}
	return o
}

// kibibytes returns a number of KiB in bytes.
func kibibytes(n *int32) int {
	if n == nil {
		return 0
	}
	return int(*n) << 10
}

// cacheSynced returns a readiness check that fails until the manager's cache has synced.
func cacheSynced(mgr ctrl.Manager) func(*http.Request) error {
	return func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the bundles have not been read yet")
		}
		return nil
	}
}
