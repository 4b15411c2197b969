package deploy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// failedInstantiation returns a lifecycle with a failed instantiation, and its retry.
func failedInstantiation(t *testing.T) (deploy.Lifecycle, deploy.Retry) {
	t.Helper()
	l, err := deploy.Lifecycle{Current: appcontext.StateCreated}.Enqueue(deploy.EventInstantiate, "")
	if err != nil {
		t.Fatal(err)
	}
	l, _, _ = l.Next()
	r := deploy.Retry{Event: deploy.EventInstantiate, Index: l.PendingIndex(), Begun: 7, Count: 1, Next: time.Unix(1, 0).UTC()}
	return l.Finish(false), r
}

func TestRetryBeginsFailedEventAgain(t *testing.T) {
	l, r := failedInstantiation(t)
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
}

func TestRetryEndsWithNextEventOrStop(t *testing.T) {
	l, r := failedInstantiation(t)
	again, _ := l.Retry(r)
	terminated, err := l.Enqueue(deploy.EventTerminate, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		after   deploy.Lifecycle
		removes bool
	}{
		"the event is handled again": {again, false}, "the event has succeeded": {again.Finish(true), false}, "another event": {terminated, true}, "a stop": {l.Stopped(), true},
	} {
		if _, ok := tt.after.Retry(r); ok {
			t.Errorf("%s: it is retried", name)
		}
		writes := deploy.Changes("42", l, tt.after)
		if got := slices.Contains(writes, deploy.Retry{}.Write("42")); got != tt.removes {
			t.Errorf("%s: removes the stored retry: %t, want %t", name, got, tt.removes)
		}
		if got := slices.Contains(writes, appcontext.Write{Handle: appcontext.ActiveHandle("42"), Value: "42"}); got != tt.after.Active() {
			t.Errorf("%s: the context is among the active ones: %t", name, got)
		}
	}
}

func TestRetryIsReadAsWritten(t *testing.T) {
	_, r := failedInstantiation(t)
	stored, ok := r.Write("42").Value.(string)
	if got, err := deploy.ReadRetry(stored); !ok || err != nil || got != r {
		t.Errorf("read %+v, %v; want %+v", got, err, r)
	}
	if _, err := deploy.ReadRetry("x"); err == nil {
		t.Error("an invalid value was read")
	}
}

func TestPendingEventOfDeploymentSupersedesRetry(t *testing.T) {
	l, r := failedInstantiation(t)
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
