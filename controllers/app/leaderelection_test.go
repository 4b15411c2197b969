package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/inventory"
	"github.com/healthscope/healthscope/controllers/pruning"
)

// memoryLease is a Lease in memory.
type memoryLease struct {
	mu     sync.Mutex
	record *resourcelock.LeaderElectionRecord
	// unreachable makes all requests fail, and rejectRenewals those that renew the Lease.
	unreachable, rejectRenewals bool
	// renewed is the time of the last renewal of the Lease.
	renewed time.Time
}

func (l *memoryLease) get() (resourcelock.LeaderElectionRecord, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.unreachable:
		return resourcelock.LeaderElectionRecord{}, errors.New("the API server is away")
	case l.record == nil:
		return resourcelock.LeaderElectionRecord{}, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, controllerLease)
	}
	return *l.record, nil
}

func (l *memoryLease) set(record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unreachable || l.rejectRenewals && record.HolderIdentity != "" {
		return errors.New("the API server is away")
	}
	l.record, l.renewed = &record, time.Now()
	return nil
}

// fail makes all requests fail, or those that renew the Lease.
func (l *memoryLease) fail(all, renewals bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unreachable, l.rejectRenewals = all, renewals
}

func (l *memoryLease) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return ""
	}
	return l.record.HolderIdentity
}

// heldBy makes another replica hold the Lease from now on.
func (l *memoryLease) heldBy(holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = &resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: int(leaseDuration.Seconds()), RenewTime: metav1.Now()}
}

// memoryLock is the lock of one replica on a Lease in memory.
type memoryLock struct {
	*memoryLease

	identity string
}

// Get implements resourcelock.Interface.
func (l memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, err := l.get()
	return &record, []byte(record.HolderIdentity + record.RenewTime.String()), err
}

// Create implements resourcelock.Interface.
func (l memoryLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.set(record)
}

// Update implements resourcelock.Interface.
func (l memoryLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.set(record)
}

// RecordEvent implements resourcelock.Interface.
func (memoryLock) RecordEvent(string) {}

// Identity implements resourcelock.Interface.
func (l memoryLock) Identity() string { return l.identity }

// Describe implements resourcelock.Interface.
func (memoryLock) Describe() string { return controllerLease }

// countingCache is a cache without objects that counts its event handlers.
type countingCache struct {
	informertest.FakeInformers

	mu       sync.Mutex
	handlers atomic.Int64
}

// GetInformer implements cache.Informers.
func (c *countingCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	informer, err := c.FakeInformers.GetInformer(ctx, object, options...)
	return countingInformer{informer, c}, err
}

