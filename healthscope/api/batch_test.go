package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// made returns the text of a response.
func made(a response) string {
	text, _ := a.document.(string)
	return text
}

func TestConcurrentRequestsShareTheNextResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b coalescer
		var mu sync.Mutex
		begun, now := 0, "before"
		compose := func(ctx context.Context) (response, error) {
			mu.Lock()
			begun++
			text := now
			mu.Unlock()
			<-time.After(time.Second)
			return response{document: text}, ctx.Err()
		}
		var group sync.WaitGroup
		ask := func(want string) {
			group.Go(func() {
				if a, err := b.do(t.Context(), documentKey{query: "q"}, compose); err != nil || made(a) != want {
					t.Errorf("got %q, %v, want %q", made(a), err, want)
				}
			})
		}
		ask("before")
		synctest.Wait()
		mu.Lock()
		now = "after"
		mu.Unlock()
		for range 20 {
			ask("after")
		}
		group.Wait()
		synctest.Wait()
		if begun != 2 {
			t.Errorf("%d answers were made, want 2", begun)
		}
	})
}

func TestACanceledRequestDoesNotCancelTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b coalescer
		compose := func(ctx context.Context) (response, error) {
			select {
			case <-time.After(time.Second):
				return response{document: "done"}, nil
			case <-ctx.Done():
				return response{}, ctx.Err()
			}
		}
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() { _, _ = b.do(t.Context(), documentKey{}, compose) })
		synctest.Wait()
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		group.Go(func() {
			var f *statusError
			if _, err := b.do(hasty, documentKey{}, compose); !errors.As(err, &f) || f.status != http.StatusServiceUnavailable {
				t.Errorf("got error %v, want one with 503", err)
			}
		})
		synctest.Wait()
		if a, err := b.do(t.Context(), documentKey{}, compose); err != nil || made(a) != "done" {
			t.Errorf("got %q, %v", made(a), err)
		}
	})
}

func TestAPanicIsAnErrorForAllCallers(t *testing.T) {
	var b coalescer
	for range 2 { // The first panic must not affect the second call.
		_, err := b.do(t.Context(), documentKey{}, func(context.Context) (response, error) { panic("secret") })
		if err == nil || !strings.Contains(err.Error(), "panic: secret") {
			t.Errorf("got error %v", err)
		}
	}
}

func TestDifferentDocumentsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b coalescer
		var group sync.WaitGroup
		began := time.Now()
		for _, query := range []string{"a", "b", "c"} {
			group.Go(func() {
				_, _ = b.do(t.Context(), documentKey{query: query}, func(context.Context) (response, error) {
					<-time.After(time.Second)
					return response{}, nil
				})
			})
		}
		group.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %s, want a second", took)
		}
	})
}

// TestAnAnswerMayTakeAsLongAsItsRoute asserts that the work on a response that waits for etcd does not end before the time limit
// of its route.
func TestAnAnswerMayTakeAsLongAsItsRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b coalescer
		slow := func(ctx context.Context) (response, error) {
			select {
			case <-time.After(documentTimeout - time.Second):
				return response{document: "done"}, nil
			case <-ctx.Done():
				return response{}, ctx.Err()
			}
		}
		limited, cancel := context.WithTimeout(t.Context(), documentTimeout)
		defer cancel()
		if a, err := b.do(limited, documentKey{}, slow); err != nil || made(a) != "done" {
			t.Errorf("got %q, %v", made(a), err)
		}
	})
}
