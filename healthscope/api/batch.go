package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"golang.org/x/sync/singleflight"
)

// coalescer makes one response for all concurrent requests for the same document. A response is only shared by requests that
// arrived before it was begun, so that no caller gets an outdated one: requests that arrive while one is being made share the
// next. The zero value is ready to use.
type coalescer struct {
	// running are the responses that are being made, one for each document. next are the responses that wait for them.
	running, next singleflight.Group
}

// do returns a response that compose has begun to make after the call. compose must make the same response for all requests with the same
// key; it gets a context that does not end when one of these requests ends.
func (b *coalescer) do(ctx context.Context, q documentKey, compose func(context.Context) (response, error)) (response, error) {
	key := q.subject.String() + "?" + q.query
	detached := context.WithoutCancel(ctx)
	results := b.next.DoChan(key, func() (any, error) {
		for { // An answer that is being made was begun before these callers asked: it is waited for, and the next is theirs.
			started := false
			a, err, _ := b.running.Do(key, func() (any, error) {
				started = true
				b.next.Forget(key) // Those who ask from now on share another one.
				return composeRecovering(detached, compose)
			})
			if started {
				return a, err
			}
		}
	})
	select {
	case result := <-results:
		a, _ := result.Val.(response)
		return a, result.Err
	case <-ctx.Done():
		return response{}, statusErrorf(http.StatusServiceUnavailable, "the answer was not ready in time: %w", context.Cause(ctx))
	}
}

// composeRecovering makes a response. It turns a panic into an error, so that all callers get one.
func composeRecovering(ctx context.Context, compose func(context.Context) (response, error)) (a response, err error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return compose(ctx)
}
