package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

// paths holds, for every route, the target of a request that succeeds.
var paths = map[string]string{
	"/scopes":                    "/scopes",
	"/scopes/{name}":             "/scopes/vfw",
	"/scopes/{namespace}/{name}": "/scopes/telco/web",

	"/v1alpha1/scopes":                    "/v1alpha1/scopes",
	"/v1alpha1/scopes/{namespace}/{name}": "/v1alpha1/scopes/telco/web",

	"/v2/projects/{project}/composite-apps/{app}/{version}/deployment-intent-groups/{group}/status": autumnURL,
	"/v2/cluster-providers/{provider}/clusters/{cluster}/status":                                    networkURL,
	"/v1/instance/{id}/status": "/v1/instance/gentle-fox/status",

	groupPath + "/instantiate": groupURL + "/instantiate",
	groupPath + "/terminate":   groupURL + "/terminate",
	groupPath + "/stop":        groupURL + "/stop",
	groupPath + "/update":      groupURL + "/update",
	groupPath + "/rollback":    groupURL + "/rollback",

	"/openapi.json": "/openapi.json",
	"/healthz":      "/healthz",
	"/readyz":       "/readyz",
}

// posts reports, by route, whether the route changes something.
var posts = func() map[string]bool {
	all := map[string]bool{}
	for _, o := range Operations() {
		all[o.Path] = o.Method == http.MethodPost
	}
	return all
}()

// methodOf returns the method of a route, and the status code of its response without an error (fine).
func methodOf(path string) (method string, fine int) {
	if posts[path] {
		return http.MethodPost, http.StatusAccepted
	}
	return http.MethodGet, http.StatusOK
}

// request is a row of a table: a request, and the expected status code and detail of the response.
type request struct {
	path       string // The route, as in OpenAPI.
	target     string // The target of the request. Default: the one in paths.
	accept     string
	header     http.Header
	body       string     // Default without a target: rollbackBody.
	scopes     Scopes     // Default: manyScopes.
	from       *Documents // Default: manyDocuments.
	guard      Guard      // Default: none.
	deploy     error      // The error of Deployments; undeployed is true for a server without Deployments.
	undeployed bool
	ready      func() error
	// current is Options.Current, and streams is the number of open streams of the caller.
	current func() error
	streams int
	want    int
	detail  string // A part of the detail of the problem document.
}

func TestEveryAnswerIsAsDescribed(t *testing.T) {
	c := newContract(t)
	for name, tt := range requests(t) {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			maps.Copy(header, tt.header)
			if tt.accept != "" {
				header.Set("Accept", tt.accept)
			}
			target, body := tt.target, tt.body
			if target == "" {
				target = paths[tt.path]
				if body == "" {
					body = rollbackBody
				}
			}
			h := tt.handler(t)
			method, _ := methodOf(tt.path)
			got := sendBody(t, h, method, target, header, body)
			if got.Code != tt.want {
				t.Fatalf("status %d, want %d: %s", got.Code, tt.want, got.Body)
			}
			c.checkAnswer(t, method, tt.path, got)
			c.checkBody(t, method, tt.path, body, got.Code)
			checkHeader(t, got.Header())
			checkRetry(t, tt, got.Header())
			if tt.want >= http.StatusBadRequest {
				checkError(t, got, tt.accept == typeEMCO || strings.Contains(target, parameterDialect), tt.want, tt.detail)
			}
			if method != http.MethodGet {
				return
			}
			head := send(t, h, http.MethodHead, target, header)
			if diff := cmp.Diff(got.Header(), head.Header()); diff != "" || head.Code != got.Code || head.Body.Len() > 0 {
				t.Errorf("HEAD answers %d with content %q, GET %d; header (-GET +HEAD):\n%s", head.Code, head.Body, got.Code, diff)
			}
		})
	}
	if unseen := c.unseen(); len(unseen) > 0 {
		t.Errorf("described, but in no answer of this test: %q", unseen)
	}
}

