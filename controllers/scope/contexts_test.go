package scope

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// contexts require resources of bundles, by the names of the bundles.
type contexts struct {
	required map[string][]healthscope.Key
	// reading is the time at which the first read of the contexts began.
	reading time.Time
}

func (c contexts) Missing(bundle, _ string, members map[string][]healthscope.Member) ([]healthscope.Key, time.Time) {
	var missing []healthscope.Key
	for _, key := range c.required[bundle] {
		if !slices.ContainsFunc(members[key.Cluster], func(m healthscope.Member) bool { return m.Key == key }) {
			missing = append(missing, key)
		}
	}
	return missing, c.reading
}

func (contexts) Subscribe(func(types.NamespacedName)) {}

// shopContext returns contexts that require the Deployment "web" and the Service "front" of the bundle "7-shop" in clusters.
func shopContext(clusters ...string) contexts {
	c := contexts{required: map[string][]healthscope.Key{}}
	for _, cluster := range clusters {
		for _, m := range shopIn(cluster, true).Members {
			c.required["7-shop"] = append(c.required["7-shop"], m.Key)
		}
	}
	return c
}

// judgeWith judges a scope with contexts, and returns its status and its syncWait.
func judgeWith(w world, c Contexts, scope *corev1alpha2.HealthScope, now time.Time) (corev1alpha2.HealthScopeStatus, time.Duration) {
	g := gathererIn(w, scope, now)
	g.contexts = c
	all := g.gather()
	return statusFrom(w, all, scope, now), all.syncWait
}

// shopScope returns the scope of an app with one reference.
func shopScope(ref corev1alpha2.WorkloadReference) *corev1alpha2.HealthScope {
	return scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "shop", WorkloadReferences: refs(ref)}}})
}

// takingFrom returns a scope with the bundle "7-shop" of one cluster.
func takingFrom(cluster string) *corev1alpha2.HealthScope {
	scope := shopScope(bundleRef("7-shop"))
	scope.Spec.Apps[0].Clusters = &corev1alpha2.ClusterSelection{Names: []string{cluster}}
	return scope
}

