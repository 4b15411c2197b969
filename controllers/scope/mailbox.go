package scope

import (
	"context"
	"sync"
)

// mailbox hands items from callers that must not block to one that may take its time, in order.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	ready chan struct{}
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{ready: make(chan struct{}, 1)} }

// put adds an item. It never blocks.
func (m *mailbox[T]) put(item T) {
	m.mu.Lock()
	m.items = append(m.items, item)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// deliver calls handle for every item until ctx ends.
func (m *mailbox[T]) deliver(ctx context.Context, handle func(T)) {
	for {
		m.mu.Lock()
		items := m.items
		m.items = nil
		m.mu.Unlock()
		for _, item := range items {
			handle(item)
		}
		select {
		case <-m.ready:
		case <-ctx.Done():
			return
		}
	}
}
