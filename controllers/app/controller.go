package app

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/inventory"
	"github.com/healthscope/healthscope/controllers/oam"
	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/controllers/probe"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/controllers/recorder"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// controllerLease is the Lease of the one controller that is active.
const controllerLease = "healthscope-controller"

// RunController runs the controller of a hub. It returns nil when ctx ends, and when the configuration has changed so that
// the program must be restarted.
func RunController(ctx context.Context, o Options, config *configv1alpha1.Configuration, logger logr.Logger) error {
	return o.run(ctx, "controller", config, logger, runController)
}

func runController(ctx context.Context, o *Options, config *configv1alpha1.Configuration, logger logr.Logger) error {
	checks := newHealthChecks(config.HealthCheckExprs, logger)
	scopes := newScopeTracker()
	mgr, err := newControllerManager(o, config, scopes)
	if err != nil {
		return err
	}
	election, err := newLeaderElection(mgr, o.LeaseNamespace, controllerLease, logger.WithName("leader"))
	if err != nil {
		return err
	}
	view, objects, err := setupFleet(mgr, o, config, checks)
	if err != nil {
		return err
	}
	if err := metrics.Registry.Register(fleet.NewCollector(view)); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	checks.Subscribe(objects.Refresh)
	checks.Subscribe(view.Refresh)
	if err := o.addHealthChecks(mgr, checks, config, logger); err != nil {
		return err
	}
	store, err := addAppContext(mgr, config.AppContext, o.stop, logger.WithName("appcontext"))
	if err != nil {
		return err
	}
	if store != nil {
		defer func() { _ = store.Close() }() // Nothing uses it any more.
	}
	if err := addStatusAPI(mgr, o, config, view, checks, store, scopes, logger.WithName("api")); err != nil {
		return err
	}
	if err := addRsyncServer(mgr, o, &config.Rsync, store, logger.WithName("rsync-server")); err != nil {
		return err
	}
	guard := pruning.NewGuard("HealthScopes")
	election.setup = func(t *term) error {
		return errors.Join(
			t.Add(manager.RunnableFunc(view.RecordEvents)),
			setupClusters(t, o, config, view),
			setupScopes(t, view, objects, guard, checks, config, store, o.spans),
			setupRecorder(t, o, config, view, store),
			setupRsync(t, config, view, checks, store, logger.WithName("rsync")),
			setupOAM(ctx, t, config),
		)
	}
	if err := addLeaderElection(mgr, election, config, logger); err != nil {
		return err
	}
	if err := addProbes(mgr, func(*http.Request) error { return errors.Join(view.Ready(), guard.Ready()) }); err != nil {
		return err
	}
	logger.Info("Starting the controller", "version", o.Version, "cluster", config.ClusterName)
	return mgr.Start(ctx)
}

// addLeaderElection adds to a manager leader election and, for every replica, a check that scopes can be read.
func addLeaderElection(mgr ctrl.Manager, election *leaderElection, config *configv1alpha1.Configuration, logger logr.Logger) error {
	if config.Inventory != nil {
		if err := mgr.AddMetricsServerExtraHandler(inventory.UnsyncedPath, &election.unsynced); err != nil {
			return errors.Wrapf(err, "cannot serve %q", inventory.UnsyncedPath)
		}
	}
	readable := everyReplica(func(ctx context.Context) error {
		return waitForScopes(ctx, mgr.GetAPIReader(), checkReadable(config), logger)
	})
	return errors.Wrap(errors.Join(mgr.Add(readable), mgr.Add(election)), "cannot add what the leader runs")
}

// scopesPollInterval is the pause between checks of whether scopes can be read.
const scopesPollInterval = 5 * time.Second

// waitForScopes checks whether scopes can be read until the API server answers. It returns an error if their CRD or the right
// to read them is missing: a controller that waited for these would do nothing, and not report why.
func waitForScopes(ctx context.Context, reader client.Reader, check func(context.Context, client.Reader) error, logger logr.Logger) error {
	problem := ""
	err := wait.PollUntilContextCancel(ctx, scopesPollInterval, true, func(ctx context.Context) (bool, error) {
		err := check(ctx, reader)
		if err == nil || scope.IsUnreadable(err) {
			return true, err
		}
		if ctx.Err() == nil && err.Error() != problem {
			problem = err.Error()
			logger.Info("The API server gives no answer; waiting for it", "problem", problem)
		}
		return false, nil
	})
	if ctx.Err() == nil {
		return err
	}
	return nil // The program is stopping.
}

func newControllerManager(o *Options, config *configv1alpha1.Configuration, scopes *observe.Tracker) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	return newMetricsManager(o, &config.Metrics, ctrl.Options{
		Scheme: scheme, HealthProbeBindAddress: o.ProbeAddress, MapperProvider: newRESTMapper,
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // Each term makes controllers with the same names.
		Cache: cache.Options{
			DefaultTransform: scope.TransformManagedFields, NewInformer: trackScopes(scopes), ByObject: map[client.Object]cache.ByObject{oam.NewApplication(): {Transform: oam.TransformApplication}},
		},
	})
}

// newRESTMapper returns a static mapper of the kinds that the controller reads and writes in the hub's own API server. It does
// not use discovery: the API server may be unreachable when the program starts, and discovery requests do not end with a context.
func newRESTMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		corev1alpha2.GroupVersion.WithKind(corev1alpha2.HealthScopeKind),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	for _, kind := range oam.Kinds() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	return mapper, nil
}

// setupScopes adds the scope controller, its metrics, and the inventory where one is configured.
func setupScopes(t *term, view *fleet.View, objects *fleet.Objects, guard *pruning.Guard, checks *healthChecks, config *configv1alpha1.Configuration, store *appcontext.Store, spans trace.TracerProvider) error {
	registry := scope.NewRegistry()
	if err := t.Register(scope.NewCollector(registry)); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	o := scope.Options{View: view, Objects: objects, Registry: registry, Policy: PolicyOf(config.Policy), Guard: guard, HealthChecks: termChecks{checks, t}, TracerProvider: spans, TrustedNamespaces: config.OAM.TrustedNamespaces}
	if store != nil {
		contexts, err := recorder.SetupContexts(t, store, spans, clock.RealClock{})
		if err != nil {
			return err
		}
		o.Contexts = contexts
	}
	if config.Probes.Enabled {
		prober, err := probe.Setup(t, probe.Options{Clusters: view})
		if err != nil {
			return err
		}
		if err := t.Register(prober); err != nil {
			return errors.Wrap(err, "cannot register metrics")
		}
		o.Probes = prober
	}
	if config.Inventory != nil {
		i, err := inventory.New(inventory.Options{
			Config: config.Inventory, LabelKeys: config.Monitor.AllowedLabels, TrustedNamespaces: slices.Concat(config.Monitor.TrustedNamespaces, config.OAM.TrustedNamespaces), View: view, Registry: registry, Metrics: t,
			TracerProvider: spans, HoldsLease: t.election.lock.held, Takeover: leaseDuration,
		})
		if err != nil {
			return err
		}
		if err := i.Setup(t); err != nil {
			return err
		}
		o.Inventory = i
	}
	return scope.Setup(t, o)
}

// termChecks are the health checks whose subscriptions end with the term.
type termChecks struct {
	*healthChecks

	term *term
}

// Subscribe calls changed whenever the expressions change, until the term ends.
func (c termChecks) Subscribe(changed func()) { c.term.onEnd(c.changed.add(changed)) }
