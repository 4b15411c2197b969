package scope

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// There are few names, so that generated objects match each other.
var (
	someNames   = rapid.SampledFrom([]string{"a", "b", "c"})
	someStates  = rapid.SampledFrom(healthscope.States())
	someReasons = rapid.SampledFrom([]healthscope.Reason{"", "CrashLoopBackOff", healthscope.ReasonReplicasNotReady, healthscope.ReasonNotFound})
	someKinds   = rapid.SampledFrom([]string{"Deployment", "Pod", "ResourceBundleState"})
)

// drawMember draws a member of a cluster.
func drawMember(t *rapid.T, cluster string) healthscope.Member {
	// A bundle does not list missing resources.
	state := someStates.Filter(func(s healthscope.State) bool { return s != healthscope.NotPresent }).Draw(t, "state")
	m := member(cluster, someKinds.Draw(t, "kind"), someNames.Draw(t, "member"), state, someReasons.Draw(t, "reason"))
	m.Owned, m.Serving = rapid.Bool().Draw(t, "owned"), rapid.Bool().Draw(t, "serving")
	m.Cause, m.Message = rapid.SampledFrom([]string{"", "Pod a-0: x"}).Draw(t, "cause"), rapid.SampledFrom([]string{"", "y"}).Draw(t, "message")
	m.Since = noon
	if state != healthscope.Pending { // A member that is Pending for long would be Failed in its bundle.
		m.Since = noon.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Hour)
	}
	return m
}

// drawBundle draws a bundle. A name has one bundle in a cluster.
func drawBundle(t *rapid.T, cluster, name string) *fleet.Bundle {
	b := bundleOf(cluster, name)
	b.Observed, b.App = rapid.Bool().Draw(t, "observed"), name
	if rapid.Bool().Draw(t, "malformed") {
		b.Malformed = []string{"podStatuses[1]"}
	}
	b.Labels = rapid.MapOf(
		rapid.SampledFrom([]string{"app", "healthscope.core.oam.dev/name", "healthscope.core.oam.dev/vfw"}),
		rapid.SampledFrom([]string{"sink", "vfw", "true"}),
	).Draw(t, "labels")
	seen := map[healthscope.Key]struct{}{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		m := drawMember(t, cluster)
		if _, ok := seen[m.Key]; !ok {
			seen[m.Key] = struct{}{}
			b.Members = append(b.Members, m)
		}
	}
	return b
}

// drawRef draws a reference, which is valid most of the time.
func drawRef(t *rapid.T) corev1alpha2.WorkloadReference {
	ref := rapid.SampledFrom([]corev1alpha2.WorkloadReference{
		{APIVersion: "apps/v1", Kind: "Deployment"}, {APIVersion: "apps/v1beta1", Kind: "Deployment"}, {APIVersion: "v1", Kind: "Pod"},
		{APIVersion: "k8splugin.io/v1alpha1", Kind: "ResourceBundleState"}, {APIVersion: "a/b/c", Kind: "Pod"}, {Kind: "Pod"}, {APIVersion: "v1"},
	}).Draw(t, "ref")
	ref.Name = rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "name")
	ref.Cluster = rapid.SampledFrom([]string{"", hub, edge1, "acme+moon"}).Draw(t, "cluster")
	ref.Namespace = rapid.SampledFrom([]string{"", "", "shop", "other"}).Draw(t, "namespace")
	ref.UID = rapid.SampledFrom([]types.UID{"", "", "uid-a", "uid-local-a", "meant"}).Draw(t, "uid")
	return ref
}

