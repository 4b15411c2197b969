package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// board holds what a watch has shown last of each object of a kind, and tells who waits for something when it has come true.
type board[V any] struct {
	kind string

	mu     sync.Mutex // guards the rest
	latest map[types.NamespacedName]V
	waits  map[*waiter[V]]struct{}
	// changed is when the last event came.
	changed time.Time
}

// check returns what is wrong with an object, or nothing when it is as it should be.
type check[V any] func(V) string

// waiter is somebody who waits for objects to become right.
type waiter[V any] struct {
	open map[types.NamespacedName]check[V]
	// done is sent the time at which the last one did.
	done chan time.Time
}

func newBoard[V any](kind string) *board[V] {
	return &board[V]{kind: kind, latest: map[types.NamespacedName]V{}, waits: map[*waiter[V]]struct{}{}}
}

// put shows an object.
func (b *board[V]) put(name types.NamespacedName, value V) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest[name], b.changed = value, now
	for w := range b.waits {
		if is, ok := w.open[name]; !ok || is(value) != "" {
			continue
		}
		delete(w.open, name)
		if len(w.open) == 0 {
			delete(b.waits, w)
			w.done <- now
		}
	}
}

// remove takes an object away.
func (b *board[V]) remove(name types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.latest, name)
	b.changed = time.Now()
}

// snapshot returns what is shown.
func (b *board[V]) snapshot() map[types.NamespacedName]V {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.latest)
}

// expect begins to wait for objects to become right; the function that it returns waits, and returns when the last one did.
func (b *board[V]) expect(what string, checks map[types.NamespacedName]check[V]) func(context.Context) (time.Time, error) {
	w := &waiter[V]{open: map[types.NamespacedName]check[V]{}, done: make(chan time.Time, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, is := range checks {
		if value, ok := b.latest[name]; !ok || is(value) != "" {
			w.open[name] = is
		}
	}
	if len(w.open) == 0 {
		w.done <- time.Now()
	} else {
		b.waits[w] = struct{}{}
	}
	return func(ctx context.Context) (time.Time, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, waitLimit, fmt.Errorf("not done after %s", waitLimit))
		defer cancel()
		select {
		case at := <-w.done:
			return at, nil
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waited for %s: %s: %w", what, b.giveUp(w), context.Cause(ctx))
		}
	}
}

// await waits for objects to become right, and returns when the last one did.
func (b *board[V]) await(ctx context.Context, what string, checks map[types.NamespacedName]check[V]) (time.Time, error) {
	return b.expect(what, checks)(ctx)
}

// giveUp ends a wait, and says what it lacks.
func (b *board[V]) giveUp(w *waiter[V]) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waits, w)
	for name, is := range w.open {
		wrong := "it is not there"
		if value, ok := b.latest[name]; ok {
			wrong = is(value)
		}
		return fmt.Sprintf("%d %s are not right, one of them %q: %s", len(w.open), b.kind, name, wrong)
	}
	return "it came true just now"
}

// quiet waits until nothing has changed for some time.
func (b *board[V]) quiet(ctx context.Context, length time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitLimit, fmt.Errorf("waited for %s of quiet: %s still change after %s", length, b.kind, waitLimit))
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
			return err
		}
	}
}

// pause lets time pass.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// poll asks again and again whether something has come true that nothing announces.
func poll(ctx context.Context, what string, ask wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitLimit, fmt.Errorf("not done after %s", waitLimit))
	defer cancel()
	if err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, ask); err != nil {
		return fmt.Errorf("waited for %s: %w", what, errors.Join(err, context.Cause(ctx)))
	}
	return nil
}
