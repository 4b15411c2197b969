package scope

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// sinkIn returns the scope of an app in every cluster that has its bundle.
func sinkIn(expected ...string) *corev1alpha2.HealthScope {
	return scopeOf(corev1alpha2.HealthScopeSpec{
		ExpectedClusters: expected,
		Apps:             []corev1alpha2.ScopeApp{{Name: "sink", WorkloadReferences: refs(bundleRef("1-sink"))}},
	})
}

// edges returns a world with the app's bundle at both edges.
func edges() world {
	return world{
		clusters: []string{edge1, edge2},
		bundles: []*fleet.Bundle{
			bundleOf(edge1, "1-sink", readyWeb1, member(edge1, "Service", "web", healthscope.Ready, "")),
			bundleOf(edge2, "1-sink", readyWeb2, member(edge2, "Service", "web", healthscope.Failed, healthscope.ReasonNotFound)),
		},
	}
}

// withReachability returns the world with a cluster that is not Connected, and with its bundles as a view then shows them.
func (w world) withReachability(cluster string, r fleet.Reachability) world {
	w.states = map[string]fleet.Reachability{cluster: r}
	var shown []*fleet.Bundle
	for _, b := range w.bundles {
		if b.Cluster == cluster {
			lost := *b
			lost.Stale = true
			lost.Members = healthscope.MarkUnreachable(b.Members, r.Reason(), `cluster "acme+edge2": no answer`, seenAt)
			b = &lost
		}
		shown = append(shown, b)
	}
	w.bundles = shown
	return w
}

// restarted returns the world in the view of a hub that was started while the second edge is not Connected: without its bundles.
func (w world) restarted(r fleet.Reachability) world {
	w.states = map[string]fleet.Reachability{edge2: r}
	w.bundles = w.find(func(b *fleet.Bundle) bool { return b.Cluster != edge2 })
	return w
}

func reachable(t *testing.T, s corev1alpha2.HealthScopeStatus) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(s.Conditions, corev1alpha2.ConditionClustersReachable)
	if c == nil {
		t.Fatal("there is no condition ClustersReachable")
	}
	return *c
}

// objectCulprits returns the culprits that are objects, without those that are clusters.
func objectCulprits(s corev1alpha2.HealthScopeStatus) []corev1alpha2.Culprit {
	return slices.DeleteFunc(slices.Clone(s.Culprits), isCluster)
}

func TestUnreachableCluster(t *testing.T) {
	t.Parallel()
	s := statusIn(edges().withReachability(edge2, fleet.Unreachable), sinkIn(), noon)
	if s.Health != corev1alpha2.UnknownHealth || s.ResourcesReady != "2/4" || s.ClustersReachable != "1/2" {
		t.Errorf("health %q, resourcesReady %q, clustersReachable %q; want unknown, 2/4 and 1/2", s.Health, s.ResourcesReady, s.ClustersReachable)
	}
	want := []corev1alpha2.ClusterStatus{
		{Name: edge2, State: "Unknown", Total: 2, LastSeen: metaTime(seenAt)},
		{Name: edge1, State: "Ready", Total: 2, Ready: 2},
	}
	if diff := cmp.Diff(want, s.Apps[0].Clusters); diff != "" {
		t.Errorf("the app's clusters: -want +got:\n%s", diff)
	}
	c := reachable(t, s)
	if want := "1 of 2 clusters are not Connected: acme+edge2: Unreachable"; c.Status != metav1.ConditionFalse || c.Reason != "Unreachable" || c.Message != want {
		t.Errorf("condition %s, %s: %s; want False, Unreachable: %s", c.Status, c.Reason, c.Message, want)
	}
	if got, want := objectCulprits(s)[0].Cause, "cluster \"acme+edge2\": no answer; last seen "; len(got) <= len(want) || got[:len(want)] != want {
		t.Errorf("the culprit's cause is %q, want one that begins with %q", got, want)
	}
}

// connectingView is a world in which a cluster becomes reachable just after its bundles were looked up.
type connectingView struct {
	world

	before world
	looked *bool
}

func (a connectingView) Unreadable() map[string]fleet.ClusterState { return a.before.Unreadable() }

func (a connectingView) Named(namespace, name string) []*fleet.Bundle {
	*a.looked = true
	return a.before.Named(namespace, name)
}

func (a connectingView) State(cluster string) (fleet.ClusterState, bool) {
	if *a.looked {
		return a.world.State(cluster)
	}
	return a.before.State(cluster)
}

func TestScopeWaitsForClusterThatConnectsWhileGathering(t *testing.T) {
	t.Parallel()
	before := world{clusters: []string{edge1, edge2}, states: map[string]fleet.Reachability{edge1: fleet.Connecting}}
	scope := sinkIn()
	scope.Status = statusIn(edges(), scope, noon)
	g := gathererIn(before, scope, seenAt.Add(time.Second))
	g.view = connectingView{edges(), before, new(bool)}
	if g.gather().syncWait <= 0 {
		t.Error("the scope is judged without the bundles of a cluster that is there")
	}
}

