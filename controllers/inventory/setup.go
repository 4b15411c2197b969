package inventory

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/sync"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/controllers/tracing"
)

// Options configure New.
type Options struct {
	// Config is the inventory section of the configuration, with defaults.
	Config *configv1alpha1.Inventory
	// LabelKeys are the label keys that are copied from resources.
	LabelKeys []string
	// TrustedNamespaces are the namespaces whose bundles and scopes may hold resources of other namespaces, as far as the configuration names them.
	TrustedNamespaces []string
	// View holds the bundles of all clusters.
	View *fleet.View
	// Registry holds the judgements of all scopes.
	Registry *scope.Registry
	// Metrics receives the metrics of the inventory.
	Metrics prometheus.Registerer
	// TracerProvider makes spans of reconciles and of requests to A&AI. Nil means that there are none.
	TracerProvider trace.TracerProvider
	// HoldsLease reports whether this replica still leads. It is asked when a request that writes is about to leave. Nil means that it does.
	HoldsLease func() bool
	// Takeover is how long the leader before this one may still have written.
	Takeover time.Duration
}

// Inventory keeps A&AI in sync. Its Status reports the progress.
type Inventory struct {
	*Status
	options  Options
	client   *client.Client
	requests requestMetrics
	// unfollow ends the subscription to the view.
	unfollow func()
}

// New returns an inventory that does nothing before Setup. It must be made before Registry learns anything.
func New(o Options) (*Inventory, error) {
	requests := newRequestMetrics()
	c, err := newClient(o, requests.observe)
	if err != nil {
		return nil, err
	}
	m := mapping.FromConfig(o.Config, o.LabelKeys)
	in := newInputs(m, o.Config.Select, o.Registry, o.TrustedNamespaces)
	i := &Inventory{Status: newStatus(in), options: o, client: c, requests: requests}
	o.Registry.Subscribe(in.scopeJudged)
	for _, m := range append(requests.collectors(), i.Status) {
		if err := o.Metrics.Register(m); err != nil {
			return nil, errors.Wrap(err, "cannot register metrics of the inventory")
		}
	}
	in.view = o.View
	in.changes, i.unfollow = o.View.SubscribeFromStart(fleet.Bundles | fleet.Clusters)
	return i, nil
}

// newClient returns a client for A&AI, whose circuit breaker opens while A&AI can do nothing. observe is called after every request.
func newClient(o Options, observe func(op, code string, took time.Duration)) (*client.Client, error) {
	c := o.Config
	options := client.Options{
		BaseURL: c.URL, SchemaVersion: c.SchemaVersion, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
		Timeout: time.Duration(*c.TimeoutSeconds) * time.Second, Observe: observe,
		Breaker: client.NewBreaker(int(*c.MaxRequestsPerSecond), nil), Leads: o.HoldsLease,
		Wrap: func(transport http.RoundTripper) http.RoundTripper {
			return tracing.Transport(o.TracerProvider, transport)
		},
	}
	if c.UsernameFile != "" {
		options.Credentials = client.FileCredentials(c.UsernameFile, c.PasswordFile)
	}
	return client.New(options)
}

// requestDelay is how long a request may wait for the rate limiter before its own timeout begins.
const requestDelay = 5 * time.Second

// Setup adds the inventory to a manager.
func (i *Inventory) Setup(mgr ctrl.Manager) error {
	logger := mgr.GetLogger().WithName("inventory")
	request := time.Duration(*i.options.Config.TimeoutSeconds)*time.Second + requestDelay
	syncer := sync.New(sync.Options{
		WriteTime: min(max(sync.DefaultWriteTime, 4*request), tenantTimeout/2),
		Client:    i.client, Resync: time.Duration(*i.options.Config.ResyncSeconds) * time.Second, Plan: PlanOptions(i.options.Config, i.inputs.mapping),
		Takeover: max(i.options.Takeover, request),
		Audit:    func(w sync.WriteEvent) { audit(logger, w) }, AuditStatus: func(w sync.StatusWriteEvent) { auditStatus(logger, w) },
	})
	if err := mgr.Add(manager.RunnableFunc(i.closeOnStop)); err != nil {
		return errors.Wrap(err, "cannot add the end of the inventory")
	}
	if err := mgr.AddMetricsServerExtraHandler(UnsyncedPath, http.HandlerFunc(i.serveUnsynced)); err != nil {
		return errors.Wrap(err, "cannot serve the rejected changes")
	}
	tenants := newTenantReconciler(i.Status, i.options.View, syncer, i.requests.observeLag)
	err := addController(i, mgr, "inventory", tenants, i.changes(syncer.Wake), scopeHandlers[aai.Tenant]{
		changed: i.inputs.scopeChanged, deleted: i.inputs.scopeDeleted,
		resync: func(name types.NamespacedName) []aai.Tenant {
			all := i.inputs.tenantsOf(name, i.options.View.Clusters())
			logger.Info("Resync requested", "scope", name.String(), "tenants", len(all))
			for _, tenant := range all {
				syncer.Resync(tenant)
			}
			return all
		},
	})
	if err != nil || !i.options.Config.OperationalStatus {
		return errors.Wrap(err, "cannot set up the inventory controller")
	}
	modules := newModuleReconciler(i.Status, i.options.View, syncer)
	err = addController(i, mgr, "inventory-modules", modules, i.moduleChanges, scopeHandlers[string]{
		changed: i.inputs.modulesNamed, deleted: i.inputs.scopeJudged,
		resync: func(name types.NamespacedName) []string {
			all := i.inputs.vnfs(name)
			for _, v := range all {
				syncer.ResyncModules(v)
			}
			return all
		},
	})
	return errors.Wrap(err, "cannot set up the controller of modules")
}

