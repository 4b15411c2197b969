package scope

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"pgregory.net/rapid"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// withInventory returns a scope with the condition InventorySynced. It is True for the reason Synced, and False for other
// reasons, since the given time. Without a reason there is no condition.
func withInventory(reason string, since time.Time) *corev1alpha2.HealthScope {
	s := scopeOf(corev1alpha2.HealthScopeSpec{})
	if reason != "" {
		status := metav1.ConditionFalse
		if reason == string(ReasonSynced) {
			status = metav1.ConditionTrue
		}
		s.Status.Conditions = []metav1.Condition{{
			Type: corev1alpha2.ConditionInventorySynced, Status: status, Reason: reason, Message: "so it is", LastTransitionTime: metav1.NewTime(since),
		}}
	}
	return s
}

func TestEventsOnChangesOfTheInventory(t *testing.T) {
	t.Parallel()
	const synced, wrong = "Normal Synced InventorySynced is True: so it is", "Warning Wrong InventorySynced is False: so it is"
	type step struct {
		at     time.Duration
		reason string
		// restart is true when the controller was restarted before the step.
		restart bool
		event   string
		wait    time.Duration
	}
	cases := map[string][]step{
		"all is well":             {{at: 0, reason: "Synced"}, {at: time.Hour, reason: "Synced"}},
		"there is no inventory":   {{at: 0}, {at: time.Hour}},
		"it comes up":             {{at: 0}, {at: time.Second, reason: "Pending", wait: 10 * time.Second}, {at: 2 * time.Second, reason: "Synced"}},
		"it goes wrong and heals": {{at: 0, reason: "Synced"}, {at: time.Second, reason: "Wrong", wait: 10 * time.Second}, {at: 11 * time.Second, reason: "Wrong", event: wrong}, {at: time.Hour, reason: "Wrong"}, {at: 2 * time.Hour, reason: "Synced", event: synced}, {at: 3 * time.Hour, reason: "Synced"}},
		"it is away for a moment, time and again": {
			{at: 0, reason: "Wrong", wait: 10 * time.Second}, {at: 9 * time.Second, reason: "Synced"}, {at: 10 * time.Second, reason: "Wrong", wait: 10 * time.Second}, {at: 15 * time.Second, reason: "Wrong", wait: 5 * time.Second},
			{at: 19 * time.Second, reason: "Synced"},
		},
		"the reason changes": {
			{at: 0, reason: "Other", wait: 10 * time.Second}, {at: 5 * time.Second, reason: "Wrong", wait: 10 * time.Second}, {at: 15 * time.Second, reason: "Wrong", event: wrong},
			{at: 20 * time.Second, reason: "Other", wait: 10 * time.Second}, {at: 25 * time.Second, reason: "Wrong"}, {at: 26 * time.Second, reason: "Other", wait: 10 * time.Second},
			{at: 36 * time.Second, reason: "Other", event: "Warning Other InventorySynced is False: so it is"},
		},
		"it heals by way of another reason": {
			{at: 0, reason: "Wrong", wait: 10 * time.Second}, {at: 10 * time.Second, reason: "Wrong", event: wrong}, {at: 20 * time.Second, reason: "Pending", wait: 10 * time.Second}, {at: 21 * time.Second, reason: "Synced", event: synced},
		},
		"a restart while it is wrong":       {{at: 0, reason: "Wrong", wait: 10 * time.Second}, {at: 10 * time.Second, reason: "Wrong", event: wrong}, {at: time.Minute, restart: true, reason: "Wrong"}, {at: time.Hour, reason: "Synced", event: synced}},
		"a restart before it was recorded":  {{at: 0, reason: "Wrong", wait: 10 * time.Second}, {at: 5 * time.Second, restart: true, reason: "Wrong", wait: 10 * time.Second}, {at: 15 * time.Second, reason: "Wrong", event: wrong}},
		"a restart while all is well":       {{at: 0, reason: "Synced"}, {at: time.Minute, restart: true, reason: "Synced"}},
		"the inventory is configured away":  {{at: 0, reason: "Wrong", wait: 10 * time.Second}, {at: 10 * time.Second, reason: "Wrong", event: wrong}, {at: time.Minute}, {at: time.Hour, reason: "Synced"}},
		"a clock that goes back by an hour": {{at: 0, reason: "Synced"}, {at: time.Hour, reason: "Wrong", wait: 10 * time.Second}, {at: 0, reason: "Wrong", wait: 10 * time.Second}},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := events.NewFakeRecorder(10)
			r := &reconciler{recorder: recorder}
			var e *scopeEntry
			since := noon
			for i, step := range steps {
				now := noon.Add(step.at)
				if i > 0 && step.reason != steps[i-1].reason {
					since = now
				}
				s := withInventory(step.reason, since)
				if e == nil || step.restart {
					e = NewRegistry().entryFor(s, now)
				}
				if wait := r.recordInventory(t.Context(), e, s, now); wait != step.wait {
					t.Errorf("step %d: asks again after %s, want %s", i, wait, step.wait)
				}
				got := ""
				select {
				case got = <-recorder.Events:
				default:
				}
				if got != step.event {
					t.Errorf("step %d: the event is %q, want %q", i, got, step.event)
				}
			}
		})
	}
}

// TestInventoryEventsAreRateLimited: for any changes of the condition, there is at most one event in inventoryGrace. The event
// for the recovery is not limited. It follows only the event for a failure.
func TestInventoryEventsAreRateLimited(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var n inventoryEvents
		now, last, recorded := noon, noon.Add(-time.Hour), ""
		for range rapid.IntRange(1, 100).Draw(t, "changes") {
			now = now.Add(time.Duration(rapid.IntRange(0, 6000).Draw(t, "milliseconds")) * time.Millisecond)
			reason := rapid.SampledFrom([]string{"", "A", "B"}).Draw(t, "reason")
			changed, wait := n.update(reason, now)
			switch {
			case !changed:
			case reason == recorded:
				t.Fatalf("%q is recorded twice", reason)
			case reason != "" && now.Sub(last) < inventoryGrace:
				t.Fatalf("%q is recorded %s after the event before", reason, now.Sub(last))
			default:
				last, recorded = now, reason
			}
			if wait < 0 || wait > inventoryGrace || changed && wait > 0 {
				t.Fatalf("asks again after %s", wait)
			}
		}
	})
}
