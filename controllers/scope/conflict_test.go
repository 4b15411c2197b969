package scope

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/pruning"
)

// conflictScope is a scope whose status this controller and another one write.
type conflictScope struct {
	*reconciler
	t        *testing.T
	api      *server
	entry    *scopeEntry
	scope    *corev1alpha2.HealthScope
	recorder *events.FakeRecorder
}

func newConflictScope(t *testing.T) *conflictScope {
	t.Helper()
	api := &server{answer: func(*corev1alpha2.HealthScopeStatus) error { return nil }}
	recorder := events.NewFakeRecorder(100)
	scope := scopeOf(corev1alpha2.HealthScopeSpec{})
	r := &reconciler{client: api, apiReader: api, Options: Options{Guard: pruning.NewGuard("HealthScopes"), Registry: NewRegistry()}, recorder: recorder}
	return &conflictScope{reconciler: r, t: t, api: api, recorder: recorder, scope: scope, entry: r.Registry.entryFor(scope, noon)}
}

// wrote records a write of the status by a manager in the managedFields.
func (r *conflictScope) wrote(manager string, at time.Time) {
	for i, entry := range r.scope.ManagedFields {
		if entry.Manager == manager {
			r.scope.ManagedFields[i].Time = &metav1.Time{Time: at.Truncate(time.Second)}
			return
		}
	}
	r.scope.ManagedFields = append(r.scope.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Subresource: "status", Time: &metav1.Time{Time: at.Truncate(time.Second)}})
}

// write writes a changed status if that is allowed. Otherwise it returns how long to wait.
func (r *conflictScope) write(at time.Time) time.Duration {
	r.t.Helper()
	after := r.scope.DeepCopy()
	after.Status.Summary = corev1alpha2.MemberCounts{State: "Ready", Total: 3, Ready: 3}
	before := r.api.writes
	wait, err := r.reconciler.write(r.t.Context(), r.entry, r.scope, after, at)
	if err != nil {
		r.t.Fatal(err)
	}
	if r.api.writes > before {
		r.wrote(string(fieldOwner), at)
	}
	r.reportConflict(at)
	return wait
}

// reportConflict reports the conflict to the readiness check.
func (r *conflictScope) reportConflict(at time.Time) {
	r.Guard.SetConflict(client.ObjectKeyFromObject(r.scope).String(), r.entry.conflict.otherManager(at))
}

// TestStatusConflictIsDetected has another controller that reverts each write at once for five minutes, as the one of
// oam-kubernetes-runtime does.
func TestStatusConflictIsDetected(t *testing.T) {
	t.Parallel()
	r := newConflictScope(t)
	early := 0
	at := noon
	for ; at.Before(noon.Add(5 * time.Minute)); at = at.Add(100 * time.Millisecond) {
		r.wrote("vela-core", at)
		r.write(at)
		if at.Before(noon.Add(15 * time.Second)) {
			early = r.api.writes
		}
	}
	expectConflict(t, r, r.api.writes-early, early)
	s := statusOfConflict(r.scope, r.entry.conflict.otherManager(at))
	if c := meta.FindStatusCondition(s.Conditions, corev1alpha2.ConditionStatusConflict); c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "vela-core") {
		t.Errorf("condition %+v", c)
	}

	over := r.entry.conflict.remaining(at)
	if over <= 0 || over > conflictGrace+time.Second {
		t.Errorf("looked at again in %s", over)
	}
	at = at.Add(over)
	r.reportConflict(at)
	if err := r.Guard.Ready(); err != nil {
		t.Errorf("after it was turned off readiness says %v", err)
	}
	r.scope.Status = s
	if c := meta.FindStatusCondition(statusOfConflict(r.scope, r.entry.conflict.otherManager(at)).Conditions, corev1alpha2.ConditionStatusConflict); c != nil {
		t.Errorf("after it was turned off there is condition %+v", c)
	}
	if wait := r.write(at.Add(time.Second)); wait != 0 {
		t.Errorf("after it was turned off a write waits %s", wait)
	}
}

