package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
)

// batches make one answer for all who ask the same at a time. An answer is only given to those who asked before it was begun,
// so that nobody is told what was so before: those who ask while one is being made share the next. The zero value is ready.
type batches struct {
	mu sync.Mutex
	// next are the batches to be made after those that are being made; nil when nobody waits for one.
	next map[question]*batch
}

// batch is an answer, which is there when done is closed.
type batch struct {
	done chan struct{}
	// compose makes it.
	compose func(context.Context) (answer, error)
	answer  answer
	err     error
}

// ask returns an answer that compose has made since. compose must make the same for all who ask the question; it gets a
// context that does not end when one of them goes.
func (b *batches) ask(ctx context.Context, q question, compose func(context.Context) (answer, error)) (answer, error) {
	joined := b.join(ctx, q, compose)
	select {
	case <-joined.done:
		return joined.answer, joined.err
	case <-ctx.Done():
		return answer{}, failf(http.StatusServiceUnavailable, "the answer was not ready in time: %w", context.Cause(ctx))
	}
}

func (b *batches) join(ctx context.Context, q question, compose func(context.Context) (answer, error)) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, busy := b.next[q]
	switch {
	case next != nil:
		return next
	case busy:
		next = newBatch(compose)
		b.next[q] = next
		return next
	}
	if b.next == nil {
		b.next = map[question]*batch{}
	}
	b.next[q] = nil
	first := newBatch(compose)
	go b.run(context.WithoutCancel(ctx), q, first)
	return first
}

func newBatch(compose func(context.Context) (answer, error)) *batch {
	return &batch{done: make(chan struct{}), compose: compose}
}

// run makes batches until nobody waits for one.
func (b *batches) run(ctx context.Context, q question, current *batch) {
	for current != nil {
		current.run(ctx)
		current = b.after(q)
	}
}

// after returns the batch that is to be made next; nil when there is none.
func (b *batches) after(q question) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.next[q]
	if next == nil {
		delete(b.next, q)
	} else {
		b.next[q] = nil
	}
	return next
}

// run makes the answer. A panic is an error: it must not take the other callers with it.
func (b *batch) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	defer close(b.done)
	defer func() {
		if cause := recover(); cause != nil {
			b.err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	b.answer, b.err = b.compose(ctx)
}
