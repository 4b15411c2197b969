package app

import (
	"context"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/inventory"
	"github.com/healthscope/healthscope/controllers/oam"
	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// controllerLease is the Lease of the one controller that is active.
const controllerLease = "healthscope-controller"

// controller holds what the parts of the controller of a hub have in common.
type controller struct {
	*Options

	config *configv1alpha1.Configuration
	logger logr.Logger
	mgr    ctrl.Manager
	checks *healthChecks
	// view and objects are what the clusters of the fleet hold.
	view    *fleet.View
	objects *fleet.Objects
	guard   *pruning.Guard
	// store is the etcd with the AppContexts; nil when none is configured.
	store *appcontext.Store
}

// RunController runs the controller of a hub. It returns nil when ctx ends, and when the configuration has changed so that
// the program must be restarted.
func RunController(ctx context.Context, o Options, config *configv1alpha1.Configuration, logger logr.Logger) error {
	return o.run(ctx, "controller", config, logger, func(ctx context.Context, o *Options) error {
		c := &controller{Options: o, config: config, logger: logger, checks: newHealthChecks(config, logger), guard: pruning.NewGuard("HealthScopes")}
		return c.start(ctx)
	})
}

// start sets up the controller, and runs it until ctx ends.
func (c *controller) start(ctx context.Context) (err error) {
	scopes := observe.NewTracker(scopeWatchTolerances, clock.RealClock{}, nil)
	if c.mgr, err = newControllerManager(c.Options, c.config, scopes); err != nil {
		return err
	}
	election, err := newLeaderElection(c.mgr, c.LeaseNamespace, controllerLease, c.logger.WithName("leader"))
	if err != nil {
		return err
	}
	if c.view, c.objects, err = setupFleet(c.mgr, c.Options, c.config, c.checks); err != nil {
		return err
	}
	if err := metrics.Registry.Register(fleet.NewCollector(c.view)); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	c.checks.Subscribe(c.objects.Refresh)
	c.checks.Subscribe(c.view.Refresh)
	if err := c.addHealthChecks(c.mgr, c.checks); err != nil {
		return err
	}
	if err := c.openAppContext(); err != nil {
		return err
	}
	if c.store != nil {
		defer func() { _ = c.store.Close() }() // Nothing uses it any more.
	}
	if err := c.addStatusAPI(scopes); err != nil {
		return err
	}
	if err := c.addRsyncServer(); err != nil {
		return err
	}
	election.setup = func(t *term) error { return c.setupTerm(ctx, t) }
	if err := c.addLeaderElection(election); err != nil {
		return err
	}
	if err := addProbes(c.mgr, func(*http.Request) error { return errors.Join(c.view.Ready(), c.guard.Ready()) }); err != nil {
		return err
	}
	c.logger.Info("Starting the controller", "version", c.Version, "cluster", c.config.ClusterName)
	return c.mgr.Start(ctx)
}

// addLeaderElection adds to the manager leader election and, for every replica, a check that scopes can be read.
func (c *controller) addLeaderElection(election *leaderElection) error {
	if c.config.Inventory != nil {
		if err := c.mgr.AddMetricsServerExtraHandler(inventory.UnsyncedPath, &election.unsynced); err != nil {
			return errors.Wrapf(err, "cannot serve %q", inventory.UnsyncedPath)
		}
	}
	return errors.Wrap(errors.Join(c.mgr.Add(everyReplica(c.waitForScopes)), c.mgr.Add(everyReplica(election.Start))), "cannot add what the leader runs")
}

// scopesPollInterval is the pause between checks of whether scopes can be read.
const scopesPollInterval = 5 * time.Second

// waitForScopes checks whether scopes can be read until the API server answers. It returns an error if their CRD or the right
// to read them is missing: a controller that waited for these would do nothing, and not report why.
func (c *controller) waitForScopes(ctx context.Context) error {
	problem := ""
	err := wait.PollUntilContextCancel(ctx, scopesPollInterval, true, func(ctx context.Context) (bool, error) {
		err := c.checkReadable(ctx, c.mgr.GetAPIReader())
		if err == nil || scope.IsUnreadable(err) {
			return true, err
		}
		if ctx.Err() == nil && err.Error() != problem {
			problem = err.Error()
			c.logger.Info("The API server gives no answer; waiting for it", "problem", problem)
		}
		return false, nil
	})
	if ctx.Err() == nil {
		return err
	}
	return nil // The program is stopping.
}

// checkReadable fails when a kind that the controller is configured to watch cannot be read.
func (c *controller) checkReadable(ctx context.Context, reader client.Reader) error {
	err := scope.CheckReadable(ctx, reader)
	if err == nil && c.config.OAM.ApplicationConfigurations {
		err = oam.CheckReadable(ctx, reader, oam.ApplicationConfigurationKind)
	}
	if err == nil && c.config.OAM.WriteApplicationHealth {
		err = oam.CheckReadable(ctx, reader, kubevela.ApplicationKind)
	}
	return err
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
	for _, kind := range append(oam.Kinds(),
		corev1alpha2.GroupVersion.WithKind(corev1alpha2.HealthScopeKind),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"),
	) {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	return mapper, nil
}