// handler returns the handler for the request.
func (tt *request) handler(t *testing.T) http.Handler {
	t.Helper()
	o := Options{Scopes: manyScopes(), Documents: manyDocuments(t), Guard: tt.guard, Ready: tt.ready, Current: tt.current}
	if tt.scopes != nil {
		o.Scopes = tt.scopes
	}
	if tt.from != nil {
		o.Documents = tt.from
	}
	if !tt.undeployed {
		o.Deployments = &deployments{err: tt.deploy}
	}
	h := newHandler(o)
	for range tt.streams {
		if _, err := h.streams.open("caller-all"); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// checkRetry asserts that a response has the header Retry-After if a retry can succeed, and only then.
func checkRetry(t *testing.T, asked request, got http.Header) {
	t.Helper()
	want := asked.want == http.StatusTooManyRequests || asked.want == http.StatusServiceUnavailable && !strings.Contains(asked.detail, "configuration")
	if told := got.Get("Retry-After") != ""; told != want {
		t.Errorf("Retry-After is %q", got.Get("Retry-After"))
	}
}

func checkHeader(t *testing.T, got http.Header) {
	t.Helper()
	caching := "no-store"
	if got.Get("ETag") != "" {
		caching = "private, no-cache"
	}
	for key, want := range map[string]string{"Cache-Control": caching, "Vary": "Accept", "X-Content-Type-Options": "nosniff"} {
		if got.Get(key) != want {
			t.Errorf("%s is %q, want %q", key, got.Get(key), want)
		}
	}
}

// checkError checks the body of an error: text in the dialect of EMCO, otherwise a problem document.
func checkError(t *testing.T, got *httptest.ResponseRecorder, dialect bool, status int, detail string) {
	t.Helper()
	if !dialect {
		checkProblem(t, got.Body.Bytes(), status, detail)
		return
	}
	if text := got.Body.String(); got.Header().Get("Content-Type") != "text/plain; charset=utf-8" || !strings.Contains(text, detail) || !strings.HasSuffix(text, "\n") {
		t.Errorf("the error is %q, want %q", text, detail)
	}
}

func checkProblem(t *testing.T, body []byte, status int, detail string) {
	t.Helper()
	var p Problem
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		t.Fatalf("cannot decode problem document %s: %v", body, err)
	}
	if p.Status != status || p.Title != http.StatusText(status) || !strings.Contains(p.Detail, detail) {
		t.Errorf("problem %+v, want status %d and detail %q", p, status, detail)
	}
	if len(p.Detail) > 3*maxEcho+1000 || len(p.Instance) > 3*maxEcho {
		t.Errorf("the problem repeats too much of the request: %+v", p)
	}
	if strings.Contains(string(body), "secret") {
		t.Errorf("the problem shows what only the log may: %s", body)
	}
}

func TestOtherMethodsAreNotAllowed(t *testing.T) {
	c := newContract(t)
	h := NewHandler(Options{Scopes: manyScopes(), Documents: manyDocuments(t)})
	for path, target := range paths {
		other, allowed := http.MethodPost, "GET, HEAD"
		if posts[path] {
			other, allowed = http.MethodGet, "POST"
		}
		for _, method := range []string{other, "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW", "get"} {
			t.Run(method+" "+path, func(t *testing.T) {
				got := send(t, h, method, target, nil)
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
				got := send(t, h, method, url, nil)
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
	tests := map[string]struct{ target, want string }{
		"healthy":       {target: "/scopes/telco/web", want: "healthy\n"},
		"unhealthy":     {target: "/scopes/vfw", want: "unhealthy\n"},
		"unknown":       {target: "/scopes/telco/lost", want: "unknown\n"},
		"not evaluated": {target: "/scopes/new", want: "unknown\n"},
		"edited since":  {target: "/scopes/edited", want: "unknown\n"},
		"list":          {target: "/scopes", want: "default/edited unknown\ndefault/new unknown\ndefault/vfw unhealthy\ntelco/lost unknown\ntelco/web healthy\n"},
		"list of one":   {target: "/scopes?namespace=telco", want: "telco/lost unknown\ntelco/web healthy\n"},
		"list of none":  {target: "/scopes?namespace=empty", want: ""},
		"alive":         {target: "/healthz", want: "ok\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := get(t, NewHandler(Options{Scopes: manyScopes()}), tt.target, http.Header{"Accept": {"text/plain"}})
			if diff := cmp.Diff(tt.want, got.Body.String()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if got.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
				t.Errorf("Content-Type is %q", got.Header().Get("Content-Type"))
			}
		})
	}
}

func TestDefaultNamespaceIsAnOption(t *testing.T) {
	h := NewHandler(Options{Scopes: manyScopes(), DefaultNamespace: "telco"})
	if got := get(t, h, "/scopes/web", nil); got.Code != http.StatusOK {
		t.Errorf("status %d: %s", got.Code, got.Body)
	}
	if got := get(t, h, "/scopes/vfw", nil); got.Code != http.StatusNotFound {
		t.Errorf("status %d: %s", got.Code, got.Body)
	}
}

func TestSeveralAcceptHeadersAreOne(t *testing.T) {
	got := get(t, NewHandler(Options{Scopes: manyScopes()}), "/scopes/vfw", http.Header{"Accept": {"application/json;q=0.5", "text/plain"}})
	if got.Body.String() != "unhealthy\n" {
		t.Errorf("got %s", got.Body)
	}
}

func TestFailuresAreLogged(t *testing.T) {
	tests := map[string]struct {
		scopes Scopes
		ready  error
		// current is the error of Options.Current.
		current error
		target  string
		want    []string
	}{
		"a panic, with its place": {
			scopes: scopesFunc(func(context.Context) error { panic("no scopes at all") }), target: "/scopes/vfw",
			want: []string{"Recovered from a panic", "no scopes at all", "handler_test.go", "path=/scopes/vfw"},
		},
		"scopes cannot be read": {
			scopes: scopesFunc(func(context.Context) error { return errors.New("no cache") }), target: "/scopes",
			want: []string{"Cannot answer a request", "no cache", "path=/scopes", "status=503"},
		},
		"a caller's error is none of ours": {scopes: memory{}, target: "/scopes/vfw?x=y"},
		"nor is a scope that is not there": {scopes: memory{}, target: "/scopes/vfw"},
		"nor that it is too early":         {ready: errors.New("wait"), target: "/readyz"},
		"nor an outage, told of elsewhere": {scopes: memory{}, current: &OutageError{Message: "no answer"}, target: "/scopes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			h := NewHandler(Options{Scopes: tt.scopes, Ready: func() error { return tt.ready }, Current: func() error { return tt.current }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			get(t, h, tt.target, nil)
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

func TestAnswersHaveADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		hangs := scopesFunc(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		got := get(t, NewHandler(Options{Scopes: hangs}), "/scopes/vfw", nil)
		checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "context deadline exceeded")
		if took := time.Since(began); took != requestTimeout {
			t.Errorf("answered after %s, want %s", took, requestTimeout)
		}
	})
}

func TestACallerWhoHasGoneIsNotLogged(t *testing.T) {
	var log strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	hangsUp := scopesFunc(func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() })
	h := NewHandler(Options{Scopes: hangsUp, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/scopes/vfw", nil)
	if err != nil {
		t.Fatal(err)
	}
	serve(h, r)
	if log.Len() > 0 {
		t.Errorf("logged:\n%s", log.String())
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
		asked := &recording{}
		r := &http.Request{Method: http.MethodGet, URL: u, RequestURI: target, Header: http.Header{}}
		got := serve(NewHandler(Options{Scopes: asked}), r.WithContext(stopping(t.Context()))) // Streams end at once.
		if !slices.Contains(statuses, got.Code) {
			t.Fatalf("status %d: %s", got.Code, got.Body)
		}
		if got.Code != http.StatusOK {
			checkError(t, got, u.Query().Has(parameterDialect), got.Code, "")
		}
		for _, namespace := range asked.namespaces {
			if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
				t.Errorf("scopes of namespace %q were asked for", namespace)
			}
		}
		for _, name := range asked.names {
			if len(validation.IsDNS1123Subdomain(name)) > 0 {
				t.Errorf("scope %q was asked for", name)
			}
		}
	})
}
