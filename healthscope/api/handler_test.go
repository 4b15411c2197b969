package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

// paths holds for every route a target that is answered with 200.
var paths = map[string]string{
	"/scopes":                    "/scopes",
	"/scopes/{name}":             "/scopes/vfw",
	"/scopes/{namespace}/{name}": "/scopes/telco/web",

	"/v2/projects/{project}/composite-apps/{app}/{version}/deployment-intent-groups/{group}/status": autumnURL,
	"/v2/cluster-providers/{provider}/clusters/{cluster}/status":                                    networkURL,
	"/v1/instance/{id}/status": "/v1/instance/gentle-fox/status",

	"/openapi.json": "/openapi.json",
	"/healthz":      "/healthz",
	"/readyz":       "/readyz",
}

// request is a row of a table: what is asked, and the status and detail of the answer.
type request struct {
	path   string // The route, as in OpenAPI.
	target string // What is asked; by default what the route answers with 200.
	accept string
	header http.Header
	scopes Scopes     // By default manyScopes.
	from   *Documents // By default manyDocuments.
	guard  Guard      // By default none.
	ready  func() error
	want   int
	detail string // Of the problem document, as far as it matters.
}

// requests are requests of every kind, by name.
func requests() map[string]request {
	all := requestsForScopes()
	maps.Copy(all, requestsForServer())
	maps.Copy(all, requestsForDocuments())
	maps.Copy(all, requestsOfCallers())
	for path, target := range paths {
		all[path+" is not acceptable"] = request{path: path, accept: "image/png", want: 406, detail: `the header Accept is "image/png"`}
		all[path+" is too long"] = request{path: path, target: target + "?" + strings.Repeat("x", maxURLBytes), want: 414, detail: "bytes; at most 8000 are read"}
	}
	return all
}

func requestsForServer() map[string]request {
	notYet := func() error { return errors.New("the bundles have not been read yet") }
	return map[string]request{
		"openapi":                           {path: "/openapi.json", want: 200},
		"openapi with parameter":            {path: "/openapi.json", target: "/openapi.json?format=yaml", want: 400, detail: `unknown query parameter "format" with value "yaml"`},
		"openapi as text":                   {path: "/openapi.json", accept: "text/plain", want: 406, detail: `the header Accept is "text/plain"; this path can be answered as application/json`},
		"healthz":                           {path: "/healthz", want: 200},
		"healthz as JSON":                   {path: "/healthz", accept: "application/json", want: 200},
		"healthz with parameter":            {path: "/healthz", target: "/healthz?verbose", want: 400, detail: `unknown query parameter "verbose" with value ""`},
		"readyz":                            {path: "/readyz", want: 200},
		"readyz with parameter":             {path: "/readyz", target: "/readyz?exclude=x", want: 400, detail: `unknown query parameter "exclude"`},
		"readyz not ready":                  {path: "/readyz", ready: notYet, want: 503, detail: "not ready: the bundles have not been read yet"},
		"readyz panics":                     {path: "/readyz", ready: func() error { panic("secret") }, want: 500, detail: "its log says how"},
		"healthz is alive when not ready":   {path: "/healthz", ready: notYet, want: 200},
		"a long header is quoted in part":   {path: "/scopes", accept: strings.Repeat("x/y,", 1000), want: 406, detail: `y,"... (4000 bytes); this path can be answered as application/json or text/plain`},
		"an unknown type beside a known":    {path: "/scopes", accept: "text/html, application/json;q=0.1", want: 200},
		"a scope of the default text first": {path: "/scopes/{name}", accept: "*/*;q=0.1, text/*", want: 200},
	}
}

