package app

import (
	"context"
	"net/http"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/inventory"
	"github.com/healthscope/healthscope/controllers/scope"
)

// controllerLease is the Lease of the one controller that is active.
const controllerLease = "healthscope-controller"

func newController() *cobra.Command {
	return newManagerCommand("controller", "Run the controller of a hub: scopes, the status REST API, metrics and the inventory", runController)
}

func runController(ctx context.Context, o *options, config *configv1alpha1.Configuration, logger logr.Logger) error {
	mgr, err := newControllerManager(o)
	if err != nil {
		return err
	}
	view, err := fleet.Setup(mgr, fleet.Options{ClusterName: config.ClusterName, Policy: policyOf(config.Policy)})
	if err != nil {
		return err
	}
	if err := setupScopes(ctx, mgr, view, config); err != nil {
		return err
	}
	ready := func() error { return bundlesRead(view) }
	if err := addStatusAPI(mgr, config.API, ready, logger.WithName("api")); err != nil {
		return err
	}
	if err := addProbes(mgr, func(*http.Request) error { return ready() }); err != nil {
		return err
	}
	logger.Info("Starting the controller", "version", Version(), "cluster", config.ClusterName)
	return mgr.Start(ctx)
}

func newControllerManager(o *options) (ctrl.Manager, error) {
	rest, err := o.restConfig("controller")
	if err != nil {
		return nil, err
	}
	options, err := o.managerOptions(controllerLease)
	if err != nil {
		return nil, err
	}
	bundles, byObject := fleet.CacheByObject()
	options.Cache = cache.Options{DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{bundles: byObject}}
	mgr, err := ctrl.NewManager(rest, options)
	return mgr, errors.Wrap(err, "cannot make the manager")
}

// setupScopes adds the scope controller, its metrics, and the inventory where one is configured.
func setupScopes(ctx context.Context, mgr ctrl.Manager, view *fleet.View, config *configv1alpha1.Configuration) error {
	objects, err := fleet.NewObjects(config.ClusterName, mgr.GetConfig(), mgr.GetRESTMapper(), config.Monitor.AllowedLabels)
	if err != nil {
		return err
	}
	registry := scope.NewRegistry()
	if err := metrics.Registry.Register(scope.NewCollector(registry)); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	o := scope.Options{View: view, Objects: objects, Registry: registry, Policy: policyOf(config.Policy)}
	if config.Inventory != nil {
		i, err := inventory.New(inventory.Options{
			Config: config.Inventory, LabelKeys: config.Monitor.AllowedLabels, View: view, Registry: registry, Metrics: metrics.Registry,
		})
		if err != nil {
			return err
		}
		if err := i.Setup(mgr); err != nil {
			return err
		}
		o.Inventory, o.InventoryChanged = i, i.Subscribe
	}
	return scope.Setup(ctx, mgr, o)
}

// bundlesRead returns an error until the bundles have been read once.
func bundlesRead(view *fleet.View) error {
	if !view.Synced() {
		return errors.New("the bundles have not been read yet")
	}
	return nil
}
