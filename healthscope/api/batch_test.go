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

// made returns the text of an answer.
func made(a answer) string {
	text, _ := a.document.(string)
	return text
}

func TestWhoAsksWhileAnAnswerIsMadeSharesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b batches
		var mu sync.Mutex
		begun, now := 0, "before"
		compose := func(ctx context.Context) (answer, error) {
			mu.Lock()
			begun++
			text := now
			mu.Unlock()
			<-time.After(time.Second)
			return answer{document: text}, ctx.Err()
		}
		var group sync.WaitGroup
		ask := func(want string) {
			group.Go(func() {
				if a, err := b.ask(t.Context(), question{query: "q"}, compose); err != nil || made(a) != want {
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

func TestWhoGoesDoesNotTakeTheAnswerWithHim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b batches
		compose := func(ctx context.Context) (answer, error) {
			select {
			case <-time.After(time.Second):
				return answer{document: "done"}, nil
			case <-ctx.Done():
				return answer{}, ctx.Err()
			}
		}
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() { _, _ = b.ask(t.Context(), question{}, compose) })
		synctest.Wait()
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		group.Go(func() {
			var f *failure
			if _, err := b.ask(hasty, question{}, compose); !errors.As(err, &f) || f.status != http.StatusServiceUnavailable {
				t.Errorf("got error %v, want one with 503", err)
			}
		})
		synctest.Wait()
		if a, err := b.ask(t.Context(), question{}, compose); err != nil || made(a) != "done" {
			t.Errorf("got %q, %v", made(a), err)
		}
	})
}

func TestAPanicIsAnErrorForAllWhoAsked(t *testing.T) {
	var b batches
	for range 2 { // The second time, nothing of the first is left.
		_, err := b.ask(t.Context(), question{}, func(context.Context) (answer, error) { panic("secret") })
		if err == nil || !strings.Contains(err.Error(), "panic: secret") {
			t.Errorf("got error %v", err)
		}
	}
}

func TestDifferentQuestionsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b batches
		var group sync.WaitGroup
		began := time.Now()
		for _, query := range []string{"a", "b", "c"} {
			group.Go(func() {
				_, _ = b.ask(t.Context(), question{query: query}, func(context.Context) (answer, error) {
					<-time.After(time.Second)
					return answer{}, nil
				})
			})
		}
		group.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %s, want a second", took)
		}
	})
}

// TestAnAnswerMayTakeAsLongAsItsRoute asserts that an answer which waits for etcd is not given up before those who ask are.
func TestAnAnswerMayTakeAsLongAsItsRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b batches
		slow := func(ctx context.Context) (answer, error) {
			select {
			case <-time.After(documentTimeout - time.Second):
				return answer{document: "done"}, nil
			case <-ctx.Done():
				return answer{}, ctx.Err()
			}
		}
		limited, cancel := context.WithTimeout(t.Context(), documentTimeout)
		defer cancel()
		if a, err := b.ask(limited, question{}, slow); err != nil || made(a) != "done" {
			t.Errorf("got %q, %v", made(a), err)
		}
	})
}