// drawSpec draws the spec of a scope.
func drawSpec(t *rapid.T) corev1alpha2.HealthScopeSpec {
	some := func(most int) []corev1alpha2.WorkloadReference {
		return rapid.SliceOfN(rapid.Custom(drawRef), 0, most).Draw(t, "refs")
	}
	spec := corev1alpha2.HealthScopeSpec{WorkloadReferences: some(5)}
	for _, name := range rapid.SliceOfNDistinct(someNames, 0, 3, rapid.ID).Draw(t, "apps") {
		app := corev1alpha2.ScopeApp{Name: name, WorkloadReferences: some(4)}
		if rapid.Bool().Draw(t, "selects") {
			app.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "sink"}}
		}
		if rapid.Bool().Draw(t, "links") {
			app.Inventory = &corev1alpha2.InventoryLinks{GenericVNFID: "vnf-" + name}
		}
		spec.Apps = append(spec.Apps, app)
	}
	spec.ExpectedClusters = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{hub, edge1, edge2, "acme+moon"}), 0, 3, rapid.ID).Draw(t, "expected")
	if rapid.Bool().Draw(t, "rollup") {
		spec.Rollup = &corev1alpha2.Rollup{
			HealthyPercentage: new(rapid.Int32Range(0, 100).Draw(t, "percentage")),
			Required:          rapid.SliceOfNDistinct(someNames, 0, 2, rapid.ID).Draw(t, "required"),
			Ignore:            []corev1alpha2.MemberMatch{{Kind: someKinds.Draw(t, "ignoredKind"), App: someNames.Draw(t, "ignoredApp")}},
		}
	}
	return spec
}

// drawWorld draws the data that a scope can read.
func drawWorld(t *rapid.T) world {
	var results []healthscope.Result
	for _, name := range rapid.SliceOfNDistinct(someNames, 0, 3, rapid.ID).Draw(t, "deployments") {
		r := deployment(name, someStates.Draw(t, "state"), 1, 2)
		r.Serving = rapid.Bool().Draw(t, "serving")
		results = append(results, r)
	}
	w := withDeployments(results...)
	w.clusters = []string{hub, edge1, edge2}
	for _, cluster := range w.clusters {
		for _, name := range rapid.SliceOfNDistinct(someNames, 0, 3, rapid.ID).Draw(t, "bundles") {
			w.bundles = append(w.bundles, drawBundle(t, cluster, name))
		}
	}
	return w
}

// shuffled returns the same world and spec in another order.
func shuffled(t *rapid.T, w world, spec *corev1alpha2.HealthScopeSpec) (world, corev1alpha2.HealthScopeSpec) {
	other := *spec.DeepCopy()
	other.WorkloadReferences = rapid.Permutation(other.WorkloadReferences).Draw(t, "refs")
	for i := range other.Apps {
		other.Apps[i].WorkloadReferences = rapid.Permutation(other.Apps[i].WorkloadReferences).Draw(t, "refs")
	}
	other.Apps = rapid.Permutation(other.Apps).Draw(t, "apps")
	other.ExpectedClusters = rapid.Permutation(other.ExpectedClusters).Draw(t, "expected")
	if other.Rollup != nil {
		other.Rollup.Required = rapid.Permutation(other.Rollup.Required).Draw(t, "required")
	}
	mixed := w
	mixed.bundles = nil
	for _, b := range rapid.Permutation(w.bundles).Draw(t, "bundles") {
		again := *b
		again.Members = rapid.Permutation(b.Members).Draw(t, "members")
		mixed.bundles = append(mixed.bundles, &again)
	}
	return mixed, other
}

func TestNothingDependsOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, spec := drawWorld(t), drawSpec(t)
		mixed, other := shuffled(t, w, &spec)
		want, got := judgeIn(w, scopeOf(spec), noon), judgeIn(mixed, scopeOf(other), noon)
		if diff := cmp.Diff(want.Members, got.Members); diff != "" {
			t.Fatalf("the members differ: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(statusIn(w, scopeOf(spec), noon), statusIn(mixed, scopeOf(other), noon)); diff != "" {
			t.Fatalf("the status differs: -want +got:\n%s", diff)
		}
	})
}

