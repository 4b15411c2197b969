package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
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
		for _, e := range contents.Expected(autumn, status.Query{}) {
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
	d, view := &viewCache{}, appcontext.View{Contexts: []string{oldID, autumnID}}
	third := response{body: make([]byte, maxCachedBytes/3)}
	kept := func(query string) bool {
		_, ok := d.document(view, query)
		return ok
	}
	d.decode(view)
	for _, query := range []string{"a", "b", "b", "c"} {
		d.store(view, query, third)
		if !kept(query) {
			t.Errorf("the answer to %q is not kept", query)
		}
	}
	if !kept("a") || !kept("b") {
		t.Error("answers that fit are not kept together")
	}
	d.store(view, "d", third)
	d.store(view, "e", response{body: make([]byte, maxCachedBytes+1)})
	d.store(appcontext.View{Contexts: []string{autumnID}}, "f", third)
	if !kept("d") || kept("a") || kept("e") || kept("f") {
		t.Errorf("the cache holds documents of %d bytes, or of another view", d.size)
	}
}

// slowly returns a function that makes a document in a second, unless its context ends before. text is called at the beginning.
func slowly(text func() string) func(context.Context) (response, error) {
	return func(ctx context.Context) (response, error) {
		made := response{document: text()}
		select {
		case <-time.After(time.Second):
			return made, nil
		case <-ctx.Done():
			return response{}, ctx.Err()
		}
	}
}

func TestConcurrentRequestsShareTheNextResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b coalescer
		var begun atomic.Int64
		var callers sync.WaitGroup
		compose := slowly(func() string { return fmt.Sprint("response ", begun.Add(1)) })
		ask := func(want string) {
			callers.Go(func() {
				if got, err := b.do(t.Context(), documentKey{query: "q"}, compose); err != nil || got.document != want {
					t.Errorf("got %v, %v, want %q", got.document, err, want)
				}
			})
		}
		ask("response 1")
		synctest.Wait()
		for range 20 {
			ask("response 2") // Response 1 may be outdated for them.
		}
		callers.Wait()
		if begun.Load() != 2 {
			t.Errorf("%d responses were made, want 2", begun.Load())
		}
	})
}

func TestACanceledRequestDoesNotCancelTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b coalescer
		compose := slowly(func() string { return "done" })
		var callers sync.WaitGroup
		defer callers.Wait()
		for range 2 { // One response is in progress, and the next one waits.
			hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			callers.Go(func() {
				var f *statusError
				if _, err := b.do(hasty, documentKey{}, compose); !errors.As(err, &f) || f.status != http.StatusServiceUnavailable {
					t.Errorf("got error %v, want one with 503", err)
				}
			})
			synctest.Wait()
		}
		if got, err := b.do(t.Context(), documentKey{}, compose); err != nil || got.document != "done" {
			t.Errorf("got %v, %v", got.document, err)
		}
	})
}

func TestDifferentDocumentsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b coalescer
		var callers sync.WaitGroup
		began := time.Now()
		for _, query := range []string{"a", "b", "c"} {
			callers.Go(func() { _, _ = b.do(t.Context(), documentKey{query: query}, slowly(func() string { return query })) })
		}
		callers.Wait()
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %s, want a second", took)
		}
	})
}