func TestMissingResourceOfAppContextIsReported(t *testing.T) {
	t.Parallel()
	labelled := labelledWith(shopIn(edge1, true), map[string]string{corev1alpha2.LabelScopeName: "vfw"})
	truncated := shopIn(edge1, false)
	truncated.Truncated, truncated.Unlisted = true, healthscope.Summary{Total: 1, Ready: 1, Healthy: 1}
	both := []string{edge1, edge2}
	for name, c := range map[string]struct {
		world    world
		scope    *corev1alpha2.HealthScope
		requires contexts
		// want is the health, the ready resources and the culprits with their reasons.
		want string
	}{
		"all is there":                      {world{clusters: both, bundles: []*fleet.Bundle{shopIn(edge1, true), shopIn(edge2, true)}}, shopScope(bundleRef("7-shop")), shopContext(both...), "healthy 4/4"},
		"one has vanished":                  {world{clusters: both, bundles: []*fleet.Bundle{shopIn(edge1, true), shopIn(edge2, false)}}, shopScope(bundleRef("7-shop")), shopContext(both...), "unhealthy 3/4 acme+edge2/web:NotFound"},
		"it has vanished with its bundle":   {world{clusters: both, bundles: []*fleet.Bundle{shopIn(edge1, true)}}, shopScope(bundleRef("7-shop")), shopContext(both...), "unhealthy 2/4 acme+edge2/front:NotFound acme+edge2/web:NotFound"},
		"the spec names it as well":         {world{clusters: []string{edge1}, bundles: []*fleet.Bundle{shopIn(edge1, false)}}, expecting(""), shopContext(edge1), "unhealthy 1/2 acme+edge1/web:NotFound"},
		"the reference leads elsewhere":     {world{clusters: both, bundles: []*fleet.Bundle{shopIn(edge1, true)}}, shopScope(at(edge1, bundleRef("7-shop"))), shopContext(both...), "healthy 2/2"},
		"the app takes nothing from there":  {world{clusters: both, bundles: []*fleet.Bundle{shopIn(edge1, true)}}, takingFrom(edge1), shopContext(both...), "healthy 2/2"},
		"a label leads to one bundle":       {world{clusters: both, bundles: []*fleet.Bundle{labelled}}, scopeOf(corev1alpha2.HealthScopeSpec{}), shopContext(both...), "healthy 2/2"},
		"a label leads to where it was":     {world{clusters: both, bundles: []*fleet.Bundle{labelledWith(shopIn(edge1, false), labelled.Labels)}}, scopeOf(corev1alpha2.HealthScopeSpec{}), shopContext(both...), "unhealthy 1/2 acme+edge1/web:NotFound"},
		"the hub does not know the cluster": {world{clusters: []string{edge1}, bundles: []*fleet.Bundle{shopIn(edge1, true)}}, shopScope(bundleRef("7-shop")), shopContext(both...), "healthy 2/2"},
		"the namespace is not read":         {world{clusters: both, unread: "shop", bundles: []*fleet.Bundle{shopIn(edge1, true)}}, shopScope(bundleRef("7-shop")), shopContext(both...), "healthy 2/2"},
		"the cluster cannot be seen":        {world{clusters: both, states: map[string]fleet.Reachability{edge2: fleet.Unreachable}, bundles: []*fleet.Bundle{shopIn(edge1, true)}}, shopScope(bundleRef("7-shop")), shopContext(both...), "unknown 2/4 acme+edge2/acme+edge2:ClusterUnreachable acme+edge2/front:ClusterUnreachable acme+edge2/web:ClusterUnreachable"},
		"the bundle has no room for all":    {world{clusters: []string{edge1}, bundles: []*fleet.Bundle{truncated}}, shopScope(bundleRef("7-shop")), shopContext(edge1), "healthy 2/2"},
		"it is another bundle's":            {world{clusters: []string{edge1}, bundles: []*fleet.Bundle{bundleOf(edge1, "8-shop", member(edge1, "Service", "front", healthscope.Ready, ""))}}, shopScope(bundleRef("8-shop")), shopContext(edge1), "healthy 1/1"},
	} {
		s, _ := judgeWith(c.world, c.requires, c.scope, noon)
		got := string(s.Health) + " " + s.ResourcesReady
		for _, culprit := range s.Culprits {
			got += " " + culprit.Cluster + "/" + culprit.Name + ":" + culprit.Reason
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWhatAContextRequiresFails: a required resource that does not exist is Pending at first, and Failed after NotPresentGrace.
func TestWhatAContextRequiresFails(t *testing.T) {
	t.Parallel()
	w := world{clusters: []string{edge1}, bundles: []*fleet.Bundle{shopIn(edge1, false)}}
	scope := shopScope(bundleRef("7-shop"))
	scope.Status, _ = judgeWith(w, shopContext(edge1), scope, noon)
	if s := scope.Status.Summary; s.Pending != 1 || s.Failed != 0 {
		t.Errorf("at first: %+v", s)
	}
	late, _ := judgeWith(w, shopContext(edge1), scope, noon.Add(healthscope.DefaultPolicy().NotPresentGrace+time.Second))
	if s := late.Summary; s.Pending != 0 || s.Failed != 1 {
		t.Errorf("later: %+v", s)
	}
}

// TestAScopeWaitsForContexts: a scope is not reported healthy before its contexts have been read, but it waits for them only for
// connectGrace.
func TestAScopeWaitsForContexts(t *testing.T) {
	t.Parallel()
	w := world{clusters: []string{edge1}, bundles: []*fleet.Bundle{shopIn(edge1, false)}}
	scope := shopScope(bundleRef("7-shop"))
	scope.Status.ObservedGeneration = scope.Generation
	for since, want := range map[time.Duration]time.Duration{time.Second: connectGrace - time.Second, connectGrace: 0} {
		if s, syncWait := judgeWith(w, contexts{reading: noon.Add(-since)}, scope, noon); syncWait != want || s.Health != corev1alpha2.Healthy {
			t.Errorf("after %s: it waits for %s, want %s, and is %s", since, syncWait, want, s.Health)
		}
	}
}

// askedContexts records the bundles whose contexts are requested.
type askedContexts struct {
	contexts

	bundles map[string]bool
}

func (c askedContexts) Missing(bundle, namespace string, members map[string][]healthscope.Member) ([]healthscope.Key, time.Time) {
	c.bundles[bundle] = true
	return c.contexts.Missing(bundle, namespace, members)
}

// TestContextsAreCalledForBundlesOnly: carried-over resources are in a bundle that does not exist and therefore has no context.
func TestContextsAreCalledForBundlesOnly(t *testing.T) {
	t.Parallel()
	scope := scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "my-shop", WorkloadReferences: refs(bundleRef("7-shop"))}}})
	scope.Status = statusIn(world{clusters: []string{edge1}, bundles: []*fleet.Bundle{shopIn(edge1, true)}}, scope, noon)
	away := world{clusters: []string{edge1}, states: map[string]fleet.Reachability{edge1: fleet.Unreachable}}
	c := askedContexts{shopContext(edge1), map[string]bool{}}
	if s, _ := judgeWith(away, c, scope, noon); s.Summary.Total != 2 {
		t.Errorf("%d resources are carried over, want 2", s.Summary.Total)
	}
	if len(c.bundles) != 1 || !c.bundles["7-shop"] {
		t.Errorf("the contexts of %v were asked for, want 7-shop's alone", c.bundles)
	}
}
