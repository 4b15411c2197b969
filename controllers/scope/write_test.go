package scope

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/pruning"
)

// server is a fake API server for writes of a status.
type server struct {
	client.Client

	// answer changes the sent status into that of the response.
	answer func(*corev1alpha2.HealthScopeStatus) error
	writes int
	// woken is how often all scopes were listed, to enqueue them.
	woken int
	// exists are the scopes that List returns. down is the error of List.
	exists []corev1alpha2.HealthScope
	down   error
}

// List returns the existing scopes. It accepts only the options for which the controller has the right. Without options that
// select scopes, it has none.
func (s *server) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	scopes, ok := list.(*corev1alpha2.HealthScopeList)
	if len(options) == 1 {
		s.woken++
		return nil
	}
	_, bounded := ctx.Deadline()
	o := (&client.ListOptions{}).ApplyOptions(options)
	if !ok || !bounded || o.Namespace != "shop" || o.FieldSelector.String() != "metadata.name=vfw" {
		return errors.New("want one scope, with a deadline")
	}
	scopes.Items = s.exists
	return s.down
}

func (s *server) Status() client.SubResourceWriter { return statusOf{server: s} }

// statusOf is the status subresource of the server's scopes.
type statusOf struct {
	client.SubResourceWriter

	server *server
}

func (s statusOf) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	s.server.writes++
	scope, ok := object.(*corev1alpha2.HealthScope)
	if !ok {
		return errors.New("no HealthScope")
	}
	return s.server.answer(&scope.Status)
}

func TestPrunedWrites(t *testing.T) {
	t.Parallel()
	missingRequired := apierrors.NewNotFound(schema.GroupResource{Group: "core.oam.dev", Resource: "healthscopes"}, "vfw")
	keeps := func(*corev1alpha2.HealthScopeStatus) error { return nil }
	prunes := func(s *corev1alpha2.HealthScopeStatus) error { s.Summary = corev1alpha2.MemberCounts{}; return nil }
	lacks := func(*corev1alpha2.HealthScopeStatus) error { return missingRequired }
	breaks := func(*corev1alpha2.HealthScopeStatus) error { return errors.New("broken") }
	type step struct {
		at     time.Duration
		answer func(*corev1alpha2.HealthScopeStatus) error
		// same is true when the write does not contain the summary.
		same   bool
		writes int
		wait   time.Duration
		fails  bool
		ready  string
		woken  int
	}
	cases := map[string][]step{
		"it stays":                                {{answer: keeps, writes: 1}, {answer: keeps, writes: 1}},
		"it is pruned, and more":                  {{answer: prunes, writes: 1, wait: 30 * time.Second, ready: "prunes status.summary"}, {at: time.Second, answer: prunes, wait: 29 * time.Second, ready: "prunes"}, {at: 30 * time.Second, answer: prunes, writes: 1, wait: 30 * time.Second, ready: "prunes"}, {at: time.Minute, answer: keeps, writes: 1, woken: 1}, {at: time.Minute, answer: keeps, writes: 1}},
		"nothing of it can be lost":               {{answer: prunes, same: true, writes: 1}},
		"all is well again with the same summary": {{answer: prunes, writes: 1, wait: 30 * time.Second, ready: "prunes"}, {at: time.Minute, answer: keeps, same: true, writes: 1, woken: 1}}, // The API server would drop it from its response.
		"there is no status":                      {{answer: lacks, writes: 1, wait: 30 * time.Second, ready: "does not serve their status"}, {at: time.Second, answer: keeps, wait: 29 * time.Second, ready: "does not serve"}, {at: time.Minute, answer: keeps, writes: 1, woken: 1}},
		"an error says nothing":                   {{answer: breaks, writes: 1, fails: true}, {answer: breaks, writes: 1, fails: true}},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &server{exists: []corev1alpha2.HealthScope{*scopeOf(corev1alpha2.HealthScopeSpec{})}}
			r := &reconciler{client: api, apiReader: api, Options: Options{Guard: pruning.NewGuard("HealthScopes")}}
			e := &scopeEntry{}
			for i, step := range steps {
				before := scopeOf(corev1alpha2.HealthScopeSpec{})
				after := before.DeepCopy()
				after.Status.Summary = corev1alpha2.MemberCounts{State: "Ready", Total: 3, Ready: 3}
				if step.same {
					before.Status.Summary = after.Status.Summary
				}
				api.writes, api.woken, api.answer = 0, 0, step.answer
				wait, err := r.write(t.Context(), e, before, after, noon.Add(step.at))
				if wait != step.wait || (err != nil) != step.fails || api.writes != step.writes || api.woken != step.woken {
					t.Errorf("step %d: wait %s, error %v, %d writes, woken %d times", i, wait, err, api.writes, api.woken)
				}
				switch ready := r.Guard.Ready(); {
				case step.ready == "" && ready != nil, step.ready != "" && (ready == nil || !strings.Contains(ready.Error(), step.ready)):
					t.Errorf("step %d: readiness says %v, want %q", i, ready, step.ready)
				}
			}
		})
	}
}

