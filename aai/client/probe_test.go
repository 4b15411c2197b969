package client_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/simulator"
)

func TestProbeNamesTheVersionsThatAreServed(t *testing.T) {
	s, url := simulate(t, simulator.Options{Versions: []string{"v23", "v24", "v26", "v27", "v28", "v30", "v32"}})
	c := connect(t, url, func(o *client.Options) { o.SchemaVersion, o.Breaker = "v31", client.NewBreaker(0, stopped) })
	for range 3 { // The breaker opens, but the error stays the same.
		e := failure(t, c.Probe(t.Context()))
		if e.Kind != aai.Misconfigured || e.Problem != aai.ProblemVersion || !strings.HasSuffix(e.Message, `schema version "v31"; it serves v24, v26 to v28, v30, v32`) {
			t.Errorf("got %s, %s: %v", e.Kind, e.Problem, e)
		}
	}
	if n := len(s.Requests()); n != 1+8 {
		t.Errorf("%d requests, want one, and one for each other version", n)
	}
}

// TestProbeAsksForVersions asserts when the probe of v32 asks for the other versions.
func TestProbeAsksForVersions(t *testing.T) {
	var served, down string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch strings.Split(r.URL.Path, "/")[2] {
		case served:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, refusal("serviceException", "SVC3001", "GET", "x", "Node Not Found", "ERR.5.4.6114"))
		case down:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, refusal("serviceException", "SVC3016", "v", "not valid", "ERR.5.6.3007"))
		}
	})
	c := connect(t, s.URL)
	for _, step := range []struct {
		name, served, down string
		text               string // the end of the message; empty if the probe succeeds
		requests           int
	}{
		{"another version is served", "v31", "", `"v32"; it serves v31`, 9},
		{"the answer is known", "v31", "", `"v32"; it serves v31`, 1},
		{"A&AI has been upgraded", "v32", "", "", 1},
		{"the answer is not known any more, and A&AI fails before it is complete", "v30", "v26", `schema version "v32"`, 4},
		{"the probe asks again", "v30", "", `"v32"; it serves v30`, 9},
	} {
		served, down = step.served, step.down
		before := len(s.received())
		err := c.Probe(t.Context())
		if n := len(s.received()) - before; n != step.requests {
			t.Errorf("%s: %d requests, want %d", step.name, n, step.requests)
		}
		if step.text == "" {
			if err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
			continue
		}
		if e := failure(t, err); e.Problem != aai.ProblemVersion || !strings.HasSuffix(e.Message, step.text) {
			t.Errorf("%s: got %s: %v", step.name, e.Problem, e)
		}
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
		"HTTPS only":                    {http.StatusBadRequest, "Client sent an HTTP request to an HTTPS server.", aai.ProblemServer, "400"},
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

// TestProbeHonorsRetryAfter asserts that Probe stops asking for other versions when a response has a Retry-After.
func TestProbeHonorsRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		c := connect(t, "", through(inProcess(func(w http.ResponseWriter, r *http.Request) {
			sent++
			if strings.HasPrefix(r.URL.Path, "/aai/v26/") {
				w.Header().Set("Retry-After", "90")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, refusal("serviceException", "SVC3000", "GET", "v32/x", "Unrecognized AAI object k8s-resources", "ERR.5.2.3000"))
		})), func(o *client.Options) { o.Breaker = client.NewBreaker(0, nil) })
		_ = failure(t, c.Probe(t.Context()))
		<-time.After(80 * time.Second)
		if e := failure(t, c.Probe(t.Context())); e.Status != http.StatusTooManyRequests || time.Until(e.NotBefore) != 10*time.Second || sent != 4 {
			t.Errorf("after %d requests, want 4: %v", sent, e)
		}
	})
}
