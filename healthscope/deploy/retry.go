package deploy

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// Retry says that an event is to be handled again, because clusters have refused some of its steps: those steps are taken again,
// and those that wait for them. It is kept in etcd, beside the key that names the context as active while it is handled.
type Retry struct {
	// Event is the event, and Index where it is in the queue.
	Event Event `json:"event"`
	Index int   `json:"index"`
	// Begun is the revision of etcd at which its work began.
	Begun int64 `json:"begun"`
	// Count is the number of retries so far.
	Count int `json:"count"`
	// Next is the time of the next retry.
	Next time.Time `json:"next"`
}

// RetriesHandle is the handle below which retries are kept, in keys of our own, by the id of the context.
const RetriesHandle appcontext.Handle = "/activecontext/"

// Write returns the write that stores the retry of a context. The zero value removes it.
func (r Retry) Write(id string) appcontext.Write {
	w := appcontext.Write{Handle: RetriesHandle.Level(id), Sidecar: true}
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

// Retry returns the lifecycle with a failed event begun again. It returns false when the context was stopped, or another event
// has been added.
func (l Lifecycle) Retry(r Retry) (Lifecycle, bool) {
	if l.Stop || r.Index != len(l.Queue)-1 || r.Index < 0 || l.Queue[r.Index].Status != EventError {
		return l, false
	}
	t := transitions[l.Queue[r.Index].Event]
	l.Queue = slices.Clone(l.Queue)
	l.Queue[r.Index].Status = EventPending
	l.Current, l.Desired, l.Status = t.during, t.desired, t.during
	return l, true
}
