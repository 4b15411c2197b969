package deploy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// Event is what is to be done with a context.
type Event string

// The events, as EMCO writes them.
const (
	EventInstantiate  Event = "Instantiate"
	EventTerminate    Event = "Terminate"
	EventUpdate       Event = "Update"
	EventUpdateDelete Event = "UpdateDelete"
	EventRead         Event = "Read"
)

// EventStatus is what became of an event.
type EventStatus string

// The statuses of events, as EMCO writes them.
const (
	EventPending EventStatus = "Pending"
	EventDone    EventStatus = "Done"
	EventError   EventStatus = "Error"
	EventSkipped EventStatus = "Skip"
)

// QueuedEvent is an entry of a context's queue, in EMCO's JSON. Entries are only appended.
type QueuedEvent struct {
	Event Event `json:"event"`
	// UpdateContextID is the other context of an update.
	UpdateContextID string      `json:"uCID,omitempty"`
	Status          EventStatus `json:"status"`
}

// transition is what an event does to the states of a context.
type transition struct {
	allowed                           []appcontext.State
	during, success, failure, desired appcontext.State
}

var instantiation = transition{
	allowed: []appcontext.State{appcontext.StateCreated, appcontext.StateInstantiated, appcontext.StateInstantiateFailed, appcontext.StateInstantiating},
	during:  appcontext.StateInstantiating, success: appcontext.StateInstantiated, failure: appcontext.StateInstantiateFailed, desired: appcontext.StateInstantiated,
}

var transitions = map[Event]transition{
	EventInstantiate: instantiation,
	EventRead:        instantiation,
	EventTerminate: {
		allowed: []appcontext.State{
			appcontext.StateInstantiateFailed, appcontext.StateInstantiating, appcontext.StateInstantiated, appcontext.StateTerminateFailed,
			appcontext.StateTerminating, appcontext.StateUpdated, appcontext.StateUpdateFailed, appcontext.StateUpdating,
		},
		during: appcontext.StateTerminating, success: appcontext.StateTerminated, failure: appcontext.StateTerminateFailed, desired: appcontext.StateTerminated,
	},
	EventUpdate: {
		// EMCO knows Created and Updated. The others are those of a context whose update has failed, and to which one rolls back:
		// it was not deleted from.
		allowed: []appcontext.State{
			appcontext.StateCreated, appcontext.StateUpdated, appcontext.StateInstantiated, appcontext.StateInstantiateFailed, appcontext.StateUpdateFailed,
		},
		during: appcontext.StateInstantiating, success: appcontext.StateInstantiated, failure: appcontext.StateInstantiateFailed, desired: appcontext.StateInstantiated,
	},
	EventUpdateDelete: {
		// EMCO knows Instantiated. What has failed is deleted from when it is rolled back.
		allowed: []appcontext.State{appcontext.StateInstantiated, appcontext.StateInstantiateFailed, appcontext.StateUpdateFailed},
		during:  appcontext.StateUpdating, success: appcontext.StateUpdated, failure: appcontext.StateUpdateFailed, desired: appcontext.StateUpdated,
	},
}

// Lifecycle is what etcd holds of the state machine of a context.
type Lifecycle struct {
	// Queue holds every event that there was.
	Queue []QueuedEvent
	// Current and Desired are rsync's own states; empty before the first event. Status is what status queries show.
	Current, Desired, Status appcontext.State
	// PendingTerminate is true while a Terminate waits for an event that it interrupts.
	PendingTerminate bool
	// Stop makes rsync end what it does.
	Stop bool
}

// Active reports whether an event is still to be handled.
func (l Lifecycle) Active() bool { return l.pending() >= 0 }

// pending returns the index of the event to handle; -1 when there is none.
func (l Lifecycle) pending() int {
	return slices.IndexFunc(l.Queue, func(e QueuedEvent) bool { return e.Status == EventPending })
}

// NotAllowedError says that an event cannot begin in the state that a context has.
type NotAllowedError struct {
	Event   Event
	Current appcontext.State
}

// Error implements error.
func (e *NotAllowedError) Error() string {
	states := make([]string, 0, len(transitions[e.Event].allowed))
	for _, s := range transitions[e.Event].allowed {
		states = append(states, string(s))
	}
	return fmt.Sprintf("event %q is not possible in state %q: it must be one of %s", e.Event, e.Current, strings.Join(states, ", "))
}

// Enqueue returns the lifecycle with an event at the end of the queue. other is the other context of an update. It fails with
// a NotAllowedError when nothing is waiting before the event and the event cannot begin. A stop from before ends with it.
func (l Lifecycle) Enqueue(event Event, other string) (Lifecycle, error) {
	l = l.created()
	if !l.Active() && !slices.Contains(transitions[event].allowed, l.Current) {
		return l, &NotAllowedError{event, l.Current}
	}
	l.Stop = false
	return l.append(event, other), nil
}

