package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

func TestOtherMethodsAreNotAllowed(t *testing.T) {
	c := newContract(t)
	h := NewHandler(Options{Scopes: manyScopes(), Documents: manyDocuments(t)})
	for path, target := range targets {
		other, allowed := http.MethodPost, "GET, HEAD"
		if changesSomething(path) {
			other, allowed = http.MethodGet, "POST"
		}
		for _, method := range []string{other, "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW", "get"} {
			t.Run(method+" "+path, func(t *testing.T) {
				got := send(t.Context(), h, method, target, nil, "")
				if got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != allowed {
					t.Errorf("status %d, Allow %q: %s", got.Code, got.Header().Get("Allow"), got.Body)
				}
				c.checkNamed(t, "MethodNotAllowed", got)
				checkHeader(t, got.Header())
			})
		}
	}
}

func TestOtherPathsAreNotFound(t *testing.T) {
	c := newContract(t)
	h := NewHandler(Options{Scopes: manyScopes()})
	for _, target := range []string{"*", "", "/", "/scope", "/scopes/", "/scopes/a/b/c", "/scopes/a/b/", "/scopes//a", "//scopes", "/scopes/.", "/scopes/../healthz", "/scopes/./a", "/healthz/", "/metrics", "/Scopes", "/%2e", "/scopes%2Fvfw", "//", "/scopes//", "/./", "/scopes/..", "/../scopes", "/a%2F..%2Fb", "/..."} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			t.Run(method+" "+target, func(t *testing.T) {
				url := "http://localhost" + target
				if target == "*" {
					url = target
				}
				got := send(t.Context(), h, method, url, nil, "")
				if got.Code != http.StatusNotFound {
					t.Fatalf("status %d: %s", got.Code, got.Body)
				}
				c.checkNamed(t, "NotFound", got)
				checkProblem(t, got.Body.Bytes(), http.StatusNotFound, "there is nothing at the path")
			})
		}
	}
}

func TestInstanceIsThePath(t *testing.T) {
	tests := map[string]struct{ target, want string }{
		"as asked for":            {target: "/scopes/web", want: "/scopes/web"},
		"escapes stay":            {target: "/scopes/a%2Fb%20c", want: "/scopes/a%2Fb%20c"},
		"without the query":       {target: "/scopes?token=secret", want: "/scopes"},
		"a long one is cut":       {target: "/" + strings.Repeat("x", 300), want: "/" + strings.Repeat("x", maxEcho-1)},
		"a long one stays a path": {target: "/" + strings.Repeat("%C3%A9", 5000), want: "/" + strings.Repeat("%C3%A9", (maxEcho-1)/2)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var p Problem
			if err := json.Unmarshal(get(t, NewHandler(Options{Scopes: memory{}}), tt.target, nil).Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if p.Instance != tt.want {
				t.Errorf("instance %q, want %q", p.Instance, tt.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	tests := map[string]struct {
		target string
		accept []string // Default: text/plain.
		want   string
	}{
		"healthy":              {target: "/scopes/telco/web", want: "healthy\n"},
		"unhealthy":            {target: "/scopes/vfw", want: "unhealthy\n"},
		"unknown":              {target: "/v1alpha1/scopes/telco/lost", want: "unknown\n"},
		"not evaluated":        {target: "/scopes/new", want: "unknown\n"},
		"edited since":         {target: "/scopes/edited", want: "unknown\n"},
		"list":                 {target: "/scopes", want: "default/edited unknown\ndefault/new unknown\ndefault/vfw unhealthy\ntelco/lost unknown\ntelco/web healthy\n"},
		"list of a namespace":  {target: "/scopes?namespace=telco", want: "telco/lost unknown\ntelco/web healthy\n"},
		"list of none":         {target: "/scopes?namespace=empty", want: ""},
		"page":                 {target: "/v1alpha1/scopes?limit=2", want: "default/edited unknown\ndefault/new unknown\n"},
		"filtered":             {target: "/v1alpha1/scopes?health=healthy", want: "telco/web healthy\n"},
		"alive":                {target: "/healthz", want: "ok\n"},
		"in the second header": {target: "/scopes/vfw", accept: []string{"application/json;q=0.5", "text/plain"}, want: "unhealthy\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.accept == nil {
				tt.accept = []string{"text/plain"}
			}
			got := get(t, NewHandler(Options{Scopes: manyScopes()}), tt.target, http.Header{"Accept": tt.accept})
			if diff := cmp.Diff(tt.want, got.Body.String()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if got.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("Content-Type is %q", got.Header().Get("Content-Type"))
			}
		})
	}
}

// TestEntityTags asserts that If-None-Match is compared as RFC 9110 section 13.1.2 defines.
func TestEntityTags(t *testing.T) {
	h := NewHandler(Options{Scopes: manyScopes()})
	tag := get(t, h, "/scopes", nil).Header().Get("ETag")
	for header, want := range map[string]int{
		tag: 304, "W/" + tag: 304, `"b", ` + tag: 304, `"b",W/` + tag: 304, "*": 304,
		"": 200, `"b"`: 200, `W/"b"`: 200, strings.Trim(tag, `"`): 200,
	} {
		if got := get(t, h, "/scopes", http.Header{"If-None-Match": {header}}); got.Code != want {
			t.Errorf("If-None-Match: %s: status %d, want %d", header, got.Code, want)
		}
	}
}

func TestFailuresAreLogged(t *testing.T) {
	tests := map[string]struct {
		// scopes is what Scopes does; leave makes the caller go away. Default: no scope is found.
		scopes         func(ctx context.Context, leave func()) error
		ready, current error
		target         string
		want           []string
	}{
		"a panic, with its place": {
			scopes: func(context.Context, func()) error { panic("no scopes at all") }, target: "/scopes/vfw",
			want: []string{"Recovered from a panic", "no scopes at all", "handler_test.go", "path=/scopes/vfw"},
		},
		"a panic for a document, with its place": {target: autumnURL + "?health=true", want: []string{"Cannot answer a request", "panic: no clusters at all", "handler_test.go", "path=" + autumnURL}},
		"scopes cannot be read": {
			scopes: func(context.Context, func()) error { return errors.New("no cache") }, target: "/scopes",
			want: []string{"Cannot answer a request", "no cache", "path=/scopes", "status=503"},
		},
		"not for a caller who has left":   {scopes: func(ctx context.Context, leave func()) error { leave(); return ctx.Err() }, target: "/scopes/vfw"},
		"not an error of the caller":      {target: "/scopes/vfw?x=y"},
		"not a scope that does not exist": {target: "/scopes/vfw"},
		"not that it is too early":        {ready: errors.New("wait"), target: "/readyz"},
		"not an outage, logged elsewhere": {current: &OutageError{Message: "no answer"}, target: "/scopes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			scopes := scopesFunc(func(ctx context.Context, _, _ string) error {
				if tt.scopes == nil {
					return nil
				}
				return tt.scopes(ctx, leave)
			})
			contexts, _ := fixtures(t)
			h := NewHandler(Options{
				Scopes: scopes, Documents: NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: panicking{}}),
				Ready: func() error { return tt.ready }, Current: func() error { return tt.current }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			send(ctx, h, http.MethodGet, tt.target, nil, "")
			for _, want := range tt.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log lacks %q:\n%s", want, log.String())
				}
			}
			if len(tt.want) == 0 && log.Len() > 0 {
				t.Errorf("logged:\n%s", log.String())
			}
		})
	}
}

