package access

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/api"
)

// fakeGuard authenticates three callers, of which one may get /metrics.
type fakeGuard struct{}

func (fakeGuard) Authenticate(_ *http.Request, token string) (api.Caller, bool, error) {
	switch token {
	case "prometheus", "somebody", "unclear":
		return api.Caller{Name: token}, true, nil
	case "unreachable":
		return api.Caller{}, false, errors.New("canary of the API server")
	}
	return api.Caller{}, false, nil
}

func (fakeGuard) Authorize(_ context.Context, caller api.Caller, access api.Access) (bool, error) {
	if caller.Name == "unclear" {
		return false, errors.New("canary of the API server")
	}
	return caller.Name == "prometheus" && access == api.Access{Verb: "get", Path: "/metrics"}, nil
}

func TestWithAuthorization(t *testing.T) {
	cases := map[string]struct {
		method, path, authorization string
		want                        int
		wantDetail                  string
	}{
		"no token":              {http.MethodGet, "/metrics", "", 401, detailNoToken},
		"an empty token":        {http.MethodGet, "/metrics", "Bearer ", 401, detailNoToken},
		"a password":            {http.MethodGet, "/metrics", "Basic cHJvbWV0aGV1cw==", 401, detailNoToken},
		"a wrong token":         {http.MethodGet, "/metrics", "Bearer x", 401, detailBadToken},
		"no right":              {http.MethodGet, "/metrics", "Bearer somebody", 403, `user "somebody" may not get the URL "/metrics"`},
		"no right to the path":  {http.MethodGet, "/debug/pprof/heap", "Bearer prometheus", 403, `user "prometheus" may not get the URL "/debug/pprof/heap"`},
		"nobody knows who":      {http.MethodGet, "/metrics", "Bearer unreachable", 503, detailUnknown},
		"nobody knows what":     {http.MethodGet, "/metrics", "Bearer unclear", 503, detailUnknown},
		"the right":             {http.MethodGet, "/metrics", "Bearer prometheus", 200, ""},
		"the right, spelt":      {http.MethodGet, "/metrics", "bearer  prometheus", 200, ""},
		"the right, by POST":    {http.MethodPost, "/metrics", "Bearer prometheus", 200, ""},
		"another method's path": {http.MethodPost, "/debug/pprof/symbol", "Bearer prometheus", 403, `user "prometheus" may not get the URL "/debug/pprof/symbol"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			passed := false
			h := withAuthorization(fakeGuard{}, logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { passed = true }))
			r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, http.NoBody)
			if c.authorization != "" {
				r.Header.Set("Authorization", c.authorization)
			}
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			if answer.Code != c.want || passed != (c.want == http.StatusOK) {
				t.Fatalf("status %d, want %d; passed: %t", answer.Code, c.want, passed)
			}
			if challenge := answer.Header().Get("WWW-Authenticate"); (challenge != "") != (c.want == http.StatusUnauthorized) {
				t.Errorf("WWW-Authenticate is %q", challenge)
			}
			if passed {
				return
			}
			want := api.Problem{Type: "about:blank", Title: http.StatusText(c.want), Status: c.want, Detail: c.wantDetail, Instance: c.path}
			var got api.Problem
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" || answer.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s, -want +got:\n%s", answer.Header().Get("Content-Type"), diff)
			}
		})
	}
}
