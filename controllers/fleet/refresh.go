package fleet

import (
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// occasion is something that happens again and again, and that many wait for. It is safe for concurrent use.
type occasion struct {
	mu   sync.Mutex
	next chan struct{}
}

func newOccasion() *occasion { return &occasion{next: make(chan struct{})} }

// coming returns what is closed when it happens next.
func (o *occasion) coming() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.next
}

// happens tells those who wait.
func (o *occasion) happens() {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.next)
	o.next = make(chan struct{})
}

// Refresh reads the bundles of clusters again in which others than monitors of ours have filled some, because rules have
// changed: the hub judges these, and does not keep what it judged. Until one has been read it is shown as it was.
func (v *View) Refresh() { v.rules.happens() }

// Refresh reads all kinds that are wanted again, because rules have changed. As objects are not kept there is no other
// way. Until a kind has been read what was known of it holds, also in a cluster that cannot be seen.
func (o *Objects) Refresh() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, known := range o.clusters {
		o.renew(name, known.state)
	}
}

// holdsForeign says whether there are bundles that a monitor other than ours has filled.
func (c *connection) holdsForeign() bool {
	for _, store := range c.informers() {
		for _, object := range store.GetStore().List() {
			if h, ok := object.(*held); ok && !h.contents.Own {
				return true
			}
		}
	}
	return false
}

// fromStart notes that a resource is read from the start: it is judged by the rules that are in force by now.
func (w *watched) fromStart() {
	if w.rules != nil {
		w.judged = w.rules.coming()
	}
}

// outdated says whether what is held was judged by rules that are not in force any more. A monitor of ours judges itself.
func (w *watched) outdated() bool { return w.foreign != nil && w.foreign() }

// expired returns the event with which an API server ends a watch that it cannot continue, so that all is read from the start.
func expired() watch.Event {
	return watch.Event{Type: watch.Error, Object: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "the rules for health have changed",
	}}
}
