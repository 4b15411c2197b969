package scope

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// noon is the time of the tests.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// hub is the name of the hub's own cluster. edge1 and edge2 are the names of two members.
const (
	hub   = "local"
	edge1 = "acme+edge1"
	edge2 = "acme+edge2"
)

// world is the data that a scope can read.
type world struct {
	clusters []string
	// states are the states of the clusters that are not Connected.
	states  map[string]fleet.Reachability
	bundles []*fleet.Bundle
	// labels are the labels of the clusters.
	labels map[string]map[string]string
	// unread is a namespace that is not read in any cluster.
	unread  string
	objects map[schema.GroupVersionKind]map[string]fleet.Lookup
}

func (w world) Cluster() string { return hub }

func (w world) Clusters() []string { return append([]string{hub}, w.clusters...) }

// seenAt is the last time at which the hub saw the clusters that it does not see now.
var seenAt = noon.Add(-10 * time.Minute)

func (w world) State(cluster string) (fleet.ClusterState, bool) {
	if cluster != hub && !slices.Contains(w.clusters, cluster) {
		return fleet.ClusterState{}, false
	}
	s := fleet.ClusterState{Name: cluster, Local: cluster == hub, Reachability: fleet.Connected, Since: seenAt, LastSeen: noon}
	s.Labels = labels.Set(w.labels[cluster]).String()
	if r, ok := w.states[cluster]; ok {
		s.Reachability, s.LastSeen, s.Message = r, seenAt, "no answer"
	}
	if s.Reachability == fleet.Connecting {
		s.LastSeen = time.Time{}
	}
	return s, true
}

func (w world) Unreadable() map[string]fleet.ClusterState {
	all := map[string]fleet.ClusterState{}
	for cluster := range w.states {
		if s, known := w.State(cluster); known && !s.Answers() {
			all[cluster] = s
		}
	}
	return all
}

func (w world) FirstSyncs() uint64 { return 0 }

func (w world) CompleteFor(cluster, namespace string) bool {
	s, known := w.State(cluster)
	return namespace != w.unread && (!known || s.Answers())
}

func (w world) Named(namespace, name string) []*fleet.Bundle {
	return w.find(func(b *fleet.Bundle) bool { return b.Namespace == namespace && b.Name == name })
}

func (w world) Select(namespace string, selector labels.Selector) []*fleet.Bundle {
	return w.find(func(b *fleet.Bundle) bool { return b.Namespace == namespace && selector.Matches(labels.Set(b.Labels)) })
}

func (w world) find(match func(*fleet.Bundle) bool) []*fleet.Bundle {
	var found []*fleet.Bundle
	for _, b := range w.bundles {
		if match(b) {
			found = append(found, b)
		}
	}
	slices.SortFunc(found, func(a, b *fleet.Bundle) int { return a.Compare(b.BundleKey) })
	return found
}

// lookup returns what fleet.Objects returns for kinds that have been read.
func (w world) lookup(cluster string, gvk schema.GroupVersionKind, name types.NamespacedName) fleet.Lookup {
	unseen := healthscope.Result{
		Key:     healthscope.Key{Cluster: cluster, Group: gvk.Group, Kind: gvk.Kind, Namespace: name.Namespace, Name: name.Name},
		Version: gvk.Version,
	}
	if s, known := w.State(cluster); known && !s.Answers() {
		return fleet.Lookup{Result: unreadableResult(unseen, s, "")}
	}
	objects, ok := w.objects[gvk]
	if !ok {
		unseen.State, unseen.Reason, unseen.Message = healthscope.Unknown, healthscope.ReasonKindNotFound, "the cluster does not serve it"
		return fleet.Lookup{Result: unseen}
	}
	if found, ok := objects[name.Name]; ok {
		found.Result.Cluster = cluster
		return found
	}
	unseen.State, unseen.Reason, unseen.Message = healthscope.NotPresent, healthscope.ReasonNotFound, "it does not exist"
	return fleet.Lookup{Result: unseen}
}

// selection returns what fleet.Objects returns for kinds that have been read. A kind that is not among the objects has none.
func (w world) selection(cluster string, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) fleet.Selection {
	found := fleet.Selection{Others: w.lookup(cluster, gvk, types.NamespacedName{Namespace: namespace})}
	if found.Others.Result.Reason == healthscope.ReasonKindNotFound {
		found.Others.Result.State = healthscope.NotPresent
	}
	s, _ := w.State(cluster)
	for _, name := range slices.Sorted(maps.Keys(w.objects[gvk])) {
		if o := w.objects[gvk][name]; s.Answers() && o.Result.Cluster == cluster && selector.Matches(o.Labels) {
			found.Objects = append(found.Objects, o)
		}
	}
	return found
}

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// withDeployments returns a world with Deployments that have the given results.
func withDeployments(results ...healthscope.Result) world {
	objects := map[string]fleet.Lookup{}
	for _, r := range results {
		objects[r.Name] = fleet.Lookup{Result: r}
	}
	return world{objects: map[schema.GroupVersionKind]map[string]fleet.Lookup{deployments: objects}}
}

