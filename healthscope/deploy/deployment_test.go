package deploy_test

import (
	"slices"
	"testing"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// waiting returns a context with a waiting event.
func waiting(id string, event deploy.Event, revision int64, current, desired appcontext.State) deploy.Member {
	return deploy.Member{ID: id, Revision: revision, Lifecycle: deploy.Lifecycle{
		Queue: []deploy.QueuedEvent{{Event: event, Status: deploy.EventPending}}, Current: current, Desired: desired,
	}}
}

func TestDeploymentNextOrder(t *testing.T) {
	updating := waiting("begun", deploy.EventUpdate, 4, "Instantiating", "Instantiated")
	terminating := waiting("terminate", deploy.EventTerminate, 3, "Instantiated", "Instantiated")
	deleting := waiting("delete", deploy.EventUpdateDelete, 2, "Instantiated", "Instantiated")
	update := waiting("update", deploy.EventUpdate, 1, "Created", "")
	later := waiting("later", deploy.EventUpdate, 5, "Created", "")
	order := []deploy.Member{updating, terminating, deleting, update, later}
	for i, want := range order {
		d := deploy.Deployment{later, update, deleting, terminating, updating}[:len(order)-i]
		if got := d.Next(); got != want.ID {
			t.Errorf("of %d contexts, %q is next; want %q", len(d), got, want.ID)
		}
	}
	if got := (deploy.Deployment{}).Next(); got != "" {
		t.Errorf("%q is next, want none", got)
	}
}

func TestDeploymentInterrupted(t *testing.T) {
	updating := waiting("42", deploy.EventUpdate, 1, "Instantiating", "Instantiated")
	stopped := updating
	stopped.Stop = true
	terminating := waiting("42", deploy.EventTerminate, 1, "Terminating", "Terminated")
	another := func(event deploy.Event) deploy.Member { return waiting("43", event, 2, "Instantiated", "Instantiated") }
	for name, tt := range map[string]struct {
		deployment deploy.Deployment
		want       bool
	}{
		"nothing":                          {deploy.Deployment{updating}, false},
		"a stop":                           {deploy.Deployment{stopped}, true},
		"that it is gone":                  {deploy.Deployment{another(deploy.EventUpdate)}, true},
		"not another update":               {deploy.Deployment{updating, another(deploy.EventUpdate)}, false},
		"a termination of another context": {deploy.Deployment{updating, another(deploy.EventTerminate)}, true},
		"not a termination, if it is one as well": {deploy.Deployment{terminating, another(deploy.EventTerminate)}, false},
	} {
		if got := tt.deployment.Interrupted("42"); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

// TestWhatFollowsFromQueue asserts whether a context is to be deployed, whether it is deleted from when another context replaces it, and which
// context its last update has left behind. An event that was skipped, or cannot begin in any state that follows, does not count.
func TestWhatFollowsFromQueue(t *testing.T) {
	event := func(event deploy.Event, status deploy.EventStatus) deploy.QueuedEvent {
		return deploy.QueuedEvent{Event: event, UpdateContextID: map[deploy.Event]string{deploy.EventUpdate: "41"}[event], Status: status}
	}
	instantiate, instantiated := event(deploy.EventInstantiate, deploy.EventPending), event(deploy.EventInstantiate, deploy.EventDone)
	terminate, terminated := event(deploy.EventTerminate, deploy.EventPending), event(deploy.EventTerminate, deploy.EventDone)
	update, updated := event(deploy.EventUpdate, deploy.EventPending), event(deploy.EventUpdate, deploy.EventDone)
	failed, skipped := event(deploy.EventUpdate, deploy.EventError), event(deploy.EventUpdate, deploy.EventSkipped)
	read := event(deploy.EventRead, deploy.EventDone)
	for name, tt := range map[string]struct {
		current, desired   appcontext.State
		queue              []deploy.QueuedEvent
		wanted, isReplaced bool
		unfinished         string
	}{
		"nothing":                              {},
		"an instantiation that waits":          {current: "Created", queue: []deploy.QueuedEvent{instantiate}, wanted: true},
		"an instantiation":                     {current: "Instantiated", queue: []deploy.QueuedEvent{instantiated}, wanted: true, isReplaced: true},
		"an update that is handled":            {current: "Instantiating", desired: "Instantiated", queue: []deploy.QueuedEvent{update}, wanted: true, unfinished: "41"},
		"an update that has failed":            {current: "InstantiateFailed", queue: []deploy.QueuedEvent{failed}, wanted: true, isReplaced: true, unfinished: "41"},
		"an update after one that has failed":  {current: "Instantiated", queue: []deploy.QueuedEvent{failed, updated}, wanted: true, isReplaced: true},
		"an update that was skipped":           {current: "Terminated", queue: []deploy.QueuedEvent{terminated, skipped}},
		"a termination that waits":             {current: "Instantiating", desired: "Instantiated", queue: []deploy.QueuedEvent{instantiate, terminate}},
		"a termination behind what waits":      {current: "Created", queue: []deploy.QueuedEvent{instantiate, terminate}},
		"an instantiation after a termination": {current: "Terminated", queue: []deploy.QueuedEvent{terminated, instantiate}},
		"one after a termination that waits":   {current: "Terminating", desired: "Terminated", queue: []deploy.QueuedEvent{terminate, instantiate}},
		"what was only read":                   {current: "Instantiated", queue: []deploy.QueuedEvent{read}},
		"what was read when it was there":      {current: "Instantiated", queue: []deploy.QueuedEvent{instantiated, read}, wanted: true, isReplaced: true},
	} {
		l := deploy.Lifecycle{Current: tt.current, Desired: tt.desired, Queue: tt.queue}
		if got := l.Wanted(); got != tt.wanted {
			t.Errorf("%s: wanted %t, want %t", name, got, tt.wanted)
		}
		if got := l.UnfinishedUpdateFrom(); got != tt.unfinished {
			t.Errorf("%s: unfinished update from %q, want %q", name, got, tt.unfinished)
		}
		want := tt.queue
		if tt.isReplaced {
			want = append(slices.Clip(want), deploy.QueuedEvent{Event: deploy.EventUpdateDelete, UpdateContextID: "43", Status: deploy.EventPending})
		}
		if got := l.ReplacedBy("43").Queue; !slices.Equal(got, want) {
			t.Errorf("%s: replaced, its queue is %v, want %v", name, got, want)
		}
	}
}
