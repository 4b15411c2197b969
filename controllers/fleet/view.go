package fleet

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/healthscope/healthscope/healthscope"
)

// BundleKey identifies a bundle among those of all clusters.
type BundleKey struct {
	// Cluster is the name of the cluster the bundle is in.
	Cluster string
	// Namespace is its namespace.
	Namespace string
	// Name is its name.
	Name string
}

// Compare sorts keys by cluster, namespace and name.
func (k BundleKey) Compare(o BundleKey) int {
	return cmp.Or(strings.Compare(k.Cluster, o.Cluster), strings.Compare(k.Namespace, o.Namespace), strings.Compare(k.Name, o.Name))
}

// Bundle is a ResourceBundleState of one cluster, judged. It is never changed once it is in a View.
type Bundle struct {
	BundleKey
	// UID is the uid of the ResourceBundleState, and ResourceVersion its version that was judged.
	UID             types.UID
	ResourceVersion string
	// App is the name of the application the bundle reports.
	App string
	// Labels are the labels of the ResourceBundleState.
	Labels map[string]string
	// Own is true when a HealthScope monitor has filled the bundle.
	Own bool
	// Observed is true when a monitor has reported on the bundle.
	Observed bool
	// Truncated is true when the bundle leaves out resources to keep within its size.
	Truncated bool
	// Malformed names the fields of the bundle that cannot be read.
	Malformed []string
	// Members are the bundle's resources.
	Members []healthscope.Member
	// Unlisted counts, by state, the resources that a truncated bundle counts and does not name. Time limits do not reach them.
	Unlisted healthscope.Summary
	// Written is when the bundle was written last, by its cluster's clock; zero when that is not known.
	Written time.Time
	// Outdated is since when the bundle does not show any more what its objects are like, because the monitor that fills it has not written that they have changed; zero when it does.
	Outdated time.Time
	// Lost is true while the bundle is stale, because of its cluster or because it is Outdated. Members are then as healthscope.MarkUnreachable makes them, and all Unlisted are Unknown.
	Lost bool
}

// StaleIn returns the bundle as it is to be shown in a cluster of that state.
func (b *Bundle) StaleIn(s ClusterState) *Bundle {
	return b.stale(s.Reachability.Reason(), s.Problem(), s.Since)
}

// stale returns the bundle as it is to be shown while it is stale.
func (b *Bundle) stale(reason healthscope.Reason, problem string, since time.Time) *Bundle {
	shown := *b
	shown.Lost = true
	shown.Members = healthscope.MarkUnreachable(b.Members, reason, problem, since)
	shown.Unlisted = b.Unlisted.MarkUnreachable()
	return &shown
}

// View holds the judged bundles of all clusters. It is safe for concurrent use.
type View struct {
	// secrets holds the Secrets of members; nil without members.
	secrets cache.Cache

	cluster string
	synced  chan struct{}
	// refresh has bundles read again that were judged by rules here.
	refresh func()

	mu sync.RWMutex
	// complete is true once it is known which clusters there are, and late when that took too long.
	complete, late bool
	// clusters are all that are known, with all of their bundles, and arrivals is how many have come into sight for the first time.
	clusters map[string]*clusterView
	arrivals uint64
	// The bundles that are shown, by what is asked for.
	bundles    map[types.NamespacedName]map[string]*Bundle
	namespaces map[string]map[types.NamespacedName]struct{}
	labelled   map[label]map[BundleKey]*Bundle
	// rejected are the Secrets that are none of a cluster.
	rejected []RejectedSecret
	// outage is that of the hub's own API server, which the state of its cluster does not show.
	outage outage
	// usedRatios returns how much clusters use of their budgets.
	usedRatios func() map[string]map[string]float64
	// record is RecordEvents.
	record func(context.Context) error
	// subscriptions are what changes are added to.
	subscriptions map[*Subscription]Topic
}

// label is a label of a bundle in a namespace.
type label struct{ namespace, key, value string }

// newView returns a view that knows the hub's own cluster, which has not been read yet.
func newView(cluster string) *View {
	v := &View{
		cluster:       cluster,
		synced:        make(chan struct{}),
		refresh:       func() {},
		usedRatios:    func() map[string]map[string]float64 { return nil },
		clusters:      map[string]*clusterView{},
		bundles:       map[types.NamespacedName]map[string]*Bundle{},
		namespaces:    map[string]map[types.NamespacedName]struct{}{},
		labelled:      map[label]map[BundleKey]*Bundle{},
		subscriptions: map[*Subscription]Topic{},
	}
	v.clusters[cluster] = &clusterView{state: ClusterState{Name: cluster, Local: true, Reachability: Connecting}, bundles: map[types.NamespacedName]*Bundle{}}
	return v
}

