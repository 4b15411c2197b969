package scope

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

var databases = schema.GroupVersionKind{Group: "db.example.org", Version: "v1", Kind: "Database"}

// withASlowKind returns a world with a ready Deployment and a kind whose first read began at since, and a scope that refers to
// both.
func withASlowKind(since time.Time) (world, *corev1alpha2.HealthScope) {
	w := withDeployments(deployment("web", healthscope.Ready, 3, 3))
	w.objects[databases] = map[string]fleet.Lookup{"db": {Syncing: true, Since: since, Result: healthscope.Result{
		Key:   healthscope.Key{Cluster: hub, Group: databases.Group, Kind: databases.Kind, Namespace: "shop", Name: "db"},
		State: healthscope.Unknown, Reason: healthscope.ReasonNotSynced,
	}}}
	db := corev1alpha2.WorkloadReference{APIVersion: databases.GroupVersion().String(), Kind: databases.Kind, Name: "db"}
	return w, scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(db, deploymentRef("web"))})
}

func TestNewScopeIsJudgedWhileKindDoesNotRespond(t *testing.T) {
	t.Parallel()
	w, scope := withASlowKind(noon)
	if wait := gatherIn(w, scope, noon).syncWait; wait != firstGrace {
		t.Errorf("the scope waits for %s, want %s", wait, firstGrace)
	}
	w, scope = withASlowKind(noon.Add(-firstGrace))
	if wait := gatherIn(w, scope, noon).syncWait; wait != 0 {
		t.Fatalf("the scope has no status for %s because one of its kinds gives no answer", wait)
	}
	s := statusIn(w, scope, noon)
	if s.Health != corev1alpha2.UnknownHealth || s.ResourcesReady != "1/2" {
		t.Errorf("health %q, %s ready; want unknown and 1/2", s.Health, s.ResourcesReady)
	}
	if culprit := only(t, s.Culprits); culprit.Name != "db" || culprit.Reason != string(healthscope.ReasonNotSynced) {
		t.Errorf("culprit %+v; want the reference that is not read, and nothing else", culprit)
	}
}

// TestAScopeWaitsForAKind: a judged scope keeps its status for connectGrace, and a new scope waits as long for objects that arrive,
// so that it is written once.
func TestAScopeWaitsForAKind(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]time.Duration{0: connectGrace, firstGrace: connectGrace - firstGrace, 5 * time.Second: connectGrace - 5*time.Second, connectGrace: 0, time.Hour: 0} {
		for _, judged := range []bool{true, false} {
			w, scope := withASlowKind(noon.Add(-age))
			if slow := w.objects[databases]["db"]; judged {
				scope.Status.ObservedGeneration = scope.Generation
			} else {
				slow.Listing = true
				w.objects[databases]["db"] = slow
			}
			for range 2 {
				if got := gatherIn(w, scope, noon).syncWait; got != want {
					t.Errorf("judged %t, read for %s: the scope waits %s, want %s", judged, age, got, want)
				}
				slices.Reverse(scope.Spec.WorkloadReferences)
			}
		}
	}
}

func TestAnAPIVersionOfNoPossibleFormIsNotAskedFor(t *testing.T) {
	t.Parallel()
	for version, form := range map[string]string{
		"apps": `"apps/v1"`, "batch": `"batch/v1"`, "apps/": `"apps/v1"`, "networking.k8s.io": `"networking.k8s.io/v1"`,
		"Apps/v1": `"apps/v1"`, "../v1": `"apps/v1"`, "apps/V1": `"apps/v1"`,
	} {
		ref := corev1alpha2.WorkloadReference{APIVersion: version, Kind: "Deployment", Name: "web"}
		scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(ref)})
		if kinds := gatherIn(world{}, scope, noon).dependencies.kinds(); len(kinds) > 0 {
			t.Errorf("%q: clusters are asked for %v", version, kinds)
		}
		got := only(t, judgeIn(withDeployments(), scope, noon).Members)
		if got.Reason != healthscope.ReasonInvalidReference || !strings.Contains(got.Message, form) {
			t.Errorf("%q: %s: %s; want %s with the form %s", version, got.Reason, got.Message, healthscope.ReasonInvalidReference, form)
		}
	}
	for _, version := range []string{"v1", "apps/v1", "core.oam.dev/v1alpha2"} {
		if _, problem := parseRef("shop", corev1alpha2.WorkloadReference{APIVersion: version, Kind: "Pod", Name: "x"}); problem != nil {
			t.Errorf("%q: %s", version, problem.Message)
		}
	}
}
