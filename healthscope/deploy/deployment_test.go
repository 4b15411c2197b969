package deploy_test

import (
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

// TestWantedIgnoresEventsThatWillBeSkipped asserts that an event after a termination does not count, because it cannot begin in
// any state that follows.
func TestWantedIgnoresEventsThatWillBeSkipped(t *testing.T) {
	queue := func(events ...deploy.QueuedEvent) []deploy.QueuedEvent { return events }
	event := func(event deploy.Event, status deploy.EventStatus) deploy.QueuedEvent {
		return deploy.QueuedEvent{Event: event, Status: status}
	}
	instantiate, instantiated := event(deploy.EventInstantiate, deploy.EventPending), event(deploy.EventInstantiate, deploy.EventDone)
	terminate, terminated := event(deploy.EventTerminate, deploy.EventPending), event(deploy.EventTerminate, deploy.EventDone)
	update, failed := event(deploy.EventUpdate, deploy.EventPending), event(deploy.EventUpdate, deploy.EventError)
	read := event(deploy.EventRead, deploy.EventDone)
	for name, tt := range map[string]struct {
		lifecycle deploy.Lifecycle
		want      bool
	}{
		"an instantiation that waits":          {deploy.Lifecycle{Current: "Created", Queue: queue(instantiate)}, true},
		"an update that is handled":            {deploy.Lifecycle{Current: "Instantiating", Desired: "Instantiated", Queue: queue(update)}, true},
		"an update that has failed":            {deploy.Lifecycle{Current: "InstantiateFailed", Queue: queue(failed)}, true},
		"a termination that waits":             {deploy.Lifecycle{Current: "Instantiating", Desired: "Instantiated", Queue: queue(instantiate, terminate)}, false},
		"an instantiation after a termination": {deploy.Lifecycle{Current: "Terminated", Queue: queue(terminated, instantiate)}, false},
		"what was only read":                   {deploy.Lifecycle{Current: "Instantiated", Queue: queue(read)}, false},
		"what was read when it was there":      {deploy.Lifecycle{Current: "Instantiated", Queue: queue(instantiated, read)}, true},
		"one after a termination that waits":   {deploy.Lifecycle{Current: "Terminating", Desired: "Terminated", Queue: queue(terminate, instantiate)}, false},
	} {
		if got := tt.lifecycle.Wanted(); got != tt.want {
			t.Errorf("%s: wanted %t, want %t", name, got, tt.want)
		}
	}
}
