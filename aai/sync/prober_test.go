package sync_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

func TestProbeIsFirstRequestAndSentOnce(t *testing.T) {
	w := start(t, append(everything(), simulator.Tenant("o", "r", "t2"))...)
	n := w.probes(func() {
		var group sync.WaitGroup
		for _, id := range []string{"t", "t2", "t", "t2"} {
			at := aai.Tenant{CloudOwner: "o", CloudRegionID: "r", TenantID: id}
			group.Go(func() {
				if _, err := w.syncer.Sync(t.Context(), at, inTurn()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	})
	if first := w.Requests()[0]; n != 1 || !isProbe(first) {
		t.Errorf("%d probes; the first request is %s %s", n, first.Method, first.Path)
	}
	if n := w.probes(func() { w.advance(aaisync.DefaultResync); w.sync(document("a", "Ready")) }); n != 0 {
		t.Errorf("%d probes though all is well", n)
	}
}

// TestProbeAfterMisconfiguredError asserts that after a Misconfigured error the next pass probes A&AI, because the error of the
// probe is more precise.
func TestProbeAfterMisconfiguredError(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"))
	w.simulate(simulator.Options{Versions: []string{"v30"}}, everything()...)
	w.advance(time.Second)
	_, err := w.trySync(document("a", "Failed"))
	expectKind(t, err, aai.Misconfigured)
	_, err = w.trySync(document("a", "Failed"))
	if e := failure(t, err, aai.Misconfigured); e.Op != aai.OpProbe || !strings.Contains(e.Error(), "it serves v30") {
		t.Errorf("got %v", e)
	}
}

// TestHangingProbeIsHedged asserts that a probe that hangs since before the end of an outage delays nothing after it.
func TestHangingProbeIsHedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.connect("http://aai.example", w, client.NewBreaker(0, nil))
		w.restart()
		var back atomic.Bool
		w.intercept = func(r *http.Request) (*http.Response, error) {
			if !back.Load() {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return nil, nil //nolint:nilnil // A&AI answers.
		}
		begin := time.Now()
		time.AfterFunc(10*time.Second, func() { back.Store(true) })
		w.sync(document("a", "Ready"))
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("written %s after A&AI was gone for 10s", took)
		}
	})
}
