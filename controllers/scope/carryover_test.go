package scope

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// inBundles returns a world with a bundle of one Deployment for each name at the second edge, and at the hub the bundle "crowd"
// with that number of failed Deployments.
func inBundles(failed int, names ...string) world {
	w := world{clusters: []string{edge1, edge2}}
	for _, name := range names {
		w.bundles = append(w.bundles, bundleOf(edge2, name, member(edge2, "Deployment", "of-"+name, healthscope.Ready, "")))
	}
	if failed > 0 {
		crowd := bundleOf(hub, "crowd")
		for i := range failed {
			crowd.Members = append(crowd.Members, member(hub, "Deployment", fmt.Sprintf("bad-%02d", i), healthscope.Failed, "CrashLoopBackOff"))
		}
		w.bundles = append(w.bundles, crowd)
	}
	return w
}

// TestCarriedOverCountsAreStable judges a scope repeatedly while an edge has been unreachable since the start of the hub. The
// status is both the input and the result of a judgement, so its counts must not change.
func TestCarriedOverCountsAreStable(t *testing.T) {
	t.Parallel()
	x := deployment("x", healthscope.Ready, 1, 1)
	objects := map[schema.GroupVersionKind]map[string]fleet.Lookup{deployments: {"x": {Result: x}}}
	ignoring := &corev1alpha2.Rollup{Ignore: []corev1alpha2.MemberMatch{{Kind: "ResourceBundleState"}}}
	for name, c := range map[string]struct {
		world  world
		spec   corev1alpha2.HealthScopeSpec
		before func(world) world
		want   corev1alpha2.Health
		// missing is the number of bundles that do not exist in clusters that can be read.
		missing int
	}{
		"two references, and no room for names": {
			world: inBundles(50, "b1", "b2"),
			spec:  corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("crowd"), at(edge2, bundleRef("b1")), at(edge2, bundleRef("b2")))},
			want:  corev1alpha2.Unhealthy,
		},
		"two references into every cluster": {
			world: inBundles(0, "b1", "b2", "b3"),
			spec:  corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("b1"), bundleRef("b2"), bundleRef("b3"))},
		},
		"two references into every cluster, lost before": {
			world:  inBundles(0, "b1", "b2", "b3"),
			spec:   corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("b1"), bundleRef("b2"), bundleRef("b3"))},
			before: func(w world) world { return w.withReachability(edge2, fleet.Unreachable) },
		},
		"two references that are expected": {
			world: func() world {
				w := inBundles(0, "b1", "b2")
				w.bundles = append(w.bundles, bundleOf(edge1, "b1", readyWeb1))
				return w
			}(),
			spec: corev1alpha2.HealthScopeSpec{
				ExpectedClusters: []string{edge1, edge2}, Apps: []corev1alpha2.ScopeApp{{Name: "sink", WorkloadReferences: refs(bundleRef("b1"), bundleRef("b2"))}},
			},
		},
		"an object and a bundle": {
			world: inBundles(0, "b1"),
			spec:  corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(at(edge2, deploymentRef("x")), at(edge2, bundleRef("b1")))},
		},
		"a bundle that does not count": {
			world: inBundles(0, "b1", "b2"),
			spec:  corev1alpha2.HealthScopeSpec{Rollup: ignoring, WorkloadReferences: refs(bundleRef("b1"), at(edge2, bundleRef("b2")))},
		},
		"one that is missing": {
			world: inBundles(0, "b1", "b2"),
			spec:  corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("b1"), bundleRef("b2"), bundleRef("b9"))},
			want:  corev1alpha2.Unhealthy, missing: 1,
		},
		"one that is missing everywhere it is expected": {
			world: func() world {
				w := inBundles(0, "b1")
				w.bundles = append(w.bundles, bundleOf(edge1, "b1", readyWeb1))
				return w
			}(),
			spec: corev1alpha2.HealthScopeSpec{
				ExpectedClusters: []string{edge1, edge2}, Apps: []corev1alpha2.ScopeApp{{Name: "sink", WorkloadReferences: refs(bundleRef("b1"), bundleRef("b9"))}},
			},
			want: corev1alpha2.Unhealthy, missing: 1,
		},
		"two apps with one bundle": {
			world: inBundles(0, "b1", "b2"),
			spec: corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{
				{Name: "c", WorkloadReferences: refs(bundleRef("b1"), bundleRef("b2"))}, {Name: "a", WorkloadReferences: refs(bundleRef("b1"))},
			}},
		},
		"two apps with one object, and a bundle that no reference names": {
			world: inBundles(0, "b1"),
			spec: corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{
				{Name: "c", WorkloadReferences: refs(at(edge2, deploymentRef("x"))), Selector: &metav1.LabelSelector{}}, {Name: "a", WorkloadReferences: refs(at(edge2, deploymentRef("x")))},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.world.objects = objects
			scope, before := scopeOf(c.spec), c.world
			if c.before != nil {
				before = c.before(before)
			}
			scope.Status = statusIn(before, scope, noon)
			total := scope.Status.Summary.Total
			for i := range 10 {
				after := statusIn(c.world.restarted(fleet.Unreachable), scope, noon.Add(time.Duration(i)*time.Minute))
				if diff := cmp.Diff(scope.Status, after); i > 1 && diff != "" {
					t.Fatalf("status %d is another than the one before: %s", i, diff)
				}
				scope.Status = after
				if want := orUnknown(c.want); after.Summary.Total != total || after.Health != want {
					t.Fatalf("status %d: %s with %+v; want %s with %d resources", i, after.Health, after.Summary, want, total)
				}
				missing := 0
				for _, culprit := range after.Culprits {
					if culprit.Reason == string(healthscope.ReasonNotFound) {
						missing++
					}
				}
				if missing != c.missing {
					t.Errorf("status %d has %d bundles that do not exist, want %d: %+v", i, missing, c.missing, after.Culprits)
				}
				for _, ref := range after.HealthConditions {
					if ref.HealthStatus == corev1alpha2.StatusHealthy {
						t.Errorf("reference %q is healthy, though its cluster cannot be read", ref.TargetWorkload.Name)
					}
				}
			}
		})
	}
}