// created returns the lifecycle with the states that a context has before its first event.
func (l Lifecycle) created() Lifecycle {
	if l.Current == "" {
		l.Current, l.Status = appcontext.StateCreated, appcontext.StateCreated
	}
	return l
}

func (l Lifecycle) append(event Event, other string) Lifecycle {
	l.Queue = append(slices.Clip(l.Queue), QueuedEvent{Event: event, UpdateContextID: other, Status: EventPending})
	l.PendingTerminate = l.interrupting()
	return l
}

// Stopped returns the lifecycle of which nothing more is to be done until the next event is added. What waits ends here; an event
// that was begun is ended by who handles it.
func (l Lifecycle) Stopped() Lifecycle {
	l = l.created()
	l.Stop = true
	if !l.begun() {
		l, _, _ = l.Next()
	}
	return l
}

// Replaced returns the lifecycle of a context after the update of its deployment to another one: what that lacks is to be
// deleted, unless the context is to be there again meanwhile, or is not to be there anyway.
func (l Lifecycle) Replaced(by string) Lifecycle {
	if !l.Wanted() || l.waits(EventInstantiate) || l.waits(EventUpdate) {
		return l
	}
	return l.created().append(EventUpdateDelete, by)
}

// Wanted reports whether a context is to be there: of the events that are not skipped, and will not be, the last that changes
// anything in clusters brings it.
func (l Lifecycle) Wanted() bool {
	state, wanted := l.Current, false
	for i, e := range l.Queue {
		t := transitions[e.Event]
		switch {
		case e.Status == EventSkipped:
			continue
		case e.Status != EventPending:
		case i == l.pending() && l.begun(), slices.Contains(t.allowed, state):
			state = t.success
		default:
			continue
		}
		wanted = e.Event.Brings() || e.Event == EventRead && wanted
	}
	return wanted
}

// Unfinished returns the context from which the last update led to this one, if that update has not succeeded: both may have
// something in the clusters. Else it is empty.
func (l Lifecycle) Unfinished() string {
	for _, e := range slices.Backward(l.Queue) {
		if e.Event == EventUpdate && e.Status != EventSkipped {
			if e.Status == EventDone {
				return ""
			}
			return e.UpdateContextID
		}
	}
	return ""
}

// begun reports whether the work of the first event that waits was begun.
func (l Lifecycle) begun() bool {
	i := l.pending()
	if i < 0 {
		return false
	}
	t := transitions[l.Queue[i].Event]
	return l.Current == t.during && l.Desired == t.desired
}

// interrupting reports whether a Terminate waits behind an event of another kind.
func (l Lifecycle) interrupting() bool {
	first := l.pending()
	return first >= 0 && l.Queue[first].Event != EventTerminate &&
		slices.ContainsFunc(l.Queue[first:], func(e QueuedEvent) bool { return e.Event == EventTerminate && e.Status == EventPending })
}

// Interrupted reports whether the event that is being handled is to end before its work is done.
func (l Lifecycle) Interrupted() bool { return l.Stop || l.PendingTerminate || l.interrupting() }

// waits reports whether an event of a kind waits, or is being handled.
func (l Lifecycle) waits(event Event) bool {
	return slices.ContainsFunc(l.Queue, func(e QueuedEvent) bool { return e.Event == event && e.Status == EventPending })
}

// Next returns the lifecycle with the next event begun, and that event; false when none is left. One that was begun before
// is begun no second time, so that the work of a program that was killed continues. Events that cannot be, or are
// interrupted, end here.
func (l Lifecycle) Next() (Lifecycle, QueuedEvent, bool) {
	l.Queue = slices.Clone(l.Queue)
	for i := l.pending(); i >= 0; i = l.pending() {
		event := l.Queue[i].Event
		t, known := transitions[event]
		begun := l.Current == t.during && l.Desired == t.desired
		interrupted := l.Stop || event != EventTerminate && l.Interrupted()
		switch {
		case !known || !begun && !slices.Contains(t.allowed, l.Current):
			l.Queue[i].Status = EventSkipped
		case interrupted && begun:
			l.end(i, EventError, t.failure)
		case interrupted:
			l.end(i, EventSkipped, t.failure)
		default:
			l.Current, l.Desired, l.Status = t.during, t.desired, t.during
			l.PendingTerminate = false
			return l, l.Queue[i], true
		}
		l.PendingTerminate = l.interrupting()
	}
	return l, QueuedEvent{}, false
}

// Finish returns the lifecycle after the work of the event that was begun has ended.
func (l Lifecycle) Finish(succeeded bool) Lifecycle {
	i := l.pending()
	if i < 0 {
		return l
	}
	l.Queue = slices.Clone(l.Queue)
	t := transitions[l.Queue[i].Event]
	if succeeded {
		l.end(i, EventDone, t.success)
	} else {
		l.end(i, EventError, t.failure)
	}
	l.PendingTerminate = l.interrupting()
	return l
}

// end ends an event.
func (l *Lifecycle) end(i int, status EventStatus, state appcontext.State) {
	l.Queue[i].Status, l.Current, l.Status = status, state, state
}
