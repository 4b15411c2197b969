package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"

	"golang.org/x/sync/singleflight"
)

// batches make one answer for all who ask the same at a time. An answer is only given to those who asked before it was begun,
// so that no caller gets what was so before: those who ask while one is being made share the next. The zero value is ready.
type batches struct {
	// running are the answers that are being made, one for each question, and next those that wait until that one is made.
	running, next singleflight.Group
}

// ask returns an answer that compose has made since. compose must make the same for all who ask the question; it gets a
// context that does not end when one of them goes.
func (b *batches) ask(ctx context.Context, q question, compose func(context.Context) (answer, error)) (answer, error) {
	key := q.subject.String() + "?" + q.query
	shared := context.WithoutCancel(ctx)
	made := b.next.DoChan(key, func() (any, error) {
		for { // An answer that is being made was begun before these callers asked: it is waited for, and the next is theirs.
			begun := false
			a, err, _ := b.running.Do(key, func() (any, error) {
				begun = true
				b.next.Forget(key) // Those who ask from now on share another one.
				return composeShared(shared, compose)
			})
			if begun {
				return a, err
			}
		}
	})
	select {
	case result := <-made:
		a, _ := result.Val.(answer)
		return a, result.Err
	case <-ctx.Done():
		return answer{}, failf(http.StatusServiceUnavailable, "the answer was not ready in time: %w", context.Cause(ctx))
	}
}

// composeShared makes an answer. A panic is an error: it must not take the other callers with it.
func composeShared(ctx context.Context, compose func(context.Context) (answer, error)) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return compose(ctx)
}
