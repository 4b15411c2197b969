package scope

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// judgeInto judges a scope and puts the judgement into a registry, as the reconciler does.
func judgeInto(r *Registry, w world, scope *corev1alpha2.HealthScope) {
	r.entryFor(scope, noon)
	v := judgeIn(w, scope, noon)
	v.Generation, v.Maintenance = scope.Generation, underMaintenance(scope)
	r.put(client.ObjectKeyFromObject(scope), v.Judged)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := NewRegistry()
	w := world{bundles: []*fleet.Bundle{bundleOf(hub, "1-sink",
		readyWeb, member(hub, "StatefulSet", "db", healthscope.Failed, "CrashLoopBackOff"), member(hub, "StatefulSet", "log", healthscope.Terminating, healthscope.ReasonDeleting),
		owned(member(hub, "Pod", "db-0", healthscope.Failed, "CrashLoopBackOff")), member(hub, "PodDisruptionBudget", "pdb", healthscope.Unknown, healthscope.ReasonForbidden),
	)}}
	vfw := scopeOf(corev1alpha2.HealthScopeSpec{
		WorkloadReferences: refs(bundleRef("gone")),
		Apps:               []corev1alpha2.ScopeApp{{Name: "sink", WorkloadReferences: refs(bundleRef("1-sink"))}},
		Rollup:             &corev1alpha2.Rollup{Ignore: []corev1alpha2.MemberMatch{{Kind: "PodDisruptionBudget"}}},
	})
	judgeInto(registry, w, vfw)
	empty := scopeOf(corev1alpha2.HealthScopeSpec{})
	empty.Name = "empty"
	empty.Annotations = map[string]string{corev1alpha2.AnnotationMaintenance: "new switches"}
	judgeInto(registry, w, empty)
	unjudged := scopeOf(corev1alpha2.HealthScopeSpec{})
	unjudged.Name = "unjudged"
	registry.entryFor(unjudged, noon)

	collector := NewCollector(registry)
	want := `
# HELP healthscope_scope_first_culprit 1 for the first culprit, the one that status.firstCulprit names: the worst of the members that are not healthy, or, with kind="Cluster", a cluster that cannot be seen. A scope without a culprit has no series.
# TYPE healthscope_scope_first_culprit gauge
healthscope_scope_first_culprit{app="sink",cluster="local",kind="StatefulSet",name="db",namespace="shop",reason="CrashLoopBackOff",scope="vfw"} 1
# HELP healthscope_scope_health 1 for the health that the scope's roll-up comes to: healthy, unhealthy or unknown. The others have no series.
# TYPE healthscope_scope_health gauge
healthscope_scope_health{health="unknown",namespace="shop",scope="empty"} 1
healthscope_scope_health{health="unhealthy",namespace="shop",scope="vfw"} 1
# HELP healthscope_scope_maintenance 1 for a scope whose annotation says that it is under maintenance, or all of whose culprits are in clusters that are, for alerts to leave it out. Other scopes have no series.
# TYPE healthscope_scope_maintenance gauge
healthscope_scope_maintenance{namespace="shop",scope="empty"} 1
# HELP healthscope_scope_resources The members that count, by app and state. A state without members has no series.
# TYPE healthscope_scope_resources gauge
healthscope_scope_resources{app="",namespace="shop",scope="vfw",state="NotPresent"} 1
healthscope_scope_resources{app="sink",namespace="shop",scope="vfw",state="Failed"} 1
healthscope_scope_resources{app="sink",namespace="shop",scope="vfw",state="Ready"} 1
healthscope_scope_resources{app="sink",namespace="shop",scope="vfw",state="Terminating"} 1
# HELP healthscope_scope_state 1 for the state that the members of the scope roll up to. The other states have no series.
# TYPE healthscope_scope_state gauge
healthscope_scope_state{namespace="shop",scope="empty",state="Unknown"} 1
healthscope_scope_state{namespace="shop",scope="vfw",state="Failed"} 1
`
	if err := testutil.CollectAndCompare(collector, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	gatherer := prometheus.NewPedanticRegistry()
	gatherer.MustRegister(collector)
	problems, err := testutil.GatherAndLint(gatherer)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	registry := NewRegistry()
	var notified []string
	registry.Subscribe(func(name types.NamespacedName) { notified = append(notified, name.String()) })
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("web"))})
	name := types.NamespacedName{Namespace: "shop", Name: "vfw"}

	first := registry.entryFor(scope, noon)
	if registry.Get(name) != nil {
		t.Error("a scope that has not been judged has a judgement")
	}
	judgeInto(registry, withDeployments(deployment("web", healthscope.Failed, 0, 1)), scope)
	judged := registry.Get(name)
	if judged == nil || judged.Generation != 3 || judged.State != healthscope.Failed || only(t, judged.Members).Name != "web" {
		t.Errorf("got %+v", judged)
	}
	if registry.entryFor(scope, noon) != first {
		t.Error("the entry of the scope was removed between two judgements")
	}
	again := scope.DeepCopy()
	again.UID = "another"
	if registry.entryFor(again, noon) == first {
		t.Error("a scope has the entry of another one of its name")
	}
	registry.remove(name)
	if registry.Get(name) != nil || len(registry.All()) != 0 {
		t.Error("a scope that is gone is still there")
	}
	if len(notified) != 2 || notified[0] != "shop/vfw" {
		t.Errorf("want one call for the judgement and one for the removal, got %v", notified)
	}
}