func TestTimeAloneChangesNothingBeforeTheNextCheck(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, scope := drawWorld(t), scopeOf(drawSpec(t))
		policy := healthscope.DefaultPolicy()
		since := newHistory(&scope.Status)
		judge := func(now time.Time) (judgement, corev1alpha2.HealthScopeStatus) {
			g := gatherIn(w, scope, noon)
			v := decide(&scope.Spec, g, since, policy, now)
			return v, newStatus(scope, v, externalStatus{state: w.State}, now)
		}
		v, first := judge(noon)
		scope.Status = first
		later := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "later"))
		if next := healthscope.Until(v.nextCheck, noon); next > 0 && later >= next {
			later = next - 1
		}
		if _, again := judge(noon.Add(later)); !cmp.Equal(first, again) {
			t.Fatalf("the status changes %s later: -first +again:\n%s", later, cmp.Diff(first, again))
		}
		// After a restart the status is the only history.
		since = newHistory(&first)
		if _, again := judge(noon.Add(later)); !cmp.Equal(first, again) {
			t.Fatalf("the status changes by a restart %s later: -first +again:\n%s", later, cmp.Diff(first, again))
		}
	})
}

func TestCountsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, spec := drawWorld(t), drawSpec(t)
		v, s := judgeIn(w, scopeOf(spec), noon), statusIn(w, scopeOf(spec), noon)
		checkBounds(t, s)
		if sum := s.Summary.Ready + s.Summary.Pending + s.Summary.Failed + s.Summary.Unknown; sum != s.Summary.Total {
			t.Fatalf("%+v: the states add up to %d", s.Summary, sum)
		}
		var inApps, inClusters int32
		for _, a := range s.Apps {
			inApps += a.Total
			for _, c := range a.Clusters {
				inClusters += c.Total
			}
		}
		if inApps != s.Summary.Total || inClusters != s.Summary.Total {
			t.Fatalf("%d members count, %d in apps, %d in clusters of apps", s.Summary.Total, inApps, inClusters)
		}
		c := s.ScopeHealthCondition
		if c.Total != int64(len(v.refs)) || c.Total != c.HealthyWorkloads+c.UnhealthyWorkloads+c.UnknownWorkloads || c.Total != int64(len(s.HealthConditions)) {
			t.Fatalf("%d references with %d conditions are counted as %+v", len(v.refs), len(s.HealthConditions), c)
		}
		if strings.ToLower(string(c.HealthStatus)) != string(s.Health) {
			t.Fatalf("the scope is %s, and %s in OAM's words", s.Health, c.HealthStatus)
		}
		seen := map[healthscope.Key]struct{}{}
		for _, p := range v.Members {
			if _, twice := seen[p.Key]; twice {
				t.Fatalf("%s is a member twice", p.Key)
			}
			seen[p.Key] = struct{}{}
		}
	})
}

func FuzzReferences(f *testing.F) {
	f.Add("apps/v1", "Deployment", "web", "", "", "")
	f.Add("k8splugin.io/v1alpha1", "ResourceBundleState", "1-sink", "shop", "acme+edge1", "uid")
	f.Add("a/b/c", "", "\x00", "other", "\xff", strings.Repeat("u", 1000))
	f.Fuzz(func(t *testing.T, apiVersion, kind, name, namespace, cluster, uid string) {
		ref := corev1alpha2.WorkloadReference{APIVersion: apiVersion, Kind: kind, Name: name, Namespace: namespace, Cluster: cluster, UID: types.UID(uid)}
		w := withDeployments(deployment("web", healthscope.Ready, 1, 1))
		w.bundles = []*fleet.Bundle{bundleOf(hub, "1-sink", readyWeb)}
		scope := scopeOf(corev1alpha2.HealthScopeSpec{
			WorkloadReferences: refs(ref), Apps: []corev1alpha2.ScopeApp{{Name: "a", WorkloadReferences: refs(ref, ref)}}, ExpectedClusters: []string{cluster, hub},
		})
		s := statusIn(w, scope, noon)
		checkBounds(t, s)
		if s.ScopeHealthCondition.Total != 3 {
			t.Errorf("each reference counts once for OAM: got %d", s.ScopeHealthCondition.Total)
		}
		if s.Health == corev1alpha2.Healthy && s.Summary.Ready == 0 {
			t.Errorf("a reference that leads nowhere is healthy: %s", fmt.Sprintf("%+v", ref))
		}
	})
}
