package fleet

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// bundleStore stores the bundles that one connection reads, by the namespace that is read. The empty namespace stands for all.
type bundleStore map[string]*observe.Store[*cachedBundle]

// newBundleStore returns a store of the bundles in the namespaces of a cluster. It evaluates the rules when a bundle comes in,
// and does not keep the objects. userRules may be nil. The store calls changed for each bundle that changes after all have been read.
func newBundleStore(cluster string, namespaces []string, userRules rules.UserRules, changed func(types.NamespacedName)) bundleStore {
	s := bundleStore{}
	for _, namespace := range namespaces {
		s[namespace] = observe.NewStore(func(object any) *cachedBundle {
			b, ok := object.(*k8spluginv1alpha1.ResourceBundleState)
			if !ok { // A client returns nothing else than it was asked for.
				return &cachedBundle{}
			}
			return newCachedBundle(cluster, b, userRules)
		}, func(_, _ *cachedBundle) bool { return false }, func(name types.NamespacedName, _, _ *cachedBundle) { changed(name) })
	}
	return s
}

// get returns a bundle; nil when it does not exist.
func (s bundleStore) get(name types.NamespacedName) *cachedBundle {
	for _, namespace := range []string{"", name.Namespace} {
		if store := s[namespace]; store != nil {
			b, _ := store.Get(name)
			return b
		}
	}
	return nil
}

// names returns the names of all bundles.
func (s bundleStore) names() []types.NamespacedName {
	var names []types.NamespacedName
	for _, store := range s {
		for name := range store.All() {
			names = append(names, name)
		}
	}
	return names
}

// hasForeign reports whether a monitor other than HealthScope's fills any of the bundles.
func (s bundleStore) hasForeign() bool {
	for _, store := range s {
		for _, b := range store.All() {
			if !b.Own {
				return true
			}
		}
	}
	return false
}

// cachedBundle is a bundle before it is judged: it has no Members, but the results that they are judged from.
type cachedBundle struct {
	Bundle

	results []healthscope.Result
}

// newCachedBundle returns the part of a bundle that is kept. It stores values that its resources share once.
func newCachedBundle(cluster string, b *k8spluginv1alpha1.ResourceBundleState, userRules rules.UserRules) *cachedBundle {
	app := bundle.App(b)
	written, _ := k8spluginv1alpha1.LastWrite(b.ManagedFields)
	outdated := outdatedSince(b, written)
	bundle.Trim(b, userRules)
	contents := bundle.Read(cluster, b)
	return &cachedBundle{results: internResults(contents.Results), Bundle: Bundle{
		BundleKey: BundleKey{Cluster: cluster, Namespace: intern(b.Namespace), Name: b.Name}, UID: b.UID, ResourceVersion: b.ResourceVersion,
		App: intern(app), Labels: internLabels(b.Labels), Own: contents.Own, Observed: contents.Observed, Truncated: contents.Truncated,
		Malformed: contents.Malformed, Unlisted: contents.Unlisted, WrittenAt: written, OutdatedSince: outdated,
	}}
}

// outdatedSince returns since when a bundle of another monitor, last written at a time, no longer matches its objects. An
// annotation of HealthScope's monitor, which has yielded to the other one, says so. It returns zero when there is no such
// annotation, or when the annotation is about an earlier write.
func outdatedSince(b *k8spluginv1alpha1.ResourceBundleState, written time.Time) time.Time {
	mark, err := k8spluginv1alpha1.ParseOutOfDate(b.Annotations[k8spluginv1alpha1.AnnotationOutOfDate])
	if err != nil || b.Status.Summary != nil || !mark.Written.Equal(written) {
		return time.Time{}
	}
	return mark.Since
}

// internResults returns the results with equal values shared between them.
func internResults(results []healthscope.Result) []healthscope.Result {
	results = slices.Clip(slices.Clone(results))
	var sets []map[string]string
	owners := map[healthscope.Owner]*healthscope.Owner{}
	replicas := map[healthscope.Replicas]*healthscope.Replicas{}
	for i := range results {
		r := &results[i]
		r.Group, r.Kind, r.Namespace, r.Version = intern(r.Group), intern(r.Kind), intern(r.Namespace), intern(r.Version)
		r.State, r.Reason, r.Message = intern(r.State), intern(r.Reason), intern(r.Message)
		if r.Owner != nil {
			if owners[*r.Owner] == nil {
				owners[*r.Owner] = r.Owner
			}
			r.Owner = owners[*r.Owner]
		}
		if r.Replicas != nil {
			if replicas[*r.Replicas] == nil {
				replicas[*r.Replicas] = r.Replicas
			}
			r.Replicas = replicas[*r.Replicas]
		}
		r.Labels, sets = dedupeLabels(r.Labels, sets)
	}
	return results
}

// maxLabelSets is the maximum number of label sets that dedupeLabels compares with.
const maxLabelSets = 16

// dedupeLabels returns a set equal to the given one, which is one of sets if possible, and sets with the new set appended while there are fewer than maxLabelSets.
func dedupeLabels(set map[string]string, sets []map[string]string) (map[string]string, []map[string]string) {
	if len(set) == 0 {
		return nil, sets
	}
	if at := slices.IndexFunc(sets, func(known map[string]string) bool { return maps.Equal(known, set) }); at >= 0 {
		return sets[at], sets
	}
	set = internLabels(set)
	if len(sets) < maxLabelSets {
		sets = append(sets, set)
	}
	return set, sets
}

func internLabels(set map[string]string) map[string]string {
	if len(set) == 0 {
		return nil
	}
	interned := make(map[string]string, len(set))
	for key, value := range set {
		interned[intern(key)] = intern(value)
	}
	return interned
}