// expectConflict asserts how often a status with a conflict was written, in the first 15 seconds and later, and how the conflict
// is reported.
func expectConflict(t *testing.T, r *conflictScope, later, early int) {
	t.Helper()
	if early > 35 || later > 10 {
		t.Errorf("%d writes in the first 15 seconds and %d in the rest of five minutes, want one in 30 seconds once it is known", early, later)
	}
	if got := len(r.recorder.Events); got != 1 {
		t.Fatalf("%d events, want 1", got)
	}
	if event := <-r.recorder.Events; !strings.Contains(event, "Warning StatusConflict") || !strings.Contains(event, `"vela-core" writes the status too`) {
		t.Errorf("event %q", event)
	}
	if err := r.Guard.Ready(); err == nil || !strings.Contains(err.Error(), `"shop/vfw" by "vela-core"`) {
		t.Errorf("readiness says %v", err)
	}
}

// statusOfConflict returns the status of a scope whose status the controller by also writes.
func statusOfConflict(scope *corev1alpha2.HealthScope, by string) corev1alpha2.HealthScopeStatus {
	v := judgeIn(world{}, scope, noon)
	v.ConflictsWith = by
	return newStatus(scope, v, externalStatus{}, noon)
}

func TestRareWritesAreNoConflict(t *testing.T) {
	t.Parallel()
	for name, play := range map[string]func(r *conflictScope){
		"a person who edits it twice": func(r *conflictScope) {
			for i := range 2 {
				r.wrote("kubectl-edit", noon.Add(time.Duration(i)*time.Second))
				r.write(noon.Add(time.Duration(i) * time.Second))
			}
		},
		"changes after one of them": func(r *conflictScope) {
			r.wrote("kubectl-edit", noon)
			for i := range 100 {
				r.write(noon.Add(time.Duration(i) * 100 * time.Millisecond))
			}
		},
		"one now and then": func(r *conflictScope) {
			for i := range 10 {
				r.wrote("kubectl-edit", noon.Add(time.Duration(i)*time.Hour))
				r.write(noon.Add(time.Duration(i) * time.Hour))
			}
		},
		"who writes the spec": func(r *conflictScope) {
			for i := range 10 {
				r.scope.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "oam", Time: &metav1.Time{Time: noon.Add(time.Duration(i) * time.Second)}}}
				r.write(noon.Add(time.Duration(i) * time.Second))
			}
		},
	} {
		r := newConflictScope(t)
		play(r)
		if got, err := len(r.recorder.Events), r.Guard.Ready(); got > 0 || err != nil {
			t.Errorf("%s: %d events, and readiness says %v", name, got, err)
		}
	}
}

func TestStatusConflictMetric(t *testing.T) {
	t.Parallel()
	registry := NewRegistry()
	scope := scopeOf(corev1alpha2.HealthScopeSpec{})
	registry.entryFor(scope, noon)
	registry.put(client.ObjectKeyFromObject(scope), Judged{ConflictsWith: "vela-core"})
	want := `
# HELP healthscope_scope_status_conflict 1 for a scope whose status another controller writes too, by the name of its field manager. Other scopes have no series.
# TYPE healthscope_scope_status_conflict gauge
healthscope_scope_status_conflict{manager="vela-core",namespace="shop",scope="vfw"} 1
`
	if err := testutil.CollectAndCompare(NewCollector(registry), strings.NewReader(want), "healthscope_scope_status_conflict"); err != nil {
		t.Error(err)
	}
}

// TestKeepWritersKeepsStatusManagers asserts that the transformation keeps the managers of the status of a scope: they show a
// conflict.
func TestKeepWritersKeepsStatusManagers(t *testing.T) {
	t.Parallel()
	scope := scopeOf(corev1alpha2.HealthScopeSpec{})
	at := &metav1.Time{Time: noon}
	scope.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Time: at, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)},
		{Manager: "vela-core", Time: at, Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
	}
	if _, err := TransformManagedFields(scope); err != nil {
		t.Fatal(err)
	}
	want := []metav1.ManagedFieldsEntry{{Manager: "vela-core", Time: at, Subresource: "status"}}
	if diff := cmp.Diff(want, scope.ManagedFields); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