func TestClusterThatRecoversWhileGatheringIsUnreachable(t *testing.T) {
	t.Parallel()
	for _, r := range []fleet.Reachability{fleet.Unreachable, fleet.Forbidden, fleet.Refused} {
		scope := sinkIn()
		scope.Status = statusIn(edges(), scope, noon)
		before, now := edges().restarted(r), noon.Add(time.Minute)
		g := gathererIn(before, scope, now)
		g.view = connectingView{edges(), before, new(bool)}
		v := judgeGathered(g.gather(), scope, now)
		if s := newStatus(scope, v, externalStatus{state: before.State}, now); s.ResourcesReady != "2/4" || !slices.Equal(v.Partial, []string{edge2}) {
			t.Errorf("%s: %s ready, and there may be more in %q; want 2/4 and the edge", r, s.ResourcesReady, v.Partial)
		}
	}
}

// TestClustersReachableHasReasonOfWorstCluster has an unknown cluster, which is worse than one whose monitor is stale.
func TestClustersReachableHasReasonOfWorstCluster(t *testing.T) {
	t.Parallel()
	c := reachable(t, statusIn(edges().withReachability(edge1, fleet.MonitorStale), sinkIn(edge1, "acme+moon"), noon))
	if want := "2 of 3 clusters are not Connected: acme+edge1: MonitorStale, acme+moon: ClusterUnknown"; c.Reason != string(ReasonClusterUnknown) || c.Message != want {
		t.Errorf("%s: %s; want ClusterUnknown: %s", c.Reason, c.Message, want)
	}
}

// TestStatusIsCarriedOverARestart has a hub that starts while an edge is unreachable: the status of the scope is the only
// information about it.
func TestStatusIsCarriedOverARestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func() world
		// culprits are the causes of the culprits of the edge, by name.
		culprits map[string]string
	}{
		"restarted after the loss":  {func() world { return edges().withReachability(edge2, fleet.Unreachable) }, map[string]string{"Deployment/web": "cluster \"acme+edge2\": no answer; last seen Ready", "Service/web": "cluster \"acme+edge2\": no answer; last seen Failed (NotFound)"}},
		"restarted before the loss": {edges, map[string]string{"Service/web": "cluster \"acme+edge2\": no answer; last seen Failed (NotFound)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for app, scope := range map[string]*corev1alpha2.HealthScope{
				"by name":                            sinkIn(),
				"by cluster":                         sinkIn(edge1, edge2),
				"by two names":                       scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "sink", WorkloadReferences: refs(bundleRef("1-sink"), at(edge2, bundleRef("1-sink")))}}}),
				"by selector":                        scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "sink", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "sink"}}}}}),
				"by label":                           scopeOf(corev1alpha2.HealthScopeSpec{}),
				"by label, with an app of that name": scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "sink"}}}),
			} {
				w := c.before()
				for _, b := range w.bundles {
					b.App, b.Labels = "sink", map[string]string{"app": "sink", corev1alpha2.LabelScopeName: "vfw"}
				}
				scope.Status = statusIn(w, scope, noon)
				after := statusIn(w.restarted(fleet.Unreachable), scope, noon.Add(time.Minute))
				if v := judgeIn(w.restarted(fleet.Unreachable), scope, noon.Add(time.Minute)); !slices.Equal(v.Partial, []string{edge2}) {
					t.Errorf("%s: there may be more than is known in %q, want it in the edge", app, v.Partial)
				}
				if after.Summary.Total != 4 || after.Summary.Ready != 2 || after.Summary.Unknown != 2 || after.ClustersReachable != "1/2" {
					t.Errorf("%s: summary %+v, clusters %s; want 4 resources, 2 of them Ready and 2 Unknown, and 1/2", app, after.Summary, after.ClustersReachable)
				}
				want := corev1alpha2.ClusterStatus{Name: edge2, State: "Unknown", Total: 2, LastSeen: metaTime(seenAt)}
				if diff := cmp.Diff(want, after.Apps[0].Clusters[0]); diff != "" {
					t.Errorf("%s: the app in the lost cluster: -want +got:\n%s", app, diff)
				}
				got := map[string]string{}
				for _, culprit := range objectCulprits(after) {
					got[culprit.Kind+"/"+culprit.Name] = culprit.Cause
				}
				if diff := cmp.Diff(c.culprits, got); diff != "" {
					t.Errorf("%s: causes: -want +got:\n%s", app, diff)
				}
				scope.Status = after
				if diff := cmp.Diff(after, statusIn(w.restarted(fleet.Unreachable), scope, noon.Add(2*time.Minute))); diff != "" {
					t.Errorf("%s: the status is written again, though nothing has changed:\n%s", app, diff)
				}
			}
		})
	}
}

