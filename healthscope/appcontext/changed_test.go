package appcontext_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// TestCacheReportsChanges asserts that the cache reports changes although no context is requested, and for all contexts of a
// group. It does not report saved bundles.
func TestCacheReportsChanges(t *testing.T) {
	store := open(t, appcontext.Options{ProgressInterval: 20 * time.Millisecond})
	ctx := t.Context()
	old, h := newContext(t, store)
	next, _ := newContext(t, store)
	other, at := newContext(t, store)
	_, cluster, _ := add(t, other, at, "a", "p+c", "r+Kind")
	meta := appcontext.CompositeAppMeta{Project: "p", CompositeApp: old.ID(), Version: "v1", DeploymentIntentGroup: "g"}
	for _, ac := range []*appcontext.AppContext{old, next} {
		noError(t, ac.AddCompositeAppMeta(ctx, meta))
	}
	var mu sync.Mutex
	var notified []string
	all := 0
	runCache(t, store, appcontext.CacheOptions{Idle: time.Millisecond, Changed: func(ids []string) {
		mu.Lock()
		defer mu.Unlock()
		notified = append(notified, ids...)
		if ids == nil {
			all++
		}
	}})
	expect := func(what string, ids ...string) {
		t.Helper()
		eventually(t, what, func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if all > 1 {
				return nil // On a busy machine the watch counts as silent and is restarted. Then anything may have changed.
			}
			for _, id := range ids {
				if !slices.Contains(notified, id) {
					return errors.New("nothing was said of " + id)
				}
			}
			return nil
		})
	}
	eventually(t, "nothing was said of the beginning", func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if all == 0 {
			return errors.New("nothing was said")
		}
		return nil
	})
	noError(t, set(ctx, store, cluster, map[string]any{"status": "{}"}))
	noError(t, set(ctx, store, h, map[string]any{"status": map[string]string{"Status": "Updated"}}))
	expect("a change and what was made for the same", old.ID(), next.ID())
	mu.Lock()
	if all == 1 && slices.Contains(notified, other.ID()) {
		t.Error("a bundle that is saved is a change")
	}
	mu.Unlock()
	noError(t, set(ctx, store, cluster, map[string]any{"readystatus": "Available"}))
	expect("a change in a cluster", other.ID())
}