// deployment returns the result for a Deployment of the hub.
func deployment(name string, state healthscope.State, ready, desired int32) healthscope.Result {
	r := healthscope.Result{
		Key:     healthscope.Key{Cluster: hub, Group: "apps", Kind: "Deployment", Namespace: "shop", Name: name},
		Version: "v1", UID: "uid-" + name, State: state, Replicas: &healthscope.Replicas{Ready: ready, Desired: desired},
	}
	r.Reason = map[healthscope.State]healthscope.Reason{
		healthscope.Pending: healthscope.ReasonReplicasNotReady, healthscope.Failed: healthscope.ReasonProgressDeadlineExceeded,
	}[state]
	return r
}

// member returns a member of a bundle.
func member(cluster, kind, name string, state healthscope.State, reason healthscope.Reason) healthscope.Member {
	counts := state
	if state == healthscope.Terminating {
		counts = healthscope.Pending
	}
	group := map[string]string{"Deployment": "apps", "ReplicaSet": "apps", "StatefulSet": "apps", "PodDisruptionBudget": "policy"}[kind]
	return healthscope.Member{
		Result: healthscope.Result{
			Key:     healthscope.Key{Cluster: cluster, Group: group, Kind: kind, Namespace: "shop", Name: name},
			Version: "v1", State: state, Reason: reason, Since: noon.Add(-time.Hour),
		},
		Counts: counts,
	}
}

// owned returns the member as one that another member of its bundle owns.
func owned(m healthscope.Member) healthscope.Member {
	m.Owned = true
	return m
}

// bundleOf returns an observed bundle.
func bundleOf(cluster, name string, members ...healthscope.Member) *fleet.Bundle {
	return &fleet.Bundle{
		BundleKey: fleet.BundleKey{Cluster: cluster, Namespace: "shop", Name: name},
		UID:       types.UID("uid-" + cluster + "-" + name), App: "app-of-" + name, Observed: true, Members: members,
	}
}

// labelledWith sets the labels of a bundle, and returns it.
func labelledWith(b *fleet.Bundle, set map[string]string) *fleet.Bundle {
	b.Labels = set
	return b
}

// scopeOf returns the scope "vfw" in namespace "shop".
func scopeOf(spec corev1alpha2.HealthScopeSpec) *corev1alpha2.HealthScope {
	return &corev1alpha2.HealthScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "vfw", UID: "uid-vfw", Generation: 3},
		Spec:       spec,
	}
}

func bundleRef(name string) corev1alpha2.WorkloadReference {
	return corev1alpha2.WorkloadReference{APIVersion: "k8splugin.io/v1alpha1", Kind: "ResourceBundleState", Name: name}
}

func deploymentRef(name string) corev1alpha2.WorkloadReference {
	return corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
}

func refs(list ...corev1alpha2.WorkloadReference) []corev1alpha2.WorkloadReference { return list }

// at returns the reference with a cluster.
func at(cluster string, ref corev1alpha2.WorkloadReference) corev1alpha2.WorkloadReference {
	ref.Cluster = cluster
	return ref
}

// gathererIn returns a gatherer of the resources of a scope.
func gathererIn(w world, scope *corev1alpha2.HealthScope, now time.Time) *gatherer {
	return &gatherer{scope: scope, view: w, lookup: w.lookup, selectObjects: w.selection, now: now}
}

// gatherIn gathers the resources of a scope.
func gatherIn(w world, scope *corev1alpha2.HealthScope, now time.Time) gathered {
	return gathererIn(w, scope, now).gather()
}

// judgeIn gathers and decides for a scope.
func judgeIn(w world, scope *corev1alpha2.HealthScope, now time.Time) judgement {
	return judgeGathered(gatherIn(w, scope, now), scope, now)
}

// judgeGathered decides for a scope. The history is that in the status of the scope.
func judgeGathered(g gathered, scope *corev1alpha2.HealthScope, now time.Time) judgement {
	return decide(&scope.Spec, g, newHistory(&scope.Status), healthscope.DefaultPolicy(), now)
}

// statusIn returns the new status of a scope.
func statusIn(w world, scope *corev1alpha2.HealthScope, now time.Time) corev1alpha2.HealthScopeStatus {
	return statusFrom(w, gatherIn(w, scope, now), scope, now)
}

// statusFrom returns the new status of a scope for what has been gathered.
func statusFrom(w world, g gathered, scope *corev1alpha2.HealthScope, now time.Time) corev1alpha2.HealthScopeStatus {
	return newStatus(scope, judgeGathered(g, scope, now), externalStatus{state: w.State}, now)
}

// only returns the only element of a list.
func only[T any](t *testing.T, list []T) T {
	t.Helper()
	if len(list) != 1 {
		t.Fatalf("want one element, got %d: %+v", len(list), list)
	}
	return list[0]
}
