package observe

import "k8s.io/apimachinery/pkg/watch"

// relay is a watch that passes on events of another one.
type relay struct {
	*watch.ProxyWatcher

	events chan<- watch.Event
}

// newRelay returns a watch of what pass sends. When pass returns, both watches end. It must return when StopChan is closed.
func newRelay(stream watch.Interface, pass func(*relay)) *relay {
	events := make(chan watch.Event)
	r := &relay{watch.NewProxyWatcher(events), events}
	go func() {
		defer stream.Stop()
		defer close(events)
		pass(r)
	}()
	return r
}

// send passes an event on. It reports whether it was received: it is not when the watch is stopped.
func (r *relay) send(event watch.Event) bool {
	select {
	case r.events <- event:
		return true
	case <-r.StopChan():
		return false
	}
}

// Filter returns a watch of the events that keep accepts. Unlike that of watch.Filter, its goroutine ends with Stop also
// when nothing receives any more.
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