// addController adds a controller to a manager that reconciles what changes and the events of scopes ask for. It waits for A&AI
// most of the time.
func addController[K comparable](i *Inventory, mgr ctrl.Manager, name string, r *reconciler[K], changes source.TypedFunc[K], scopes scopeHandlers[K]) error {
	return builder.TypedControllerManagedBy[K](mgr).
		Named(name).
		WatchesRawSource(changes).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), &corev1alpha2.HealthScope{}, scopes.events())).
		WithOptions(controller.TypedOptions[K]{MaxConcurrentReconciles: 4}).
		Complete(tracing.Reconciler(i.options.TracerProvider, name, func(key K) tracing.ObjectRef { return tracing.ObjectRef{Name: fmt.Sprint(key)} }, r))
}

// PlanOptions returns what a configuration says is ours in A&AI, and what may be done to it.
func PlanOptions(c *configv1alpha1.Inventory, m mapping.Options) plan.Options {
	return plan.Options{
		Owner: m.Owner(), LabelPrefix: m.LabelPrefix, LabelKeys: m.LabelKeys,
		Policy: plan.Policy(c.Policy), Limit: plan.Limit{Percent: int(*c.MaxDeletionPercent)},
	}
}

// audit logs a write to one object, by which it can be found in A&AI's own logs.
func audit(logger logr.Logger, w sync.WriteEvent) {
	logWrite(logger.WithValues("verb", w.Verb, "tenant", w.Key.Tenant.String(), "id", w.Key.ID, "cluster", w.Resource.Cluster, "kind", w.Resource.Kind,
		"namespace", w.Resource.Namespace, "name", w.Resource.Name, "labels", w.Labels, "transaction", w.TransactionID), w.Err)
}

// auditStatus logs a change of a module's operational-status.
func auditStatus(logger logr.Logger, w sync.StatusWriteEvent) {
	logWrite(logger.WithValues("verb", plan.Update, "genericVnf", w.Module.GenericVNFID, "vfModule", w.Module.ID,
		"operationalStatus", w.To, "before", w.From, "transaction", w.TransactionID), w.Err)
}

func logWrite(logger logr.Logger, err error) {
	if err != nil {
		logger.Info("A&AI write failed", "cause", err.Error())
		return
	}
	logger.Info("A&AI write")
}

// closeOnStop closes the connections to A&AI, and unsubscribes from the view, when the replica stops leading.
func (i *Inventory) closeOnStop(ctx context.Context) error {
	<-ctx.Done()
	i.unfollow()
	i.client.Close()
	return nil
}

// changes asks for every tenant at the start, and for one whenever it has changed; wake lets a pass know that is under way.
func (i *Inventory) changes(wake func(aai.Tenant)) source.TypedFunc[aai.Tenant] {
	return func(ctx context.Context, q workqueue.TypedRateLimitingInterface[aai.Tenant]) error {
		i.inputs.onChange(func(tenant aai.Tenant) {
			q.Add(tenant)
			wake(tenant)
		})
		for _, tenant := range i.inputs.mapping.Tenants() {
			q.Add(tenant)
		}
		go i.inputs.follow(ctx)
		return nil
	}
}

// moduleChanges asks for every VNF at the start, and for one whenever its modules have changed.
func (i *Inventory) moduleChanges(_ context.Context, q workqueue.TypedRateLimitingInterface[string]) error {
	i.inputs.onModuleChange(q.Add)
	for _, v := range i.inputs.vnfs(types.NamespacedName{}) {
		q.Add(v)
	}
	return nil
}
