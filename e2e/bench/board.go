package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// board holds the latest state of each object of a kind, as reported by a watch. It notifies waiters when their objects pass
// their checks.
type board[V any] struct {
	kind string

	mu     sync.Mutex // guards the rest
	latest map[types.NamespacedName]shown[V]
	waits  map[*waiter[V]]struct{}
	// changed is the time of the last event.
	changed time.Time
}

// shown is a state with the time at which the watch reported it.
type shown[V any] struct {
	value V
	at    time.Time
}

// checks holds a function for each object. It returns what is wrong with the state of the object; empty when nothing is wrong.
type checks[V any] map[types.NamespacedName]func(V) string

// waiter waits until objects pass their checks.
type waiter[V any] struct {
	open checks[V]
	// done receives the time at which the last object passed.
	done chan time.Time
}

func newBoard[V any](kind string) *board[V] {
	return &board[V]{kind: kind, latest: map[types.NamespacedName]shown[V]{}, waits: map[*waiter[V]]struct{}{}}
}

// put stores the state of an object.
func (b *board[V]) put(name types.NamespacedName, value V) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest[name], b.changed = shown[V]{value, now}, now
	for w := range b.waits {
		if check, ok := w.open[name]; !ok || check(value) != "" {
			continue
		}
		delete(w.open, name)
		if len(w.open) == 0 {
			delete(b.waits, w)
			w.done <- now
		}
	}
}

// remove removes an object.
func (b *board[V]) remove(name types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.latest, name)
	b.changed = time.Now()
}

// count returns the number of objects.
func (b *board[V]) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.latest)
}

// expect begins to wait until objects pass their checks. The function that it returns waits, and returns the time at which the
// last object passed.
func (b *board[V]) expect(what string, all checks[V]) func(context.Context) (time.Time, error) {
	w := &waiter[V]{open: maps.Clone(all), done: make(chan time.Time, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	var last time.Time
	for name, check := range all {
		if s, ok := b.latest[name]; ok && check(s.value) == "" {
			delete(w.open, name)
			if s.at.After(last) {
				last = s.at
			}
		}
	}
	if len(w.open) == 0 {
		w.done <- last
	} else {
		b.waits[w] = struct{}{}
	}
	return func(ctx context.Context) (time.Time, error) {
		ctx, cancel := withLimit(ctx)
		defer cancel()
		select {
		case at := <-w.done:
			return at, nil
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waited for %s: %s: %w", what, b.giveUp(w), context.Cause(ctx))
		}
	}
}

// await waits until objects pass their checks, and returns the time at which the last object passed.
func (b *board[V]) await(ctx context.Context, what string, all checks[V]) (time.Time, error) {
	return b.expect(what, all)(ctx)
}

// giveUp ends a wait, and returns what is missing.
func (b *board[V]) giveUp(w *waiter[V]) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waits, w)
	for name, check := range w.open {
		wrong := "it does not exist"
		if s, ok := b.latest[name]; ok {
			wrong = check(s.value)
		}
		return fmt.Sprintf("%d %s are wrong, one of them %q: %s", len(w.open), b.kind, name, wrong)
	}
	return "all came right just now"
}

// quiet waits until nothing has changed for some time.
func (b *board[V]) quiet(ctx context.Context, length time.Duration) error {
	ctx, cancel := withLimit(ctx)
	defer cancel()
	since := time.Now()
	for {
		b.mu.Lock()
		if b.changed.After(since) {
			since = b.changed
		}
		b.mu.Unlock()
		rest := time.Until(since.Add(length))
		if rest <= 0 {
			return nil
		}
		if err := pause(ctx, rest); err != nil {
			return fmt.Errorf("waited for %s of quiet: %s still change: %w", length, b.kind, err)
		}
	}
}

// withLimit returns a context that ends after waitLimit.
func withLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, waitLimit, fmt.Errorf("not done after %s", waitLimit))
}

// pause waits for some time.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// poll calls ask every 100 ms until it returns true. It is for conditions that no watch reports.
func poll(ctx context.Context, what string, ask wait.ConditionWithContextFunc) error {
	ctx, cancel := withLimit(ctx)
	defer cancel()
	if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, ask); err != nil {
		return fmt.Errorf("waited for %s: %w", what, err)
	}
	return nil
}