// TestNoEventForAnAnswerWithoutStatus has a CRD that begins to prune fields that were in the status before.
func TestNoEventForAnAnswerWithoutStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(*corev1alpha2.HealthScopeStatus) error
		wait   time.Duration
		events int
		fails  bool
	}{
		"prunes": {answer: func(s *corev1alpha2.HealthScopeStatus) error { *s = corev1alpha2.HealthScopeStatus{}; return nil }, wait: pruning.Interval},
		"keeps":  {answer: func(*corev1alpha2.HealthScopeStatus) error { return nil }, events: 1},
		"breaks": {answer: func(*corev1alpha2.HealthScopeStatus) error { return errors.New("broken") }, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, recorder := &server{answer: c.answer}, events.NewFakeRecorder(10)
			r := &reconciler{client: api, apiReader: api, Options: Options{Guard: pruning.NewGuard("HealthScopes")}, recorder: recorder}
			before := scopeOf(corev1alpha2.HealthScopeSpec{})
			before.Status.Summary = corev1alpha2.MemberCounts{State: "Ready", Total: 3, Ready: 3}
			after := before.DeepCopy()
			after.Status.Health = corev1alpha2.Healthy
			wait, err := r.publish(t.Context(), &scopeEntry{recorded: corev1alpha2.Unhealthy}, before, after, false, noon)
			if wait != c.wait || (err != nil) != c.fails || len(recorder.Events) != c.events {
				t.Errorf("wait %s, error %v, %d events; want %s and %d events", wait, err, len(recorder.Events), c.wait, c.events)
			}
		})
	}
}

func TestAScopeIsJudgedSoonAfterErrors(t *testing.T) {
	t.Parallel()
	limiter := newRateLimiter()
	for i := range 40 {
		if pause := limiter.When(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "vfw"}}); pause > 30*time.Second || i == 0 && pause > time.Second {
			t.Fatalf("after %d failures the scope waits %s", i+1, pause)
		}
	}
}

func TestPruningIsReportedOnlyForExistingScopes(t *testing.T) {
	t.Parallel()
	scope := scopeOf(corev1alpha2.HealthScopeSpec{})
	recreated := scope.DeepCopy()
	recreated.UID = "uid-of-another"
	cases := map[string]struct {
		reason string
		exists []corev1alpha2.HealthScope
		down   error
		wait   time.Duration
		fails  bool
		accuse bool
	}{
		"Deleted":      {reason: "its delete event lags", wait: time.Second},
		"Recreated":    {reason: "the one that was judged has gone", exists: []corev1alpha2.HealthScope{*recreated}, wait: time.Second},
		"Exists":       {reason: "it has no status", exists: []corev1alpha2.HealthScope{*scope}, wait: 30 * time.Second, accuse: true},
		"NoAnswer":     {reason: "without an answer nothing is known", down: errors.New("away"), fails: true},
		"BothAtOnce":   {reason: "the one that was judged is among them", exists: []corev1alpha2.HealthScope{*recreated, *scope}, wait: 30 * time.Second, accuse: true},
		"NotServedNow": {reason: "the CRD itself has gone, and all scopes with it", down: apierrors.NewNotFound(schema.GroupResource{Resource: "healthscopes"}, ""), fails: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := &server{exists: c.exists, down: c.down, answer: func(*corev1alpha2.HealthScopeStatus) error {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "healthscopes"}, "vfw")
			}}
			r := &reconciler{client: api, apiReader: api, Options: Options{Guard: pruning.NewGuard("HealthScopes")}}
			wait, err := r.write(t.Context(), &scopeEntry{}, scope, scope.DeepCopy(), noon)
			if wait != c.wait || (err != nil) != c.fails || (r.Guard.Ready() != nil) != c.accuse {
				t.Errorf("%s: wait %s, error %v, readiness says %v", c.reason, wait, err, r.Guard.Ready())
			}
		})
	}
}
