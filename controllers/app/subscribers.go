package app

import (
	"maps"
	"slices"
	"sync"
)

// subscribers are callbacks, each registered until its subscription is cancelled. It is safe for concurrent use.
type subscribers[F any] struct {
	mu  sync.Mutex
	all map[*F]F
}

// add adds a subscriber until cancel is called.
func (s *subscribers[F]) add(f F) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*F]F{}
	}
	s.all[&f] = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, &f)
	}
}

// list returns the subscribers, in no order.
func (s *subscribers[F]) list() []F {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.all))
}