func requestsForScopes() map[string]request {
	panics := scopesFunc(func(context.Context) error { panic("index out of range: secret") })
	gone := scopesFunc(func(context.Context) error { return errors.New("the cache is not started") })
	return map[string]request{
		"list":              {path: "/scopes", want: 200},
		"list as text":      {path: "/scopes", accept: "text/plain", want: 200},
		"list empty":        {path: "/scopes", scopes: memory{}, want: 200},
		"list of namespace": {path: "/scopes", target: "/scopes?namespace=telco", want: 200},
		"list of bad name":  {path: "/scopes", target: "/scopes?namespace=Telco_1", want: 400, detail: `parameter "namespace" has the value "Telco_1", which cannot be a name`},
		"list of no name":   {path: "/scopes", target: "/scopes?namespace=", want: 400, detail: `parameter "namespace" has the value ""`},
		"list of subdomain": {path: "/scopes", target: "/scopes?namespace=a.b", want: 400, detail: `parameter "namespace" has the value "a.b"`},
		"list twice":        {path: "/scopes", target: "/scopes?namespace=a&namespace=b", want: 400, detail: `query parameter "namespace" is given 2 times, with values "a" and "b"`},
		"list misspelt":     {path: "/scopes", target: "/scopes?namspace=a", want: 400, detail: `unknown query parameter "namspace" with value "a"; this path takes ["namespace" "watch"]`},
		"list semicolon":    {path: "/scopes", target: "/scopes?a;b", want: 400, detail: "cannot read the query"},
		"list bad escape":   {path: "/scopes", target: "/scopes?a=%zz", want: 400, detail: `cannot read the query "a=%zz": invalid URL escape "%zz"`},
		"list fails":        {path: "/scopes", scopes: gone, want: 503, detail: "cannot list the HealthScopes of all namespaces: the cache is not started"},
		"list panics":       {path: "/scopes", scopes: panics, want: 500, detail: "the server failed while it made the answer; its log says how"},

		"list that is known":        {path: "/scopes", header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"list with another known":   {path: "/scopes", header: http.Header{"If-None-Match": {`"x"`}}, want: 200},
		"scope that is known":       {path: "/scopes/{name}", header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"scope elsewhere, known":    {path: "/scopes/{namespace}/{name}", header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"list watched, or not":      {path: "/scopes", target: "/scopes?watch=yes", want: 400, detail: `query parameter "watch" has the value "yes"; it must be true or false`},
		"list not watched":          {path: "/scopes", target: "/scopes?watch=false", want: 200},
		"list watched as JSON":      {path: "/scopes", target: "/scopes?watch=true", accept: "application/json", want: 406, detail: `this path can be answered as text/event-stream with watch=true, or without it as application/json or text/plain`},
		"list as stream, unwatched": {path: "/scopes", accept: "text/event-stream", want: 406, detail: `this path can be answered as application/json or text/plain`},
		"scope watched, not there":  {path: "/scopes/{name}", target: "/scopes/web?watch=true", want: 404, detail: `there is no HealthScope "web"`},

		"scope of every field":   {path: "/scopes/{name}", want: 200},
		"scope as text":          {path: "/scopes/{name}", accept: "text/plain", want: 200},
		"scope not evaluated":    {path: "/scopes/{name}", target: "/scopes/new", want: 200},
		"scope missing":          {path: "/scopes/{name}", target: "/scopes/web", want: 404, detail: `there is no HealthScope "web" in namespace "default", the default one; /scopes/{namespace}/{name} looks in another`},
		"scope missing as text":  {path: "/scopes/{name}", target: "/scopes/web", accept: "text/plain", want: 404, detail: `there is no HealthScope "web"`},
		"scope of bad name":      {path: "/scopes/{name}", target: "/scopes/V", want: 400, detail: `parameter "name" has the value "V", which cannot be a name`},
		"scope of long name":     {path: "/scopes/{name}", target: "/scopes/" + strings.Repeat("x", 5000), want: 400, detail: `xxx"... (5000 bytes), which cannot be a name: must be no more than 253`},
		"scope of escaped slash": {path: "/scopes/{name}", target: "/scopes/a%2Fb", want: 400, detail: `parameter "name" has the value "a/b"`},
		"scope of dots":          {path: "/scopes/{name}", target: "/scopes/%2e%2e", want: 400, detail: `parameter "name" has the value ".."`},
		"scope with parameter":   {path: "/scopes/{name}", target: "/scopes/vfw?namespace=telco", want: 400, detail: `unknown query parameter "namespace" with value "telco"; this path takes ["watch"]`},
		"scope fails":            {path: "/scopes/{name}", scopes: gone, want: 503, detail: `cannot get HealthScope "vfw" in namespace "default": the cache is not started`},
		"scope panics":           {path: "/scopes/{name}", scopes: panics, want: 500, detail: "the server failed while it made the answer; its log says how"},

		"scope elsewhere":                  {path: "/scopes/{namespace}/{name}", want: 200},
		"scope elsewhere as text":          {path: "/scopes/{namespace}/{name}", accept: "text/plain", want: 200},
		"scope elsewhere missing":          {path: "/scopes/{namespace}/{name}", target: "/scopes/telco/vfw", want: 404, detail: `there is no HealthScope "vfw" in namespace "telco"`},
		"scope elsewhere of bad name":      {path: "/scopes/{namespace}/{name}", target: "/scopes/telco/-a", want: 400, detail: `parameter "name" has the value "-a"`},
		"scope elsewhere of bad namespace": {path: "/scopes/{namespace}/{name}", target: "/scopes/a.b/web", want: 400, detail: `parameter "namespace" has the value "a.b"`},
		"scope elsewhere fails":            {path: "/scopes/{namespace}/{name}", scopes: gone, want: 503, detail: `cannot get HealthScope "web" in namespace "telco": the cache is not started`},
		"scope elsewhere panics":           {path: "/scopes/{namespace}/{name}", scopes: panics, want: 500, detail: "its log says how"},
	}
}

func TestEveryAnswerIsAsDescribed(t *testing.T) {
	c := newContract(t)
	for name, tt := range requests() {
		t.Run(name, func(t *testing.T) {
			o := Options{Scopes: manyScopes(), Documents: manyDocuments(t), Guard: tt.guard, Ready: tt.ready}
			if tt.scopes != nil {
				o.Scopes = tt.scopes
			}
			if tt.from != nil {
				o.Documents = tt.from
			}
			header := http.Header{}
			maps.Copy(header, tt.header)
			if tt.accept != "" {
				header.Set("Accept", tt.accept)
			}
			target := tt.target
			if target == "" {
				target = paths[tt.path]
			}
			got := get(t, NewHandler(o), target, header)
			if got.Code != tt.want {
				t.Fatalf("status %d, want %d: %s", got.Code, tt.want, got.Body)
			}
			c.checkAnswer(t, tt.path, got)
			checkHeader(t, got.Header())
			if tt.want >= http.StatusBadRequest {
				checkProblem(t, got.Body.Bytes(), tt.want, tt.detail)
			}
			head := send(t, NewHandler(o), http.MethodHead, target, header)
			if diff := cmp.Diff(got.Header(), head.Header()); diff != "" || head.Code != got.Code || head.Body.Len() > 0 {
				t.Errorf("HEAD answers %d with content %q, GET %d; header (-GET +HEAD):\n%s", head.Code, head.Body, got.Code, diff)
			}
		})
	}
	if unseen := c.unseen(); len(unseen) > 0 {
		t.Errorf("described, but in no answer of this test: %q", unseen)
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
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW", "get"} {
			t.Run(method+" "+path, func(t *testing.T) {
				got := send(t, h, method, target, nil)
				if got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != "GET, HEAD" {
					t.Errorf("status %d, Allow %q: %s", got.Code, got.Header().Get("Allow"), got.Body)
				}
				c.checkContent(t, "405", c.Components.Responses["MethodNotAllowed"], got)
				checkHeader(t, got.Header())
			})
		}
	}
}

func TestOtherPathsAreNotFound(t *testing.T) {
	c := newContract(t)
	h := NewHandler(Options{Scopes: manyScopes()})
	for _, target := range []string{"/", "/scope", "/scopes/", "/scopes/a/b/c", "/scopes/a/b/", "/scopes//a", "//scopes", "/scopes/.", "/scopes/../healthz", "/scopes/./a", "/healthz/", "/metrics", "/Scopes", "/%2e", "/scopes%2Fvfw"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			t.Run(method+" "+target, func(t *testing.T) {
				got := send(t, h, method, "http://example.com"+target, nil)
				if got.Code != http.StatusNotFound {
					t.Fatalf("status %d: %s", got.Code, got.Body)
				}
				c.checkContent(t, "404", c.Components.Responses["NotFound"], got)
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
		"unknown":       {target: "/scopes/telco/lost", want: "unhealthy\n"},
		"not evaluated": {target: "/scopes/new", want: "unhealthy\n"},
		"list":          {target: "/scopes", want: "default/edited healthy\ndefault/new unhealthy\ndefault/vfw unhealthy\ntelco/lost unhealthy\ntelco/web healthy\n"},
		"list of one":   {target: "/scopes?namespace=telco", want: "telco/lost unhealthy\ntelco/web healthy\n"},
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
		target string
		want   []string
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
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			h := NewHandler(Options{Scopes: tt.scopes, Ready: func() error { return tt.ready }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
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

// FuzzTarget asserts that no path and query, well-formed or not, is answered in a way that is not described, and that no name reaches Scopes that cannot exist.
func FuzzTarget(f *testing.F) {
	for _, tt := range requests() {
		f.Add(tt.target)
	}
	for _, seed := range []string{"/", "//", "*", "/scopes/%00", "/scopes/a%2f..%2fb/c", "/scopes?namespace=%C3%28", "/scopes/a/b?=", "/healthz#x", "http://h:1/scopes", "/scopes/é"} {
		f.Add(seed)
	}
	statuses := []int{200, 400, 404, 414, 503}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return // net/http refuses it before we see it.
		}
		asked := &recording{}
		r := &http.Request{Method: http.MethodGet, URL: u, RequestURI: target, Header: http.Header{}}
		got := serve(NewHandler(Options{Scopes: asked}), r.WithContext(stopping(t.Context()))) // Streams end at once.
		if !slices.Contains(statuses, got.Code) {
			t.Fatalf("status %d: %s", got.Code, got.Body)
		}
		if got.Code != http.StatusOK {
			checkProblem(t, got.Body.Bytes(), got.Code, "")
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
