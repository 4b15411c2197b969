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

// Deploys reports whether an event deploys its context.
func (e Event) Deploys() bool { return e == EventInstantiate || e == EventUpdate }

// EventStatus is the result of an event, or Pending.
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
	// Queue holds all events, including those that have ended.
	Queue []QueuedEvent
	// Current and Desired are rsync's own states; empty before the first event. Status is what status queries show.
	Current, Desired, Status appcontext.State
	// PendingTerminate is true while a Terminate waits for the event that it interrupts to end.
	PendingTerminate bool
	// Stop makes rsync end the current event.
	Stop bool
}

// Active reports whether an event is still to be handled.
func (l Lifecycle) Active() bool { return l.PendingIndex() >= 0 }

// PendingIndex returns the index in the queue of the event in progress, or of the next one; -1 when there is none.
func (l Lifecycle) PendingIndex() int {
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
// a NotAllowedError when no event is pending and the event cannot begin in the current state. It clears Stop.
func (l Lifecycle) Enqueue(event Event, other string) (Lifecycle, error) {
	l = l.withInitialStates()
	if !l.Active() && !slices.Contains(transitions[event].allowed, l.Current) {
		return l, &NotAllowedError{event, l.Current}
	}
	l.Stop = false
	return l.appendEvent(event, other), nil
}

// withInitialStates returns the lifecycle with the states that a context has before its first event.
func (l Lifecycle) withInitialStates() Lifecycle {
	if l.Current == "" {
		l.Current, l.Status = appcontext.StateCreated, appcontext.StateCreated
	}
	return l
}

func (l Lifecycle) appendEvent(event Event, other string) Lifecycle {
	l.Queue = append(slices.Clip(l.Queue), QueuedEvent{Event: event, UpdateContextID: other, Status: EventPending})
	l.PendingTerminate = l.hasInterruptingTerminate()
	return l
}

// Stopped returns the lifecycle with Stop set, so that nothing is done until the next event is added. Pending events end here,
// unless one was begun: then the worker that handles it ends it.
func (l Lifecycle) Stopped() Lifecycle {
	l = l.withInitialStates()
	l.Stop = true
	if !l.begun() {
		l, _, _ = l.Next()
	}
	return l
}

// ReplacedBy returns the lifecycle of a context after its deployment was updated to another context: an EventUpdateDelete is
// added, unless the context is no longer wanted, or an event is pending that deploys it again.
func (l Lifecycle) ReplacedBy(by string) Lifecycle {
	if !l.Wanted() || l.hasPending(EventInstantiate) || l.hasPending(EventUpdate) {
		return l
	}
	return l.withInitialStates().appendEvent(EventUpdateDelete, by)
}

// Wanted reports whether a context is to be deployed: whether the last event that changes clusters deploys it. Events that
// were skipped, or will be, do not count.
func (l Lifecycle) Wanted() bool {
	state, wanted := l.Current, false
	for i, e := range l.Queue {
		t := transitions[e.Event]
		switch {
		case e.Status == EventSkipped:
			continue
		case e.Status != EventPending:
		case i == l.PendingIndex() && l.begun(), slices.Contains(t.allowed, state):
			state = t.success
		default:
			continue
		}
		wanted = e.Event.Deploys() || e.Event == EventRead && wanted
	}
	return wanted
}

// onlyRead reports whether a context was only read, and never deployed: it owns nothing in clusters.
func (l Lifecycle) onlyRead() bool {
	read := false
	for _, e := range l.Queue {
		if e.Event.Deploys() && e.Status != EventSkipped {
			return false
		}
		read = read || e.Event == EventRead
	}
	return read
}

// UnfinishedUpdateFrom returns the id of the context that the last update was to replace, if that update has not succeeded: both contexts
// may have resources in the clusters. Otherwise it returns an empty string.
func (l Lifecycle) UnfinishedUpdateFrom() string {
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

// begun reports whether the work of the first pending event was begun.
func (l Lifecycle) begun() bool {
	i := l.PendingIndex()
	return i >= 0 && l.isDuring(transitions[l.Queue[i].Event])
}

// isDuring reports whether the states are those during a transition.
func (l Lifecycle) isDuring(t transition) bool {
	return l.Current == t.during && l.Desired == t.desired
}

// hasInterruptingTerminate reports whether a Terminate is pending behind an event of another kind.
func (l Lifecycle) hasInterruptingTerminate() bool {
	first := l.PendingIndex()
	return first >= 0 && l.Queue[first].Event != EventTerminate &&
		slices.ContainsFunc(l.Queue[first:], func(e QueuedEvent) bool { return e.Event == EventTerminate && e.Status == EventPending })
}

// Interrupted reports whether the current event must end before its work is done.
func (l Lifecycle) Interrupted() bool {
	return l.Stop || l.PendingTerminate || l.hasInterruptingTerminate()
}

// hasPending reports whether an event of a kind is pending or in progress.
func (l Lifecycle) hasPending(event Event) bool {
	return slices.ContainsFunc(l.Queue, func(e QueuedEvent) bool { return e.Event == event && e.Status == EventPending })
}

// Next returns the lifecycle with the next event begun, and that event; false when none is left. It returns an event that was
// begun before as it is, so that the work of a program that was killed continues. Events that are unknown, not allowed or
// interrupted end here.
func (l Lifecycle) Next() (Lifecycle, QueuedEvent, bool) {
	l.Queue = slices.Clone(l.Queue)
	for i := l.PendingIndex(); i >= 0; i = l.PendingIndex() {
		event := l.Queue[i].Event
		t, known := transitions[event]
		begun := l.isDuring(t)
		interrupted := l.Stop || event != EventTerminate && l.Interrupted()
		switch {
		case !known || !begun && !slices.Contains(t.allowed, l.Current):
			l.Queue[i].Status = EventSkipped
		case interrupted && begun:
			l.endEvent(i, EventError, t.failure)
		case interrupted:
			l.endEvent(i, EventSkipped, t.failure)
		default:
			l.Current, l.Desired, l.Status = t.during, t.desired, t.during
			l.PendingTerminate = false
			return l, l.Queue[i], true
		}
		l.PendingTerminate = l.hasInterruptingTerminate()
	}
	return l, QueuedEvent{}, false
}

// Finish returns the lifecycle after the work of the current event has ended.
func (l Lifecycle) Finish(succeeded bool) Lifecycle {
	i := l.PendingIndex()
	if i < 0 {
		return l
	}
	l.Queue = slices.Clone(l.Queue)
	if t := transitions[l.Queue[i].Event]; succeeded {
		l.endEvent(i, EventDone, t.success)
	} else {
		l.endEvent(i, EventError, t.failure)
	}
	l.PendingTerminate = l.hasInterruptingTerminate()
	return l
}

// endEvent sets the status of an event and the state that follows from it.
func (l *Lifecycle) endEvent(i int, status EventStatus, state appcontext.State) {
	l.Queue[i].Status, l.Current, l.Status = status, state, state
}
