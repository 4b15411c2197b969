package sync_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	aaisync "github.com/healthscope/healthscope/aai/sync"
)

// TestExceededWriteTimeIsNoError has more writes than fit into the write time of a pass. A&AI is slow, but has no error.
func TestExceededWriteTimeIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		const objects, writeTime = 1800, 4 * time.Second
		w.syncer = aaisync.New(aaisync.Options{Client: w.client, Clock: w.clock, Plan: w.plan, Audit: w.audit, WriteTime: writeTime})
		var writes, lists int
		w.observe = func(r *http.Request) {
			switch {
			case r.Method != http.MethodGet:
				writes++
			case strings.HasSuffix(r.URL.Path, "/k8s-resources"):
				lists++
			}
		}
		w.intercept = func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				<-time.After(300 * time.Millisecond)
			}
			return nil, nil //nolint:nilnil // A&AI answers.
		}
		passes := 0
		for synced := 0; synced < objects; passes++ {
			r, err := w.trySync(many(objects, "Ready")...)
			if err != nil || r.Synced <= synced {
				t.Fatalf("pass %d: %d synced after %d, %v", passes, r.Synced, synced, err)
			}
			if synced = r.Synced; synced < objects && r.NextPass.After(w.clock()) {
				t.Errorf("%d of %d objects are written, and the next pass is to begin at %s, want now", synced, objects, r.NextPass)
			}
		}
		if want := objects / 30; passes < 2 || writes != want || lists != 1 {
			t.Errorf("%d passes with %d requests to write and %d lists; want more than one, %d, so that nothing is written twice, and 1", passes, writes, lists, want)
		}
	})
}