// Secrets returns the cache of the Secrets of members, and of no others; nil without Options.Members. The fleet starts it.
func (v *View) Secrets() cache.Cache { return v.secrets }

// RecordEvents lets the fleet record events on the Secrets of members, until ctx ends. Only the leader calls it, so that an
// event is recorded once. It begins with the warnings from before that still hold.
func (v *View) RecordEvents(ctx context.Context) error { return v.record(ctx) }

// Cluster returns the name of the cluster the hub itself is in.
func (v *View) Cluster() string { return v.cluster }

// WaitSynced blocks until the bundles of the hub's own cluster have all been
// judged once, and it is known which other clusters there are, or ctx ends. For
// the latter it waits membersGrace at most.
func (v *View) WaitSynced(ctx context.Context) error {
	select {
	case <-v.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Synced reports whether WaitSynced would return at once.
func (v *View) Synced() bool {
	select {
	case <-v.synced:
		return true
	default:
		return false
	}
}

// Ready returns nil once the view is synced, and what it waits for until then. It is fit for a readiness check.
func (v *View) Ready() error {
	if v.Synced() {
		return nil
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.isRead() {
		return errors.New("the Secrets of clusters have not been read yet")
	}
	return errors.New(cmp.Or(v.clusters[v.cluster].state.Message, "the bundles have not been read yet"))
}

// Complete reports whether it is known which clusters there are.
func (v *View) Complete() bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.complete
}

// setComplete notes that it is known which clusters there are.
func (v *View) setComplete() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.complete {
		v.complete = true
		v.changed(Clusters, CompleteChange{})
	}
	v.checkSynced()
}

// setLate notes that it takes too long to find out which clusters there are.
func (v *View) setLate() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.late = true
	v.checkSynced()
}

// checkSynced lets who waits for the view go on if it is synced. The caller holds the lock.
func (v *View) checkSynced() {
	if v.isRead() && (v.complete || v.late) && !v.Synced() {
		close(v.synced)
	}
}

// isRead reports whether the bundles of the hub's own cluster have been judged.
func (v *View) isRead() bool {
	own := v.clusters[v.cluster]
	return own.reader != nil && own.state.Reachability != Connecting
}

// Bundle returns a bundle; nil when there is none, or nothing has been read of its cluster yet.
func (v *View) Bundle(key BundleKey) *Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.bundles[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}][key.Cluster]
}

// Named returns the bundles of that name in all clusters, sorted by cluster.
func (v *View) Named(namespace, name string) []*Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedBundles(maps.Values(v.bundles[types.NamespacedName{Namespace: namespace, Name: name}]))
}

// Select returns the bundles of a namespace that a selector matches, in all
// clusters, sorted. It looks at those only that have a label which the selector asks for, if there is one.
func (v *View) Select(namespace string, selector labels.Selector) []*Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedBundles(func(yield func(*Bundle) bool) {
		for b := range v.candidates(namespace, selector) {
			if selector.Matches(labels.Set(b.Labels)) && !yield(b) {
				return
			}
		}
	})
}

// candidates returns the bundles of a namespace among which all are that a selector matches.
func (v *View) candidates(namespace string, selector labels.Selector) iter.Seq[*Bundle] {
	if key, value, ok := RequiredLabel(selector); ok {
		return maps.Values(v.labelled[label{namespace, key, value}])
	}
	return func(yield func(*Bundle) bool) {
		for name := range v.namespaces[namespace] {
			for _, b := range v.bundles[name] {
				if !yield(b) {
					return
				}
			}
		}
	}
}

// RequiredLabel returns a label without which a selector matches nothing; false
// when it does not ask for any one label. It is always the same one for a selector.
func RequiredLabel(selector labels.Selector) (key, value string, ok bool) {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				return r.Key(), values[0], true
			}
		default:
		}
	}
	return "", "", false
}

// All returns all bundles, sorted.
func (v *View) All() []*Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedBundles(func(yield func(*Bundle) bool) {
		for _, byCluster := range v.bundles {
			for _, b := range byCluster {
				if !yield(b) {
					return
				}
			}
		}
	})
}

func sortedBundles(bundles func(func(*Bundle) bool)) []*Bundle {
	return slices.SortedFunc(bundles, func(a, b *Bundle) int { return a.Compare(b.BundleKey) })
}

// Refresh reads the bundles of clusters again in which others than monitors of ours have filled some, because rules have
// changed: the hub judges these, and does not keep what it judged. Until one has been read it is shown as it was.
func (v *View) Refresh() { v.refresh() }
