package fleet

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// sieve is a watch without the events that keep refuses. Unlike watch.Filter's, its goroutine ends with Stop also when
// nobody receives any more.
type sieve struct {
	watch.Interface

	keep   func(watch.Event) bool
	events chan watch.Event
	done   chan struct{}
	once   sync.Once
}

func newSieve(stream watch.Interface, keep func(watch.Event) bool) *sieve {
	s := &sieve{Interface: stream, keep: keep, events: make(chan watch.Event), done: make(chan struct{})}
	go s.pass()
	return s
}

// ResultChan implements watch.Interface.
func (s *sieve) ResultChan() <-chan watch.Event { return s.events }

// Stop implements watch.Interface.
func (s *sieve) Stop() {
	s.once.Do(func() { close(s.done) })
	s.Interface.Stop()
}

// pass passes events on until there are no more, or the watch is stopped.
func (s *sieve) pass() {
	defer close(s.events)
	for event := range s.Interface.ResultChan() {
		if !s.keep(event) {
			continue
		}
		select {
		case s.events <- event:
		case <-s.done:
			return
		}
	}
}