// orUnknown returns want, or unknown if want is empty.
func orUnknown(want corev1alpha2.Health) corev1alpha2.Health {
	if want == "" {
		return corev1alpha2.UnknownHealth
	}
	return want
}

// TestIgnoredCulpritsAreNotCarriedOver changes the roll-up while a cluster is unreachable: ignored culprits are not counted
// without their names.
func TestIgnoredCulpritsAreNotCarriedOver(t *testing.T) {
	t.Parallel()
	scope := sinkIn()
	scope.Status = statusIn(edges(), scope, noon)
	scope.Spec.Rollup = &corev1alpha2.Rollup{Ignore: []corev1alpha2.MemberMatch{{Kind: "Service"}}}
	scope.Generation++
	for range 3 {
		scope.Status = statusIn(edges().restarted(fleet.Unreachable), scope, noon)
		if got := scope.Status.ResourcesReady; got != "1/2" {
			t.Errorf("resourcesReady %s; want 1/2: a Deployment at each edge", got)
		}
	}
}

// TestCarryOverOfALargeScopeIsBounded has a scope with a thousand references into a hundred unreachable clusters.
func TestCarryOverOfALargeScopeIsBounded(t *testing.T) {
	t.Parallel()
	const references, clusters, resources = 1000, 100, 50
	w := world{states: map[string]fleet.Reachability{}}
	sink := corev1alpha2.ScopeApp{Name: "sink"}
	status := corev1alpha2.AppStatus{Name: "sink"}
	for i := range references {
		sink.WorkloadReferences = append(sink.WorkloadReferences, bundleRef(fmt.Sprintf("b%d", i)))
	}
	for i := range clusters {
		cluster := fmt.Sprintf("acme+edge%03d", i)
		w.clusters, w.states[cluster] = append(w.clusters, cluster), fleet.Unreachable
		status.Clusters = append(status.Clusters, corev1alpha2.ClusterStatus{Name: cluster, Total: resources})
	}
	scope := scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{sink}})
	scope.Status.Apps, scope.Status.ObservedGeneration = []corev1alpha2.AppStatus{status}, scope.Generation
	all := gatherIn(w, scope, noon)
	results := 0
	for _, f := range all.findings {
		results += len(f.results)
	}
	if results > references*clusters {
		t.Fatalf("%d results, want one for each reference and cluster at most", results)
	}
	if got := statusIn(w, scope, noon).Summary.Total; got != clusters*resources {
		t.Errorf("%d resources, want %d", got, clusters*resources)
	}
}

// TestStatusConvergesAfterARestart judges any scope repeatedly while clusters have been unreachable since the start of the hub.
func TestStatusConvergesAfterARestart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, scope := drawWorld(t), scopeOf(drawSpec(t))
		byApp := rapid.Bool().Draw(t, "byApp")
		if byApp {
			scope.Spec.Apps = append(scope.Spec.Apps, corev1alpha2.ScopeApp{Name: "d", Selector: &metav1.LabelSelector{}})
		}
		scope.Status = statusIn(w, scope, noon)
		lost := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{edge1, edge2}), 1, 2, rapid.ID).Draw(t, "lost")
		away := w
		away.states = map[string]fleet.Reachability{}
		for _, cluster := range lost {
			away.states[cluster] = fleet.Unreachable
		}
		away.bundles = w.find(func(b *fleet.Bundle) bool { return away.states[b.Cluster] == "" })
		scope.Status = statusIn(away, scope, noon)
		first := scope.Status
		scope.Status = statusIn(away, scope, noon)
		// An expected bundle of an app may have the name of a bundle that another app has in its status. The bundle then counts
		// in the other app, and this app waits for one more bundle, once.
		overlaps := byApp && len(scope.Spec.ExpectedClusters) > 0
		if !overlaps && (first.Summary != scope.Status.Summary || first.Health != scope.Status.Health) {
			t.Fatalf("the second status counts otherwise than the first:\n%s", cmp.Diff(first, scope.Status))
		}
		if diff := cmp.Diff(scope.Status, statusIn(away, scope, noon)); diff != "" {
			t.Fatalf("the third status in a world that stays is another: -second +third:\n%s", diff)
		}
	})
}