// countingInformer counts its event handlers.
type countingInformer struct {
	cache.Informer

	of *countingCache
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i countingInformer) AddEventHandlerWithOptions(_ toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (registration, error) {
	i.of.mu.Lock() // The fake is not safe for controllers that start concurrently.
	defer i.of.mu.Unlock()
	i.of.handlers.Add(1)
	return i.Informer.AddEventHandlerWithOptions(toolscache.ResourceEventHandlerFuncs{}, options)
}

// RemoveEventHandler implements cache.Informer.
func (i countingInformer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	i.of.handlers.Add(-1)
	return nil
}

// countingRegistry counts its collectors, and holds the last inventory among them.
type countingRegistry struct {
	metrics.RegistererGatherer

	collectors atomic.Int64
	inventory  atomic.Value // A weak.Pointer[inventory.Status].
}

// Register implements prometheus.Registerer.
func (r *countingRegistry) Register(c prometheus.Collector) error {
	r.collectors.Add(1)
	if status, ok := c.(*inventory.Status); ok {
		r.inventory.Store(weak.Make(status))
	}
	return r.RegistererGatherer.Register(c)
}

// Unregister implements prometheus.Registerer.
func (r *countingRegistry) Unregister(c prometheus.Collector) bool {
	gone := r.RegistererGatherer.Unregister(c)
	if gone {
		r.collectors.Add(-1)
	}
	return gone
}

// replica is a replica of the controller without an API server. Its inventory selects all resources.
type replica struct {
	*leaderElection

	lease    *memoryLease
	cache    *countingCache
	registry *countingRegistry
	checks   *healthChecks
	// termCount counts the terms.
	termCount atomic.Int64
	ended     chan error
}

// newReplica returns a replica. Another replica holds the Lease.
func newReplica(t *testing.T) *replica {
	t.Helper()
	r := &replica{lease: &memoryLease{}, cache: &countingCache{}, ended: make(chan error, 1)}
	r.registry = &countingRegistry{RegistererGatherer: prometheus.NewRegistry()}
	r.lease.heldBy("other")
	before := metrics.Registry
	metrics.Registry = r.registry
	t.Cleanup(func() { metrics.Registry = before })
	config := &configv1alpha1.Configuration{Inventory: &configv1alpha1.Inventory{URL: "http://127.0.0.1:1", Select: configv1alpha1.SelectAll}}
	configv1alpha1.SetDefaults(config)
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	r.cache.Scheme = scheme
	mgr, err := ctrl.NewManager(&rest.Config{Host: "127.0.0.1:1"}, ctrl.Options{
		Scheme: scheme, MapperProvider: newRESTMapper, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		NewCache:   func(*rest.Config, cache.Options) (cache.Cache, error) { return r.cache, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.checks = newHealthChecks(config, logr.Discard())
	objects := fleet.NewObjects(nil, r.checks)
	view, err := fleet.Setup(mgr, fleet.Options{ClusterName: config.ClusterName, Objects: objects})
	if err != nil {
		t.Fatal(err)
	}
	parts := &controller{Options: &Options{}, config: config, checks: r.checks, view: view, objects: objects, guard: pruning.NewGuard("HealthScopes")}
	r.leaderElection = &leaderElection{mgr: mgr, lock: &trackedLock{now: time.Now, Interface: memoryLock{r.lease, "this"}}, logger: logr.Discard(), indexed: map[string]bool{}}
	r.setup = func(current *term) error {
		r.termCount.Add(1)
		return parts.setupScopes(current)
	}
	return r
}

// start starts the replica.
func (r *replica) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { r.ended <- r.Start(ctx) }()
	t.Cleanup(cancel)
	return cancel
}

// registered counts the registrations of a replica with objects that outlive a term. inventories counts the inventories in
// memory: the view of the fleet and the judgements of scopes call an inventory as long as it is subscribed to them.
type registered struct{ collectors, eventHandlers, subscriptions, httpHandlers, inventories int }

func (r registered) counts() []int {
	return []int{r.collectors, r.eventHandlers, r.subscriptions, r.httpHandlers, r.inventories}
}

// registered counts what the replica has registered.
func (r *replica) registered(t *testing.T) registered {
	t.Helper()
	synctest.Wait()
	count := registered{collectors: int(r.registry.collectors.Load()), eventHandlers: int(r.cache.handlers.Load())}
	count.subscriptions = len(r.checks.changed.list())
	w := httptest.NewRecorder()
	r.unsynced.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, inventory.UnsyncedPath, http.NoBody))
	if w.Code == http.StatusOK {
		count.httpHandlers = 1
	}
	runtime.GC()
	if last, ok := r.registry.inventory.Load().(weak.Pointer[inventory.Status]); ok && last.Value() != nil {
		count.inventories = 1
	}
	return count
}

// TestOnlyTheLeaderRegisters follows a replica from standby to leader, through an outage in which it loses its Lease, and to its
// end. A standby replica registers nothing, so that no changes accumulate in it.
func TestOnlyTheLeaderRegisters(t *testing.T) { //nolint:paralleltest // It replaces the registry of metrics.
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(t)
		stop := r.start(t)
		expect := func(when string, terms int, want registered) {
			t.Helper()
			if got := r.registered(t); got != want || int(r.termCount.Load()) != terms {
				t.Errorf("%s: %d terms, registered %+v; want %d and %+v", when, r.termCount.Load(), got, terms, want)
			}
		}
		for range 100 {
			<-time.After(leaseDuration / 2)
			r.lease.heldBy("other")
		}
		expect("while another replica leads", 0, registered{})

		<-time.After(time.Minute)
		leading := r.registered(t)
		if slices.Contains(leading.counts(), 0) {
			t.Errorf("a leader has registered %+v", leading)
		}
		expect("after the other replica has gone", 1, leading)

		r.lease.fail(true, true)
		<-time.After(leaseDuration)
		expect("after it has lost its Lease", 1, registered{})
		<-time.After(time.Hour)
		expect("in a long outage", 1, registered{})

		r.lease.fail(false, false)
		<-time.After(time.Minute)
		expect("after the outage", 2, leading)

		stop()
		if err := <-r.ended; err != nil {
			t.Error(err)
		}
		expect("after it was stopped", 2, registered{})
		if got := r.lease.holder(); got != "" {
			t.Errorf("replica %q holds the Lease after it was stopped", got)
		}
	})
}

// TestLeaseIsKeptUntilTheTermHasStopped runs a term that stops slowly, while the API server rejects renewals of the Lease but
// would accept its release. No other replica may lead before the term has stopped.
func TestLeaseIsKeptUntilTheTermHasStopped(t *testing.T) { //nolint:paralleltest // As above.
	for name, c := range map[string]struct {
		stopping time.Duration
		fails    bool
	}{
		"in time":  {stopping: stopTimeout - time.Millisecond},
		"too late": {stopping: time.Hour, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplica(t)
				r.setup = func(current *term) error {
					return current.Add(manager.RunnableFunc(func(ctx context.Context) error {
						<-ctx.Done()
						<-time.After(c.stopping)
						if got := r.lease.holder(); !c.fails && got != "this" {
							t.Errorf("replica %q holds the Lease while the term of this one stops", got)
						}
						return nil
					}))
				}
				stop := r.start(t)
				<-time.After(time.Minute)
				r.lease.fail(false, true)
				lost := r.lease.lastRenewed()
				if !c.fails {
					<-time.After(leaseDuration)
					stop()
					if err := <-r.ended; err != nil {
						t.Error(err)
					}
					return
				}
				if err := <-r.ended; err == nil {
					t.Error("the program goes on beside a term that does not stop")
				}
				if after := time.Since(lost); after > leaseDuration {
					t.Errorf("the program ends %s after the Lease was renewed last, when another replica may lead", after)
				}
				<-time.After(2 * time.Hour) // The runnable ends.
			})
		})
	}
}

// lastRenewed returns the time of the last renewal of the Lease.
func (l *memoryLease) lastRenewed() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewed
}
