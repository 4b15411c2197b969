package client_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/simulator"
)

func TestProbeNamesTheVersionsThatAreServed(t *testing.T) {
	s, url := simulate(t, simulator.Options{Versions: []string{"v23", "v24", "v26", "v27", "v28", "v30"}, Users: map[string]string{user: password}})
	w := newWatch()
	c := connect(t, url, func(o *client.Options) { o.Breaker = client.NewBreaker(0, w.read) })
	for range 3 { // The breaker opens, but the error stays the same.
		e := failure(t, c.Probe(t.Context()))
		if e.Kind != aai.Misconfigured || e.Problem != aai.ProblemVersion || !strings.Contains(e.Error(), `schema version "v32"`) || !strings.Contains(e.Error(), `"v32"; it serves v24, v26 to v28, v30`) {
			t.Errorf("got %s, %s: %v", e.Kind, e.Problem, e)
		}
	}
	if n := len(s.Requests()); n != 1+8 {
		t.Errorf("%d requests, want one, and one for each other version", n)
	}
}

func TestProbeSucceedsAfterUpgradeOfAAI(t *testing.T) {
	var version atomic.Pointer[string]
	version.Store(new("v31"))
	var asked atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusNotFound)
		if strings.HasPrefix(r.URL.Path, "/aai/"+*version.Load()+"/") {
			fmt.Fprint(w, refusal("serviceException", "SVC3001", "GET", "x", "Node Not Found", "ERR.5.4.6114"))
			return
		}
		fmt.Fprint(w, refusal("serviceException", "SVC3016", "v", "not valid", "ERR.5.6.3007"))
	})
	c := connect(t, s.URL)
	if e := failure(t, c.Probe(t.Context())); !strings.Contains(e.Error(), "; it serves v31 ") {
		t.Errorf("got %v", e)
	}
	version.Store(new("v32"))
	asked.Store(0)
	if err := c.Probe(t.Context()); err != nil || asked.Load() != 1 {
		t.Errorf("%v, after %d requests", err, asked.Load())
	}
	version.Store(new("v30")) // Probe asks for the other versions again.
	if e := failure(t, c.Probe(t.Context())); !strings.Contains(e.Error(), "; it serves v30 ") {
		t.Errorf("got %v", e)
	}
}

func TestProbeOfAnotherServer(t *testing.T) {
	cases := map[string]struct {
		status  int
		body    string
		problem aai.Problem
		text    string
	}{
		"a schema without k8s-resource": {http.StatusBadRequest, refusal("serviceException", "SVC3000", "GET", "v32/x", "Unrecognized AAI object k8s-resources", "ERR.5.2.3000"), aai.ProblemVersion, `"v32" has no k8s-resource here: Unrecognized AAI object k8s-resources; it serves none of those from v24 to v32`},
		"a page":                        {http.StatusOK, "<html>Welcome</html>", aai.ProblemServer, "is not what was asked for"},
		"an object of its own":          {http.StatusOK, `{"id":"other"}`, aai.ProblemServer, "is not what was asked for"},
		"a path it does not know":       {http.StatusNotFound, "404 page not found", aai.ProblemServer, "does not know the path"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				fmt.Fprint(w, c.body)
			})
			e := failure(t, connect(t, s.URL).Probe(t.Context()))
			if e.Kind != aai.Misconfigured || e.Problem != c.problem || !strings.Contains(e.Error(), c.text) {
				t.Errorf("got %s, %s: %v", e.Kind, e.Problem, e)
			}
		})
	}
}

// TestProbeOmitsVersionsAfterError asserts that the error names no other versions while A&AI fails to answer for them, and that
// the next probe asks again.
func TestProbeOmitsVersionsAfterError(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if down.Load() && !strings.HasPrefix(r.URL.Path, "/aai/v32/") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, refusal("serviceException", "SVC3016", "v", "not valid", "ERR.5.6.3007"))
	})
	c := connect(t, s.URL)
	if e := failure(t, c.Probe(t.Context())); e.Problem != aai.ProblemVersion || strings.Contains(e.Error(), "; it serves") {
		t.Errorf("got %s: %v", e.Problem, e)
	}
	down.Store(false)
	if e := failure(t, c.Probe(t.Context())); !strings.Contains(e.Error(), "; it serves none") {
		t.Errorf("got %v", e)
	}
}

// TestProbeHonorsRetryAfter asserts that Probe stops asking for other versions when a response has a Retry-After.
func TestProbeHonorsRetryAfter(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/aai/v26/") {
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, refusal("serviceException", "SVC3000", "GET", "v32/x", "Unrecognized AAI object k8s-resources", "ERR.5.2.3000"))
	})
	w := newWatch()
	c := connect(t, s.URL, func(o *client.Options) { o.Breaker = client.NewBreaker(0, w.read) })
	_ = failure(t, c.Probe(t.Context()))
	w.advance(80 * time.Second)
	if e := failure(t, c.Probe(t.Context())); e.Status != http.StatusTooManyRequests || e.NotBefore.Sub(w.read()) != 10*time.Second || len(s.received()) != 4 {
		t.Errorf("after %d requests, want 4: %v", len(s.received()), e)
	}
}
