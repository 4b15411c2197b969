package app

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/inventory"
	"github.com/healthscope/healthscope/controllers/leading"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/controllers/scope"
)

// lockPeriod is how often the manager looks whether this replica has led. That costs nothing.
const lockPeriod = 200 * time.Millisecond

// controllerLease is the Lease of the one controller that is active.
const controllerLease = "healthscope-controller"

func newController() *cobra.Command {
	return newManagerCommand("controller", "Run the controller of a hub: scopes, the status REST API, metrics and the inventory", runController)
}

func runController(ctx context.Context, o *options, config *configv1alpha1.Configuration, logger logr.Logger) error {
	cluster, err := o.restConfig("controller")
	if err != nil {
		return err
	}
	if err := awaitAPIServer(ctx, cluster, o.probeAddress, logger); err != nil || ctx.Err() != nil {
		return err
	}
	checks := newHealthChecks(config.HealthCheckExprs, logger)
	watch, gate := &scopeWatch{}, leading.NewGate()
	mgr, err := newControllerManager(o, config, watch, gate)
	if err != nil {
		return err
	}
	view, objects, err := setupFleet(mgr, config, checks)
	if err != nil {
		return err
	}
	if err := metrics.Registry.Register(fleet.NewCollector(view)); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	if err := setupClusters(mgr, o, config, view, gate); err != nil {
		return err
	}
	guard := pruning.NewGuard("HealthScopes")
	if err := setupScopes(ctx, mgr, view, objects, guard, checks, config, o.spans, gate); err != nil {
		return err
	}
	if err := o.addHealthChecks(mgr, checks, config, logger); err != nil {
		return err
	}
	store, err := addAppContext(mgr, config.AppContext, o.startAnew, logger.WithName("appcontext"))
	if err != nil {
		return err
	}
	if store != nil {
		defer func() { _ = store.Close() }() // Nothing uses it any more.
	}
	if err := setupRecorder(mgr, o, config, view, store, gate); err != nil {
		return err
	}
	if err := addStatusAPI(mgr, config, view, checks, store, watch, logger.WithName("api")); err != nil {
		return err
	}
	if err := addProbes(mgr, func(*http.Request) error { return errors.Join(view.Ready(), guard.Ready()) }); err != nil {
		return err
	}
	logger.Info("Starting the controller", "version", Version(), "cluster", config.ClusterName)
	return startLeading(ctx, mgr, o, gate)
}

// startLeading runs a manager, and takes part in the election of a leader for as long as it runs. When the Lease is lost the
// program goes on: what it serves, and what it knows of other clusters, does not depend on it.
func startLeading(ctx context.Context, mgr ctrl.Manager, o *options, gate *leading.Gate) error {
	host, err := os.Hostname()
	if err != nil {
		return errors.Wrap(err, "cannot name this replica")
	}
	identity := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.leaseNamespace(), controllerLease, identity, rest.AddUserAgent(mgr.GetConfig(), "leader-election"), leading.RenewDeadline)
	if err != nil {
		return errors.Wrap(err, "cannot make the client for the Lease")
	}
	election, stop := context.WithCancel(context.WithoutCancel(ctx)) // The Lease is given back when nothing needs it any more.
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- gate.Run(election, lock, controllerLease) }()
	err = mgr.Start(ctx)
	stop()
	return errors.Join(err, <-ended)
}

func newControllerManager(o *options, config *configv1alpha1.Configuration, watch *scopeWatch, gate *leading.Gate) (ctrl.Manager, error) {
	options, err := o.managerOptions(controllerLease)
	if err != nil {
		return nil, err
	}
	options.LeaderElectionResourceLockInterface, options.RetryPeriod = gate.Lock(), new(lockPeriod)
	options.Cache = cache.Options{DefaultTransform: scope.KeepWriters, NewInformer: watch.newInformer}
	return newMetricsManager(o, &config.Metrics, options, "controller")
}

// setupScopes adds the scope controller, its metrics, and the inventory where one is configured.
func setupScopes(ctx context.Context, mgr ctrl.Manager, view *fleet.View, objects *fleet.Objects, guard *pruning.Guard, checks *healthChecks, config *configv1alpha1.Configuration, spans trace.TracerProvider, gate *leading.Gate) error {
	checks.Subscribe(objects.Refresh)
	checks.Subscribe(view.Refresh)
	registry := scope.NewRegistry()
	if err := metrics.Registry.Register(leading.Collector(gate, scope.NewCollector(registry))); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	o := scope.Options{View: view, Objects: objects, Registry: registry, Policy: policyOf(config.Policy), Guard: guard, HealthChecks: checks, Spans: spans, Leading: gate}
	if config.Inventory != nil {
		i, err := inventory.New(inventory.Options{
			Config: config.Inventory, LabelKeys: config.Monitor.AllowedLabels, TrustedNamespaces: config.Monitor.TrustedNamespaces, View: view, Registry: registry, Metrics: metrics.Registry,
			Spans: spans, Leading: gate,
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
