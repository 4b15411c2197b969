package inventory

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
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
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
)

// Options configure New.
type Options struct {
	// Config is the inventory section of the configuration, with defaults.
	Config *configv1alpha1.Inventory
	// LabelKeys are the label keys that are copied from resources.
	LabelKeys []string
	// View holds the bundles of all clusters.
	View *fleet.View
	// Registry holds the judgements of all scopes.
	Registry *scope.Registry
	// Metrics receives the metrics of the inventory.
	Metrics prometheus.Registerer
}

// Inventory keeps A&AI in step. Its Ledger tells how far it is.
type Inventory struct {
	*Ledger
	options Options
	client  *client.Client
}

// New returns an inventory that does nothing before Setup.
func New(o Options) (*Inventory, error) {
	requests := newRequestMetrics()
	c, err := client.New(client.Options{
		BaseURL: o.Config.URL, SchemaVersion: o.Config.SchemaVersion, CAFile: o.Config.CAFile,
		Credentials: credentials(o.Config), Timeout: time.Duration(*o.Config.TimeoutSeconds) * time.Second, Observe: requests.observe,
	})
	if err != nil {
		return nil, err
	}
	i := &Inventory{Ledger: newLedger(mapping.FromConfig(o.Config, o.LabelKeys), o.Registry), options: o, client: c}
	for _, m := range []prometheus.Collector{i.Ledger, requests.total, requests.seconds} {
		if err := o.Metrics.Register(m); err != nil {
			return nil, errors.Wrap(err, "cannot register metrics of the inventory")
		}
	}
	return i, nil
}

// credentials returns what reads user and password from their files; nil when none are configured.
func credentials(c *configv1alpha1.Inventory) func() (string, string, error) {
	if c.UsernameFile == "" {
		return nil
	}
	return client.FileCredentials(c.UsernameFile, c.PasswordFile)
}

// Setup adds the inventory to a manager.
func (i *Inventory) Setup(mgr ctrl.Manager) error {
	o := i.mapping
	resync := time.Duration(*i.options.Config.ResyncSeconds) * time.Second
	r := &reconciler{
		gatherer: &gatherer{scopes: mgr.GetClient(), bundles: i.options.View, registry: i.options.Registry, mapping: o, selects: i.options.Config.Select},
		syncer: sync.New(sync.Options{
			Client: i.client, Resync: resync,
			Plan: plan.Options{Owner: o.Owner(), LabelPrefix: o.LabelPrefix, LabelKeys: o.LabelKeys},
		}),
		ledger: i.Ledger,
		paces:  map[aai.Tenant]*pace{},
	}
	if err := mgr.Add(manager.RunnableFunc(i.closeAtEnd)); err != nil {
		return errors.Wrap(err, "cannot add the end of the inventory")
	}
	err := builder.TypedControllerManagedBy[aai.Tenant](mgr).
		Named("inventory").
		WatchesRawSource(source.TypedFunc[aai.Tenant](i.changes)).
		WithOptions(controller.TypedOptions[aai.Tenant]{
			MaxConcurrentReconciles: 2,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[aai.Tenant](minPause, maxPause),
		}).
		Complete(r)
	return errors.Wrap(err, "cannot set up the inventory controller")
}

// closeAtEnd closes the connections to A&AI when the program stops.
func (i *Inventory) closeAtEnd(ctx context.Context) error {
	<-ctx.Done()
	i.client.Close()
	return nil
}

// changes asks for every tenant at the start, and for all of them whenever something was judged: which tenants a change concerns is cheaper found out by looking at them.
func (i *Inventory) changes(_ context.Context, q workqueue.TypedRateLimitingInterface[aai.Tenant]) error {
	all := func() {
		for _, tenant := range i.mapping.Tenants() {
			q.Add(tenant)
		}
	}
	i.options.Registry.Subscribe(func(types.NamespacedName) { all() })
	if i.options.Config.Select == configv1alpha1.SelectAll {
		i.options.View.Subscribe(func(fleet.Change) { all() })
	}
	all()
	return nil
}
