package sync_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

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
		var back atomic.Bool
		w.intercept = func(r *http.Request) (*http.Response, error) {
			if !back.Load() {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return passOn()
		}
		begin := time.Now()
		time.AfterFunc(10*time.Second, func() { back.Store(true) })
		w.sync(document("a", "Ready"))
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("written %s after A&AI was gone for 10s", took)
		}
	})
}

// TestMisconfigurationCausesFewRequests makes an operator's mistakes, and runs passes for half an hour. They send few requests.
// When the mistake is corrected, A&AI is up to date after a minute and a dependency interval, without a restart.
func TestMisconfigurationCausesFewRequests(t *testing.T) {
	cases := map[string]struct {
		mistake func(w *world)
		problem aai.Problem
		most    int // requests in half an hour
	}{
		"wrong password": {func(w *world) { w.password = "wrong" }, aai.ProblemCredentials, 45},
		"wrong version": {func(w *world) {
			w.simulate(simulator.Options{Versions: []string{"v30", "v31"}}, everything()...)
		}, aai.ProblemVersion, 45 + 8},
		"wrong server": {func(w *world) {
			w.intercept = func(*http.Request) (*http.Response, error) {
				return answer(http.StatusNotFound, nil, "no such page"), nil
			}
		}, aai.ProblemServer, 45},
		"a certificate that is not trusted": {func(w *world) {
			w.intercept = func(*http.Request) (*http.Response, error) {
				return nil, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
			}
		}, aai.ProblemCertificate, 45},
		"unknown region": {func(w *world) { w.simulate(simulator.Options{}, simulator.CloudRegion("o", "another")) }, "", 1 + 4 + 2*60},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.connect("http://aai.example", w, client.NewBreaker(0, w.clock))
			c.mistake(w)
			for range 30 * 60 {
				r, err := w.trySync(many(20, "Ready")...)
				if c.problem != "" {
					if e := failure(t, err, aai.Misconfigured); e.Problem != c.problem {
						t.Fatalf("it is called %q, want %q: %v", e.Problem, c.problem, err)
					}
				}
				if r.Pending != 20 || c.problem == "" != (r.Missing == aai.ProblemTenant) {
					t.Fatalf("%d pending, missing is %q", r.Pending, r.Missing)
				}
				w.advance(time.Second)
			}
			if n := int(w.attempts.Load()); n == 0 || n > c.most {
				t.Errorf("%d requests in half an hour, want %d at most", n, c.most)
			}
			w.password, w.intercept = "good", nil
			w.simulate(simulator.Options{}, everything()...)
			w.advance(time.Minute + aaisync.DependencyInterval)
			if r := w.sync(many(20, "Ready")...); r.Synced != 20 {
				t.Errorf("%d synced when it is repaired", r.Synced)
			}
		})
	}
}