// TestUnnamedResourcesAreCarriedOver has a lost cluster with only ready resources, which the status does not name.
func TestUnnamedResourcesAreCarriedOver(t *testing.T) {
	t.Parallel()
	w := edges()
	w.bundles[1].Members = []healthscope.Member{readyWeb2, member(edge2, "Service", "a", healthscope.Ready, ""), member(edge2, "Service", "b", healthscope.Ready, "")}
	scope := sinkIn()
	scope.Status = statusIn(w, scope, noon)
	after := statusIn(w.restarted(fleet.Forbidden), scope, noon)
	if after.ResourcesReady != "2/5" || after.Summary.Unknown != 3 {
		t.Errorf("resourcesReady %s, %d unknown; want 2/5 and 3", after.ResourcesReady, after.Summary.Unknown)
	}
	if c := objectCulprits(after); len(c) != 1 || c[0].Kind != "ResourceBundleState" || c[0].Cause != "cluster \"acme+edge2\": no answer; last seen Ready, 3/3 ready" {
		t.Errorf("culprits %+v; want the bundle alone, last seen Ready, 3/3 ready", after.Culprits)
	}
	// The status is not used for a cluster that responds, even if its monitor is stale.
	if got := statusIn(w.restarted(fleet.MonitorStale), scope, noon); got.ResourcesReady != "2/2" {
		t.Errorf("resourcesReady %s; want 2/2: the bundle is not there", got.ResourcesReady)
	}
	// A cluster that the hub no longer knows is removed.
	w = w.restarted(fleet.Unreachable)
	w.clusters = []string{edge1}
	if got := statusIn(w, scope, noon); got.ResourcesReady != "2/2" || got.ClustersReachable != "1/1" {
		t.Errorf("resourcesReady %s, clustersReachable %s; want 2/2 and 1/1: its Secret was removed", got.ResourcesReady, got.ClustersReachable)
	}
	// Resources that the spec no longer selects are not carried over.
	scope.Spec.Apps[0].WorkloadReferences = refs(at(edge1, bundleRef("1-sink")))
	scope.Generation++
	if got := statusIn(w, scope, noon); got.ResourcesReady != "2/2" {
		t.Errorf("resourcesReady %s; want 2/2: the scope refers to the other edge only", got.ResourcesReady)
	}
}

// TestAScopeWaitsForItsClusters has a hub that has just been started.
func TestAScopeWaitsForItsClusters(t *testing.T) {
	t.Parallel()
	carrying := sinkIn()
	carrying.Status = statusIn(edges(), carrying, noon)
	w := edges().restarted(fleet.Connecting)
	judged := func(s *corev1alpha2.HealthScope) *corev1alpha2.HealthScope {
		s.Status.ObservedGeneration = s.Generation
		return s
	}
	for name, c := range map[string]struct {
		scope *corev1alpha2.HealthScope
		want  time.Duration
	}{
		"one whose status has it": {carrying, 5 * time.Second},
		"one that expects it":     {judged(sinkIn(edge1, edge2)), 5 * time.Second},
		"one that names it":       {judged(scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(at(edge2, bundleRef("1-sink")))})), 5 * time.Second},
		"one that refers into it": {judged(scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(at(edge2, deploymentRef("web")))})), 5 * time.Second},
		"one that may be in it":   {judged(sinkIn()), 0},
		"one that is elsewhere":   {judged(scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(at(edge1, bundleRef("1-sink")))})), 0},
	} {
		since := seenAt
		begin := since.Add(connectGrace - 5*time.Second)
		if got := gatherIn(w, c.scope, begin).syncWait; got != c.want {
			t.Errorf("%s waits %s, want %s", name, got, c.want)
		}
		if got := gatherIn(w, c.scope, since.Add(connectGrace)).syncWait; got != 0 {
			t.Errorf("%s waits %s longer than the time of grace", name, got)
		}
	}
}

// TestReferenceWithCluster has references to objects in other clusters.
func TestReferenceWithCluster(t *testing.T) {
	t.Parallel()
	there := healthscope.Result{Key: healthscope.Key{Cluster: edge1, Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Version: "v1", UID: "u", State: healthscope.Ready}
	w := world{clusters: []string{edge1, edge2}, states: map[string]fleet.Reachability{edge2: fleet.Connecting}, objects: map[schema.GroupVersionKind]map[string]fleet.Lookup{
		deployments: {"web": {Result: there}},
	}}
	for cluster, want := range map[string]healthscope.Result{
		edge1:       {State: healthscope.Ready},
		edge2:       {State: healthscope.Unknown, Reason: healthscope.ReasonClusterConnecting},
		"acme+moon": {State: healthscope.Unknown, Reason: healthscope.ReasonUnknownCluster},
	} {
		scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(at(cluster, deploymentRef("web")))})
		got := only(t, judgeIn(w, scope, noon).Members)
		if got.Cluster != cluster || got.State != want.State || got.Reason != want.Reason {
			t.Errorf("in %s: %s %s of %s; want %s %s", cluster, got.State, got.Reason, got.Cluster, want.State, want.Reason)
		}
	}
}