// panicking is a Clusters that cannot be read without a panic.
type panicking struct{}

func (panicking) Bundle(string, string, string) (Observation, bool) {
	panic("no clusters at all: secret")
}

func (panicking) Instance(string) (found []Observation, unread []string) {
	panic("no clusters at all: secret")
}

// hanging is a Contexts that does not answer before the context of a call ends.
type hanging struct{}

func (hanging) View(ctx context.Context, _ appcontext.DeploymentRef, _ string) (appcontext.View, error) {
	<-ctx.Done()
	return appcontext.View{}, ctx.Err()
}

func TestAnswersHaveADeadline(t *testing.T) {
	hangs := scopesFunc(func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() })
	for target, want := range map[string]time.Duration{"/scopes/vfw": requestTimeout, autumnURL: documentTimeout, autumnURL + "?health=true": documentTimeout} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			got := get(t, NewHandler(Options{Scopes: hangs, Documents: NewDocuments(DocumentsOptions{Contexts: hanging{}})}), target, nil)
			checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "context deadline exceeded")
			if took := time.Since(began); took != want {
				t.Errorf("%s: answered after %s, want %s", target, took, want)
			}
		})
	}
}

// TestConcurrentRequestsHaveALimit asserts that only requests that need a token take part in the limit.
func TestConcurrentRequestsHaveALimit(t *testing.T) {
	h := newHandler(Options{Scopes: manyScopes()})
	for range maxRequests {
		acquire(h.requests)
	}
	got := get(t, h, "/scopes", nil)
	checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "requests are under way already")
	if got := get(t, h, "/healthz", nil); got.Code != http.StatusOK {
		t.Errorf("a busy server seems dead: %d", got.Code)
	}
}

// FuzzTarget asserts that every path and query, well-formed or not, gets a response that openapi.json describes, and that no
// invalid name reaches Scopes.
func FuzzTarget(f *testing.F) {
	for _, tt := range requests(f) {
		f.Add(tt.target)
	}
	for _, seed := range []string{"/", "//", "*", "/scopes/%00", "/scopes/a%2f..%2fb/c", "/scopes?namespace=%C3%28", "/scopes/a/b?=", "/healthz#x", "http://h:1/scopes", "/scopes/é"} {
		f.Add(seed)
	}
	statuses := []int{200, 400, 404, 405, 414, 503}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return // net/http rejects it before the handler gets it.
		}
		asked := scopesFunc(func(_ context.Context, namespace, name string) error {
			if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 || name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
				t.Errorf("scope %q of namespace %q was asked for", name, namespace)
			}
			return nil
		})
		r := &http.Request{Method: http.MethodGet, URL: u, RequestURI: target, Header: http.Header{}}
		got := serve(NewHandler(Options{Scopes: asked, Documents: NewDocuments(DocumentsOptions{Clusters: memoryClusters{}})}), r.WithContext(stopping(t.Context()))) // Streams end at once.
		if !slices.Contains(statuses, got.Code) {
			t.Fatalf("status %d: %s", got.Code, got.Body)
		}
		if got.Code != http.StatusOK {
			checkError(t, got, u.Query().Has(parameterDialect), got.Code, "")
		}
	})
}
