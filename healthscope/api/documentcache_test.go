package api

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

func TestSavedBundlesAreKeptAsLongAsTheirContextHasThem(t *testing.T) {
	d := NewDocuments(DocumentsOptions{})
	view := func(keys etcdKeys) appcontext.View {
		s := keys.snapshot(t)
		return appcontext.View{ContextID: autumnID, Context: s, StatusContext: s}
	}
	saved := func(v appcontext.View) map[string]weak.Pointer[status.Bundle] {
		contents, found := d.cacheOf(appcontext.DeploymentRef{}, v).decode(v), map[string]weak.Pointer[status.Bundle]{}
		for _, e := range contents.Expected(appcontext.GroupRef("retail", "shop", "v2", "autumn"), status.Query{}) {
			found[e.Cluster] = weak.Make(contents.SavedBundle(e.AppInCluster, nil))
		}
		return found
	}
	both := etcdKeys{}.put(autumnID, "web", "west+bonn", "web+Deployment", deployment, "Applied", savedWeb).
		put(autumnID, "web", "west+berlin", "web+Deployment", deployment, "Applied", savedWeb)
	first := saved(view(both))
	if len(first) != 2 || first["west+bonn"] == first["west+berlin"] {
		t.Fatalf("want a bundle of each cluster, got %v", first)
	}
	second := saved(view(etcdKeys{}.put(autumnID, "web", "west+bonn", "web+Deployment", deployment, "Applied", savedWeb)))
	if len(second) != 1 || second["west+bonn"] != first["west+bonn"] {
		t.Errorf("the bundle that has not changed was decoded twice: %v, then %v", first, second)
	}
	runtime.GC()
	if first["west+berlin"].Value() != nil {
		t.Error("the bundle of a cluster that is not in the context any more is kept")
	}
	if second["west+bonn"].Value() == nil {
		t.Error("the bundle of a cluster in the context is not kept")
	}
	runtime.KeepAlive(d)
}

func TestAnswersOfAViewAreBounded(t *testing.T) {
	d, view := &viewCache{}, appcontext.View{}
	third := response{body: make([]byte, maxCachedBytes/3)}
	for _, query := range []string{"a", "b", "b", "c", "d"} {
		d.store(view, query, third)
		if _, ok := d.document(view, query); !ok {
			t.Errorf("the answer to %q is not kept", query)
		}
	}
	d.store(view, "e", response{body: make([]byte, maxCachedBytes+1)})
	d.store(appcontext.View{Contexts: []string{autumnID}}, "f", third)
	if _, ok := d.document(view, "f"); ok {
		t.Error("an answer of another view is kept")
	}
	kept := 0
	for _, made := range d.documents {
		kept += len(made.body)
	}
	if kept == 0 || kept > maxCachedBytes || kept != d.size {
		t.Errorf("answers of %d bytes are kept, counted as %d; there may be %d", kept, d.size, maxCachedBytes)
	}
}

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
