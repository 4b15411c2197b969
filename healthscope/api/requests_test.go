package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// operations holds the description of each route by its path, and targets the target of a request to it that succeeds.
var operations, targets = func() (map[string]Operation, map[string]string) {
	names := strings.NewReplacer("/{namespace}/{name}", "/telco/web", "/{name}", "/vfw", "{project}", "retail", "{app}", "shop", "{version}", "v2", "{group}", "autumn",
		"{provider}", "west", "{cluster}", "bonn", "{id}", "gentle-fox")
	routes, all := map[string]Operation{}, map[string]string{}
	for _, o := range Operations() {
		routes[o.Path], all[o.Path] = o, names.Replace(o.Path)
	}
	return routes, all
}()

// changesSomething reports whether a route changes something.
func changesSomething(path string) bool { return operations[path].Method == http.MethodPost }

// methodOf returns the method of a route, and the status code of its response without an error (fine).
func methodOf(path string) (method string, fine int) {
	if changesSomething(path) {
		return http.MethodPost, http.StatusAccepted
	}
	return http.MethodGet, http.StatusOK
}

// request is a row of a table: a request, and the expected status code and detail of the response.
type request struct {
	path       string // The route, as in OpenAPI.
	target     string // The target of the request. Default: the one in targets.
	accept     string
	header     http.Header
	body       string     // Default without a target: rollbackBody.
	scopes     Scopes     // Default: manyScopes.
	from       *Documents // Default: manyDocuments.
	guard      Guard      // Default: none.
	deploy     error      // The error of Deployments; undeployed is true for a server without Deployments.
	undeployed bool
	ready      func() error
	current    func() error
	want       int
	detail     string // A part of the detail of the problem document.
}

// requests returns the requests of all tables, by name. To add one, look for the subject: requestsForScopes is in scopes_test.go, and so on.
func requests(t testing.TB) map[string]request {
	t.Helper()
	all := map[string]request{}
	for _, rows := range []map[string]request{requestsForScopes(), requestsForServer(), requestsForDocuments(t), requestsForDeployments(), requestsOfCallers()} {
		maps.Copy(all, rows)
	}
	for path, target := range targets {
		all[path+" is too long"] = request{path: path, target: target + "?" + strings.Repeat("x", maxURLBytes), want: 414, detail: "bytes; at most 8000 are read"}
		if !changesSomething(path) {
			all[path] = request{path: path, want: 200}
			all[path+" is not acceptable"] = request{path: path, accept: "image/png", want: 406, detail: `the header Accept is "image/png"`}
		}
	}
	return all
}

func requestsForServer() map[string]request {
	notYet := func() error { return errors.New("the bundles have not been read yet") }
	return map[string]request{
		"openapi with parameter":          {path: "/openapi.json", target: "/openapi.json?format=yaml", want: 400, detail: `unknown query parameter "format" with value "yaml"; this path takes none`},
		"openapi as text":                 {path: "/openapi.json", accept: "text/plain", want: 406, detail: `the header Accept is "text/plain"; this path can be answered as application/json`},
		"healthz as JSON":                 {path: "/healthz", accept: "application/json", want: 200},
		"healthz with parameter":          {path: "/healthz", target: "/healthz?verbose", want: 400, detail: `unknown query parameter "verbose" with value ""`},
		"healthz is alive when not ready": {path: "/healthz", ready: notYet, want: 200},
		"readyz with parameter":           {path: "/readyz", target: "/readyz?exclude=x", want: 400, detail: `unknown query parameter "exclude"`},
		"readyz not ready":                {path: "/readyz", ready: notYet, want: 503, detail: "not ready: the bundles have not been read yet"},
		"readyz panics":                   {path: "/readyz", ready: func() error { panic("secret") }, want: 500, detail: "its log says how"},
		"a long header is quoted in part": {path: "/scopes", accept: strings.Repeat("x/y,", 1000), want: 406, detail: `y,"... (4000 bytes); this path can be answered as application/json or text/plain`},
		"a query with a bad escape":       {path: "/scopes", target: "/scopes?a=%zz", want: 400, detail: `cannot read the query "a=%zz": invalid URL escape "%zz"`},
		"a parameter twice":               {path: "/scopes", target: "/scopes?namespace=a&namespace=b", want: 400, detail: `query parameter "namespace" is given 2 times, with values "a" and "b"`},
		"a misspelt parameter":            {path: "/scopes", target: "/scopes?namspace=a", want: 400, detail: `unknown query parameter "namspace" with value "a"; this path takes ["namespace" "watch"]`},
		"a parameter of another path":     {path: "/scopes/{name}", target: "/scopes/vfw?namespace=telco", want: 400, detail: `unknown query parameter "namespace" with value "telco"; this path takes ["watch"]`},
		"a document that cannot be JSON":  {path: "/scopes/{name}", scopes: timeless(), want: 500, detail: "the server failed while it made the answer"},
	}
}

// TestEveryAnswerIsAsDescribed sends the requests of all tables, and asserts that openapi.json describes the responses, and nothing else.
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
				target = targets[tt.path]
				if body == "" {
					body = rollbackBody
				}
			}
			h := tt.handler(t)
			method, _ := methodOf(tt.path)
			got := send(t.Context(), h, method, target, header, body)
			if got.Code != tt.want {
				t.Fatalf("status %d, want %d: %s", got.Code, tt.want, got.Body)
			}
			c.checkAnswer(t, method, tt.path, got)
			c.checkBody(t, method, tt.path, body, got.Code)
			checkHeader(t, got.Header())
			checkRetry(t, tt, got.Header())
			checkLengthAndTag(t, tt, got)
			if tt.want >= http.StatusBadRequest {
				checkError(t, got, tt.accept == typeEMCO || strings.Contains(target, parameterDialect), tt.want, tt.detail)
			}
			if method != http.MethodGet {
				return
			}
			head := send(t.Context(), h, http.MethodHead, target, header, "")
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
	return NewHandler(o)
}

// checkRetry asserts that a response has the header Retry-After if a retry can succeed, and only then.
func checkRetry(t *testing.T, asked request, got http.Header) {
	t.Helper()
	want := asked.want == http.StatusTooManyRequests || asked.want == http.StatusServiceUnavailable && !strings.Contains(asked.detail, "configuration")
	if told := got.Get("Retry-After") != ""; told != want {
		t.Errorf("Retry-After is %q", got.Get("Retry-After"))
	}
}

// checkLengthAndTag asserts that a response has its length, and an entity tag unless it is an error, or of the server itself.
func checkLengthAndTag(t *testing.T, asked request, got *httptest.ResponseRecorder) {
	t.Helper()
	if length := got.Header().Get("Content-Length"); length != strconv.Itoa(got.Body.Len()) && asked.want != http.StatusNotModified {
		t.Errorf("Content-Length is %q, and the content has %d bytes", length, got.Body.Len())
	}
	want := asked.want < http.StatusBadRequest && !changesSomething(asked.path) && operations[asked.path].Tag != tagServer
	if tagged := got.Header().Get("ETag") != ""; tagged != want {
		t.Errorf("ETag is %q", got.Header().Get("ETag"))
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
