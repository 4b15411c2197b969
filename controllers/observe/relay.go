package observe

import "k8s.io/apimachinery/pkg/watch"

// relay is a watch that forwards events of another watch. Unlike the goroutine of watch.Filter, its goroutine ends on Stop even if the
// caller receives no more events.
type relay struct {
	*watch.ProxyWatcher

	events chan<- watch.Event
}

// newRelay returns a watch of the events that forward sends. When forward returns, both watches end. It must return when StopChan is closed.
func newRelay(stream watch.Interface, forward func(*relay)) *relay {
	events := make(chan watch.Event)
	r := &relay{watch.NewProxyWatcher(events), events}
	go func() {
		defer stream.Stop()
		defer close(events)
		forward(r)
	}()
	return r
}

// Stop ends the watch, and returns once forward has returned.
func (r *relay) Stop() {
	r.ProxyWatcher.Stop()
	for range r.ResultChan() { // It is closed after forward.
	}
}

// send sends an event, and reports whether it was received. It was not if the watch is stopped.
func (r *relay) send(event watch.Event) bool {
	select {
	case r.events <- event:
		return true
	case <-r.StopChan():
		return false
	}
}

// Filter returns a watch of the events that keep accepts.
func Filter(stream watch.Interface, keep func(watch.Event) bool) watch.Interface {
	return newRelay(stream, func(r *relay) {
		for {
			select {
			case <-r.StopChan():
				return
			case event, ok := <-stream.ResultChan():
				if !ok || keep(event) && !r.send(event) {
					return
				}
			}
		}
	})
}
