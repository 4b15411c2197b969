package deploy

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// The levels below a context that hold its lifecycle.
const (
	levelQueue            = "rsync/AppContextEventQueue"
	levelCurrent          = "rsync/state/CurrentState"
	levelDesired          = "rsync/state/DesiredState"
	levelPendingTerminate = "rsync/state/PendingTerminateFlag"
	levelStatus           = "status"
	levelStop             = "stopflag"
)

// LifecycleLevels returns the levels below a context that ReadLifecycle reads. A change of the lifecycle is valid only
// while none of them has changed.
func LifecycleLevels() []string {
	return []string{levelQueue, levelCurrent, levelDesired, levelPendingTerminate, levelStatus, levelStop}
}

// MembersHandle returns the handle below which keys of our own name the contexts that keep the states of their resources in the
// context with the id statusID.
func MembersHandle(statusID string) appcontext.Handle {
	return appcontext.ContextHandle(statusID).Level("rsync/deployment")
}

// QueueHandle returns the handle of the queue of a context. A key of our own beside it is written at the same time: if the queue was
// written later, another program wrote it.
func QueueHandle(id string) appcontext.Handle { return appcontext.ContextHandle(id).Level(levelQueue) }

// StandingDownHandle is the handle of a key of our own that holds why rsync handles no context.
const StandingDownHandle appcontext.Handle = "/rsync/standingdown/"

// Revision returns the revision of etcd at which the queue of a context was last written.
func Revision(s *appcontext.Snapshot) int64 { return s.StoredRevision(QueueHandle(s.ID())) }

// queueWriter is the value of the key beside a queue.
const queueWriter = "healthscope"

// queueValue and stateValue are how EMCO stores a queue and a state.
type (
	queueValue struct{ AcQueue []QueuedEvent }
	stateValue struct{ Status appcontext.State }
)

// ReadLifecycle returns the lifecycle of a context. A stop flag that cannot be read counts as set.
func ReadLifecycle(s *appcontext.Snapshot) (Lifecycle, error) {
	var l Lifecycle
	var queue queueValue
	var current, desired, status stateValue
	for _, level := range []struct {
		name string
		into any
	}{{levelQueue, &queue}, {levelPendingTerminate, &l.PendingTerminate}, {levelCurrent, &current}, {levelDesired, &desired}, {levelStatus, &status}} {
		if err := readLevel(s, level.name, level.into); err != nil {
			return l, err
		}
	}
	l.Queue, l.Current, l.Desired, l.Status = queue.AcQueue, current.Status, desired.Status, status.Status
	if err := readLevel(s, levelStop, &l.Stop); err != nil {
		l.Stop = true
	}
	return l, nil
}

func readLevel(s *appcontext.Snapshot, level string, into any) error {
	data, ok := s.Stored(s.Handle().Level(level))
	if !ok {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("cannot read %q of context %q: %w", level, s.ID(), err)
	}
	return nil
}

// beginRevision returns the revision of etcd at which the current event was begun. Earlier statuses of resources say nothing
// about its work.
func beginRevision(s *appcontext.Snapshot) int64 {
	return max(s.StoredRevision(s.Handle().Level(levelCurrent)), s.StoredRevision(s.Handle().Level(levelDesired)))
}

// Changes returns the keys in which two lifecycles of a context differ, in the order in which EMCO writes them. The entry
// among the active contexts is written with every event that is to be handled, which wakes the workers. A new event and a stop
// end the retry of the previous event.
func Changes(id string, before, after Lifecycle) []appcontext.Write {
	h, active := appcontext.ContextHandle(id), appcontext.ActiveHandle(id)
	var writes []appcontext.Write
	put := func(changed bool, level string, value any) {
		if changed {
			writes = append(writes, appcontext.Write{Handle: h.Level(level), Value: value})
		}
	}
	first := before.Current == ""
	added := len(after.Queue) > len(before.Queue)
	if added || after.Active() && !before.Active() {
		writes = append(writes, appcontext.Write{Handle: active, Value: id})
	}
	if added || after.Stop && !before.Stop {
		writes = append(writes, Retry{}.Write(id))
	}
	if !slices.Equal(before.Queue, after.Queue) {
		writes = append(writes, appcontext.Write{Handle: QueueHandle(id), Value: queueValue{after.Queue}}, appcontext.Write{Handle: QueueHandle(id), Sidecar: true, Value: queueWriter})
	}
	put(first || before.Stop != after.Stop, levelStop, after.Stop)
	put(before.Status != after.Status, levelStatus, stateValue{after.Status})
	put(before.Desired != after.Desired, levelDesired, stateValue{after.Desired})
	put(before.Current != after.Current, levelCurrent, stateValue{after.Current})
	put(first || before.PendingTerminate != after.PendingTerminate, levelPendingTerminate, after.PendingTerminate)
	if !after.Active() {
		writes = append(writes, appcontext.Write{Handle: active})
	}
	return writes
}
