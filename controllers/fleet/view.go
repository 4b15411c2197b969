package fleet

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

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
	// UID is the uid of the ResourceBundleState.
	UID types.UID
	// App is the name of the application the bundle reports.
	App string
	// Labels are the labels of the ResourceBundleState.
	Labels map[string]string
	// Observed is true when a monitor has reported on the bundle.
	Observed bool
	// Truncated is true when the bundle leaves out resources to keep within its size.
	Truncated bool
	// Malformed names the fields of the bundle that cannot be read.
	Malformed []string
	// Members are the bundle's resources.
	Members []healthscope.Member
}

// Change tells of a bundle that came, changed or went. Old is nil when it came, New when it went.
type Change struct {
	Old, New *Bundle
}

// View holds the judged bundles of all clusters. It is safe for concurrent use.
type View struct {
	cluster string
	synced  chan struct{}

	mu          sync.RWMutex
	bundles     map[types.NamespacedName]map[string]*Bundle
	namespaces  map[string]map[types.NamespacedName]struct{}
	subscribers map[int]func(Change)
	next        int
}

// newView returns an empty view of one cluster.
func newView(cluster string) *View {
	return &View{
		cluster:     cluster,
		synced:      make(chan struct{}),
		bundles:     map[types.NamespacedName]map[string]*Bundle{},
		namespaces:  map[string]map[types.NamespacedName]struct{}{},
		subscribers: map[int]func(Change){},
	}
}

// Cluster returns the name of the cluster the hub itself is in.
func (v *View) Cluster() string { return v.cluster }

// Clusters returns the names of the known clusters, sorted.
func (v *View) Clusters() []string { return []string{v.cluster} }

// WaitSynced blocks until the bundles of the hub's own cluster have all been judged once, or ctx ends.
func (v *View) WaitSynced(ctx context.Context) error {
	select {
	case <-v.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Synced says whether WaitSynced would return at once.
func (v *View) Synced() bool {
	select {
	case <-v.synced:
		return true
	default:
		return false
	}
}

// Named returns the bundles of that name in all clusters, sorted by cluster.
func (v *View) Named(namespace, name string) []*Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedBundles(maps.Values(v.bundles[types.NamespacedName{Namespace: namespace, Name: name}]))
}

// Select returns the bundles of a namespace that a selector matches, in all clusters, sorted.
func (v *View) Select(namespace string, selector labels.Selector) []*Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedBundles(func(yield func(*Bundle) bool) {
		for name := range v.namespaces[namespace] {
			for _, b := range v.bundles[name] {
				if selector.Matches(labels.Set(b.Labels)) && !yield(b) {
					return
				}
			}
		}
	})
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

// Subscribe calls notify for every change from now on, one at a time, until the returned function is called. notify must not block and must not call the view.
func (v *View) Subscribe(notify func(Change)) (cancel func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := v.next
	v.next++
	v.subscribers[id] = notify
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.subscribers, id)
	}
}

// put stores a bundle, or with nil removes it, and tells the subscribers if that makes a difference.
func (v *View) put(key BundleKey, b *Bundle) {
	v.mu.Lock()
	defer v.mu.Unlock()
	name := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
	old := v.bundles[name][key.Cluster]
	if b == nil {
		v.remove(name, key.Cluster)
	} else {
		if v.bundles[name] == nil {
			v.bundles[name] = map[string]*Bundle{}
		}
		v.bundles[name][key.Cluster] = b
		if v.namespaces[key.Namespace] == nil {
			v.namespaces[key.Namespace] = map[types.NamespacedName]struct{}{}
		}
		v.namespaces[key.Namespace][name] = struct{}{}
	}
	if same(old, b) {
		return
	}
	for _, notify := range v.subscribers {
		notify(Change{Old: old, New: b})
	}
}

func (v *View) remove(name types.NamespacedName, cluster string) {
	delete(v.bundles[name], cluster)
	if len(v.bundles[name]) > 0 {
		return
	}
	delete(v.bundles, name)
	delete(v.namespaces[name.Namespace], name)
	if len(v.namespaces[name.Namespace]) == 0 {
		delete(v.namespaces, name.Namespace)
	}
}

func sortedBundles(bundles func(func(*Bundle) bool)) []*Bundle {
	return slices.SortedFunc(bundles, func(a, b *Bundle) int { return a.Compare(b.BundleKey) })
}
