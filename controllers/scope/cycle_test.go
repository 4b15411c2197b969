package scope

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

func scopeRef(name string) corev1alpha2.WorkloadReference {
	return corev1alpha2.WorkloadReference{APIVersion: "core.oam.dev/v1alpha2", Kind: "HealthScope", Name: name}
}

// namedScope returns a scope with a name and references.
func namedScope(name string, list ...corev1alpha2.WorkloadReference) corev1alpha2.HealthScope {
	s := scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "parts", WorkloadReferences: list}}})
	s.Name, s.UID = name, types.UID("uid-"+name)
	return *s
}

// gatherScopes gathers what the references of the first of the scopes of a namespace lead to.
func gatherScopes(all ...corev1alpha2.HealthScope) (world, gathered) {
	objects := map[string]fleet.Lookup{}
	for _, s := range all {
		objects[s.Name] = fleet.Lookup{Result: healthscope.Result{
			Key:     healthscope.Key{Group: "core.oam.dev", Kind: "HealthScope", Namespace: "shop", Name: s.Name},
			Version: "v1alpha2", UID: string(s.UID), State: healthscope.Pending, Reason: healthscope.ReasonReadyFalse,
		}}
	}
	w := world{clusters: []string{edge1}, objects: map[schema.GroupVersionKind]map[string]fleet.Lookup{{Group: "core.oam.dev", Version: "v1alpha2", Kind: "HealthScope"}: objects}}
	g := gathererIn(w, &all[0], noon)
	g.referrers = referrersOf(&all[0], all, hub)
	return w, g.gather()
}

// judgeScopes returns the results of the references of the first of the scopes of a namespace, in the order of its spec.
func judgeScopes(all ...corev1alpha2.HealthScope) []healthscope.Result {
	_, g := gatherScopes(all...)
	var results []healthscope.Result
	for _, f := range g.findings {
		results = append(results, f.results...)
	}
	return results
}

func TestReferencesThatLeadBack(t *testing.T) {
	t.Parallel()
	withUID := scopeRef("a")
	withUID.UID = "uid-of-an-older-one"
	elsewhere := scopeRef("a")
	elsewhere.Namespace = "other"
	cases := map[string]struct {
		scopes []corev1alpha2.HealthScope
		// want has true for each reference of the first scope that leads back.
		want []bool
	}{
		"Itself":             {[]corev1alpha2.HealthScope{namedScope("a", scopeRef("a"))}, []bool{true}},
		"Two":                {[]corev1alpha2.HealthScope{namedScope("a", scopeRef("b")), namedScope("b", scopeRef("a"))}, []bool{true}},
		"Three":              {[]corev1alpha2.HealthScope{namedScope("a", scopeRef("b")), namedScope("b", scopeRef("c")), namedScope("c", scopeRef("a"))}, []bool{true}},
		"OneOfTwo":           {[]corev1alpha2.HealthScope{namedScope("a", scopeRef("leaf"), scopeRef("b")), namedScope("b", scopeRef("a")), namedScope("leaf")}, []bool{false, true}},
		"NotAMember":         {[]corev1alpha2.HealthScope{namedScope("out", scopeRef("a")), namedScope("a", scopeRef("b")), namedScope("b", scopeRef("a"))}, []bool{false}},
		"ATree":              {[]corev1alpha2.HealthScope{namedScope("a", scopeRef("b"), scopeRef("c")), namedScope("b", scopeRef("c")), namedScope("c")}, []bool{false, false}},
		"TheHubByName":       {[]corev1alpha2.HealthScope{namedScope("a", at(hub, scopeRef("b"))), namedScope("b", at(hub, scopeRef("a")))}, []bool{true}},
		"IntoAnother":        {[]corev1alpha2.HealthScope{namedScope("a", at(edge1, scopeRef("b"))), namedScope("b", scopeRef("a"))}, []bool{false}},
		"BackFromAnother":    {[]corev1alpha2.HealthScope{namedScope("a", scopeRef("b")), namedScope("b", at(edge1, scopeRef("a")))}, []bool{false}},
		"AnotherNamespace":   {[]corev1alpha2.HealthScope{namedScope("a", scopeRef("b")), namedScope("b", elsewhere)}, []bool{false}},
		"AnotherUID":         {[]corev1alpha2.HealthScope{namedScope("a", scopeRef("b")), namedScope("b", withUID)}, []bool{false}},
		"AnotherUIDOfItsOwn": {[]corev1alpha2.HealthScope{namedScope("a", withUID)}, []bool{false}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results := judgeScopes(c.scopes...)
			for i, want := range c.want {
				r := results[i]
				if got := r.Reason == healthscope.ReasonReferenceCycle; got != want || got && r.State != healthscope.Unknown {
					t.Errorf("reference %d is %s, %s: %q; want a cycle: %t", i, r.State, r.Reason, r.Message, want)
				}
			}
		})
	}
}

// TestTheSearchForCyclesIsBounded: a namespace may have thousands of scopes, and a scope thousands of references. The search is
// limited.
func TestTheSearchForCyclesIsBounded(t *testing.T) {
	t.Parallel()
	var ring []corev1alpha2.HealthScope
	for i := range 1000 {
		ring = append(ring, namedScope(fmt.Sprintf("s%d", i), scopeRef(fmt.Sprintf("s%d", (i+1)%1000))))
	}
	if r := judgeScopes(ring...)[0]; r.Reason != healthscope.ReasonReferenceCycle {
		t.Errorf("a reference in a cycle of 1000 scopes is %s, %s", r.State, r.Reason)
	}
	var many []corev1alpha2.WorkloadReference
	for i := range 5000 {
		many = append(many, scopeRef(fmt.Sprintf("x%d", i)))
	}
	own := judgeScopes(namedScope("a", append(many, scopeRef("z"))...), namedScope("b", many...), namedScope("z", scopeRef("a")))
	if r := own[len(own)-1]; r.Reason != healthscope.ReasonReferenceCycle {
		t.Errorf("the scope's own references count: one that leads back is %s, %s", r.State, r.Reason)
	}
	crowd := []corev1alpha2.HealthScope{namedScope("a", scopeRef("z"))}
	for i := range 3 {
		crowd = append(crowd, namedScope(fmt.Sprintf("b%d", i), many...))
	}
	crowd = append(crowd, namedScope("z", scopeRef("a")))
	if r := judgeScopes(crowd...)[0]; r.Reason == healthscope.ReasonReferenceCycle {
		t.Error("the references of all scopes are followed, however many there are")
	}
}

func TestAScopeInACycleSaysSoInReady(t *testing.T) {
	t.Parallel()
	a, b := namedScope("a", scopeRef("b")), namedScope("b", scopeRef("a"))
	w, g := gatherScopes(a, b)
	s := statusFrom(w, g, &a, noon)
	ready := meta.FindStatusCondition(s.Conditions, corev1alpha2.ConditionReady)
	if s.Health != corev1alpha2.UnknownHealth || ready.Reason != string(ReasonReferenceCycle) || !strings.Contains(ready.Message, "leads back to this scope") {
		t.Errorf("health is %s, Ready %s: %s", s.Health, ready.Reason, ready.Message)
	}
}
