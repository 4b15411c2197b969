package deploy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// failed returns a lifecycle with a failed event, and the retry of the event.
func failed(t *testing.T, event deploy.Event, before appcontext.State) (deploy.Lifecycle, deploy.Retry) {
	t.Helper()
	l, err := deploy.Lifecycle{Current: before}.Enqueue(event, "")
	if err != nil {
		t.Fatal(err)
	}
	l, _, _ = l.Next()
	r := deploy.Retry{Event: event, Index: l.PendingIndex(), Begun: 7, Count: 1, Next: time.Unix(1, 0).UTC()}
	return l.Finish(false), r
}

func TestRetryEndsWithNextEventOrStop(t *testing.T) {
	l, r := failed(t, deploy.EventInstantiate, appcontext.StateCreated)
	again, ok := l.Retry(r)
	if !ok || !again.Active() || again.Current != appcontext.StateInstantiating || len(again.Queue) != 1 {
		t.Fatalf("%+v, %t", again, ok)
	}
	if next, event, _ := again.Next(); event.Event != deploy.EventInstantiate || next.Current != appcontext.StateInstantiating {
		t.Errorf("%q is handled in %q", event.Event, next.Current)
	}
	if done := again.Finish(true); done.Current != appcontext.StateInstantiated || done.Status != appcontext.StateInstantiated || done.Queue[0].Status != deploy.EventDone {
		t.Errorf("%+v", done)
	}
	if l.Queue[0].Status != deploy.EventError {
		t.Error("the lifecycle from before was changed")
	}
	terminated, err := l.Enqueue(deploy.EventTerminate, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]deploy.Lifecycle{
		"one that has succeeded": again.Finish(true), "one that is handled": again, "one that was stopped": l.Stopped(), "one after which another came": terminated,
	} {
		if _, ok := other.Retry(r); ok {
			t.Errorf("%s is handled again", name)
		}
	}
}

func TestRetryIsStoredUntilNextEventOrStop(t *testing.T) {
	l, r := failed(t, deploy.EventTerminate, appcontext.StateInstantiated)
	kept, ok := r.Write("42").Value.(string)
	if got, err := deploy.ReadRetry(kept); !ok || err != nil || got != r {
		t.Errorf("read %+v, %v; want %+v", got, err, r)
	}
	if _, err := deploy.ReadRetry("x"); err == nil {
		t.Error("what is no retry was read as one")
	}
	again, _ := l.Retry(r)
	next, err := l.Enqueue(deploy.EventInstantiate, "")
	if err == nil {
		t.Errorf("%+v", next)
	}
	next, err = l.Enqueue(deploy.EventTerminate, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		after   deploy.Lifecycle
		removes bool
	}{"that it is handled again": {again, false}, "an event": {next, true}, "a stop": {l.Stopped(), true}} {
		writes := deploy.Changes("42", l, tt.after)
		if got := slices.Contains(writes, deploy.Retry{}.Write("42")); got != tt.removes {
			t.Errorf("%s removes the retry: %t, want %t", name, got, tt.removes)
		}
		if got := slices.Contains(writes, appcontext.Write{Handle: appcontext.ActiveHandle("42"), Value: "42"}); got != tt.after.Active() {
			t.Errorf("after %s, the context is among the active ones: %t", name, got)
		}
	}
}

func TestPendingEventOfDeploymentSupersedesRetry(t *testing.T) {
	l, r := failed(t, deploy.EventInstantiate, appcontext.StateCreated)
	again, _ := l.Retry(r)
	more, err := again.Enqueue(deploy.EventInstantiate, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		deployment deploy.Deployment
		want       bool
	}{
		"none":           {deploy.Deployment{{ID: "42", Lifecycle: again}}, false},
		"one of its own": {deploy.Deployment{{ID: "42", Lifecycle: more}}, true},
		"one of another": {deploy.Deployment{{ID: "42", Lifecycle: again}, waiting("43", deploy.EventUpdate, 1, "Created", "")}, true},
	} {
		if got := tt.deployment.Superseded("42"); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// TestRetryTakesRefusedStepsAgain asserts that a retry takes the refused steps and the steps after them, and no others.
func TestRetryTakesRefusedStepsAgain(t *testing.T) {
	p := plan(t, read(t, "created.tsv"))
	web := func(s deploy.Step) bool { return s.Resource.Name == "web+Deployment" && s.Cluster == "p1+edge01" }
	for name, tt := range map[string]struct {
		work *deploy.Progress
		want []string
	}{
		"instantiation": {p.Instantiation(), []string{"apply web+Deployment", "apply web-svc+Service"}},
		"termination":   {p.Termination(), []string{"delete web+Deployment", "delete bundle"}},
	} {
		run(tt.work, web)
		if !tt.work.Refused() {
			t.Fatalf("%s: nothing was refused", name)
		}
		tt.work.Retry()
		if got := run(tt.work, web); len(got) != 1 || !slices.Equal(got["web in p1+edge01"], tt.want[:1]) {
			t.Errorf("%s, refused again: %q", name, got)
		}
		tt.work.Retry()
		if got := run(tt.work, never); !tt.work.Done() || tt.work.Refused() || !slices.Equal(got["web in p1+edge01"], tt.want) {
			t.Errorf("%s: done %t, steps %q; want %q", name, tt.work.Done(), got, tt.want)
		}
	}
}

// TestRetriedEventTakesFailedResources asserts that a retried event does not apply a resource again that it has applied, also in
// sequences that are complete.
func TestRetriedEventTakesFailedResources(t *testing.T) {
	resource := func(name string, status appcontext.ResourceStatus) deploy.Resource {
		return deploy.Resource{Name: name, Status: status}
	}
	hooks := map[deploy.Hook][]deploy.Resource{deploy.HookPreInstall: {resource("hook+Job", appcontext.ResourceApplied)}}
	p := &deploy.Plan{ID: "42", Apps: []deploy.App{{Name: "web", Targets: []deploy.Target{
		{App: "web", Cluster: "p+done", Resources: []deploy.Resource{resource("a+Pod", appcontext.ResourceApplied)}},
		{App: "web", Cluster: "p+failed", Hooks: hooks, Resources: []deploy.Resource{resource("a+Pod", appcontext.ResourceFailed), resource("b+Pod", appcontext.ResourcePending)}},
	}}}}
	got := run(p.Instantiation(), never)
	if want := []string{"apply bundle", "apply a+Pod", "apply b+Pod"}; len(got) != 1 || !slices.Equal(got["web in p+failed"], want) {
		t.Errorf("steps %q, want %q", got, want)
	}
}
