package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"golang.org/x/sync/singleflight"
)

// coalescer makes one response for all concurrent requests for the same document. Only requests that arrived before the work
// on a response began share it, so that no caller gets an outdated response. Requests that arrive during the work share the next
// response. The zero value is ready to use.
type coalescer struct {
	// running groups the responses in progress, one for each document. next groups the requests that wait for one to end.
	running, next singleflight.Group
}

// do returns a response of a call of compose that begins after the call of do. compose must return the same response for all requests with the
// same key. Its context does not end when one of these requests ends.
func (b *coalescer) do(ctx context.Context, q documentKey, compose func(context.Context) (response, error)) (response, error) {
	key := q.subject.String() + "?" + q.query
	detached := context.WithoutCancel(ctx)
	results := b.next.DoChan(key, func() (any, error) {
		for { // A response that is already in progress may be outdated for these callers: wait for its end, and make the next one.
			started := false
			a, err, _ := b.running.Do(key, func() (any, error) {
				started = true
				b.next.Forget(key) // Callers that arrive from now on share the next response.
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
