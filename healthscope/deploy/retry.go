package deploy

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// Retry says that an event of which clusters have refused something is to be handled again: what they refused, and what waits for
// that. It is kept in etcd, beside the entry that the context has among the active ones while it is handled.
type Retry struct {
	// Event is the event, and Index where it is in the queue.
	Event Event `json:"event"`
	Index int   `json:"index"`
	// Begun is the revision of etcd at which its work was begun.
	Begun int64 `json:"begun"`
	// Count is how often it was handled again.
	Count int `json:"count"`
	// Next is when it is handled again.
	Next time.Time `json:"next"`
}

// RetriesHandle is the handle below which retries are kept, in keys of our own, by the id of the context.
const RetriesHandle appcontext.Handle = "/activecontext/"

// Write returns the key of a retry of an event of a context. The zero value removes it.
func (r Retry) Write(id string) appcontext.Write {
	w := appcontext.Write{Handle: RetriesHandle.Level(id), Own: true}
	if r != (Retry{}) {
		data, _ := json.Marshal(r) //nolint:errchkjson // Numbers and a time of this era.
		w.Value = string(data)
	}
	return w
}

// ReadRetry reads the value of a retry's key. An empty value is the zero value.
func ReadRetry(value string) (r Retry, err error) {
	if value != "" {
		err = json.Unmarshal([]byte(value), &r)
	}
	if err != nil {
		err = fmt.Errorf("cannot read retry %q: %w", value, err)
	}
	return r, err
}

// Handled returns the index in the queue of the event that is being handled, or is the next; -1 when there is none.
func (l Lifecycle) Handled() int { return l.pending() }

// Again returns the lifecycle with an event begun again that has failed. It is false when that is not to be: the context was
// stopped, or another event has been added.
func (l Lifecycle) Again(r Retry) (Lifecycle, bool) {
	if l.Stop || r.Index != len(l.Queue)-1 || r.Index < 0 || l.Queue[r.Index].Status != EventError {
		return l, false
	}
	t := transitions[l.Queue[r.Index].Event]
	l.Queue = slices.Clone(l.Queue)
	l.Queue[r.Index].Status = EventPending
	l.Current, l.Desired, l.Status = t.during, t.desired, t.during
	return l, true
}

// Brings reports whether an event has a context there when it has succeeded.
func (e Event) Brings() bool { return e == EventInstantiate || e == EventUpdate }

// Superseded reports whether the retry of an event of a context is to end because another event of the deployment waits.
func (d Deployment) Superseded(id string) bool {
	return slices.ContainsFunc(d, func(m Member) bool {
		last := len(m.Queue) - 1
		return m.Active() && (m.ID != id || m.pending() != last)
	})
}
