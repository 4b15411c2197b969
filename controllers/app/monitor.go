package app

import (
	"context"
	"net/http"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
)

func newMonitor() *cobra.Command {
	return newManagerCommand("monitor", "Run the monitor of a workload cluster: it fills the ResourceBundleStates", runMonitor)
}

func runMonitor(ctx context.Context, o *options, config *configv1alpha1.Configuration, logger logr.Logger) error {
	rest, err := o.restConfig("monitor")
	if err != nil {
		return err
	}
	monitorOptions := monitor.Options{
		LabelKeys: config.Monitor.LabelKeys, Namespaces: config.Monitor.Namespaces, AllowedLabels: config.Monitor.AllowedLabels,
		LeaseNamespace: o.leaseNamespace(),
	}
	options, err := monitor.ManagerOptions(monitorOptions)
	if err != nil {
		return err
	}
	options.Metrics = metricsserver.Options{BindAddress: o.metricsAddress}
	options.HealthProbeBindAddress = o.probeAddress
	mgr, err := ctrl.NewManager(rest, options)
	if err != nil {
		return errors.Wrap(err, "cannot make the manager")
	}
	if err := monitor.Setup(mgr, monitorOptions); err != nil {
		return err
	}
	if err := addProbes(mgr, cacheSynced(mgr)); err != nil {
		return err
	}
	logger.Info("Starting the monitor", "version", Version(), "labelKeys", config.Monitor.LabelKeys)
	return mgr.Start(ctx)
}

// cacheSynced says whether the manager's cache has been read once.
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
