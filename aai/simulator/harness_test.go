package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

const (
	region    = "/cloud-infrastructure/cloud-regions/cloud-region/owner/region"
	tenant    = region + "/tenants/tenant/t1"
	resources = tenant + "/k8s-resources"
	pod       = resources + "/k8s-resource/pod-1"
	vnf       = "/network/generic-vnfs/generic-vnf/vnf-1"
	otherVNF  = "/network/generic-vnfs/generic-vnf/vnf-2"
	module    = vnf + "/vf-modules/vf-module/mod-1"

	podFields = `"name":"web-0","group":"","version":"v1","kind":"Pod","namespace":"shop","selflink":"https://hub/pods/web-0"`
	podBody   = `{` + podFields + `}`
	podEdge   = pod + relationshipPath
	vnfEdge   = vnf + relationshipPath
	versioned = `"resource-version":"{rv}"`
)

// base is the time of the test clock until a test changes it.
var base = time.UnixMilli(1_763_600_000_000)

// harness is a simulator with a region, a tenant, two VNFs and a module, and a client that sends valid headers.
type harness struct {
	*Simulator
	t    *testing.T
	now  time.Time
	sent atomic.Int64
}

func newHarness(t *testing.T, opts Options) *harness {
	t.Helper()
	h := &harness{t: t, now: base}
	opts.Clock = func() time.Time { return h.now }
	h.Simulator = New(opts)
	h.seed(CloudRegion("owner", "region"), Tenant("owner", "region", "t1"),
		GenericVNF("vnf-1"), GenericVNF("vnf-2"), VFModule("vnf-1", "mod-1"))
	return h
}

func (h *harness) seed(fixtures ...Fixture) {
	h.t.Helper()
	if err := h.Seed(fixtures...); err != nil {
		h.t.Fatal(err)
	}
}

// call is one request. Its headers are those of a correct client, except for those in header. An empty value removes a header.
// {rv} in the path and the body is replaced with the resource-version of the node.
type call struct {
	method string // GET when empty
	path   string // below /aai/v32 unless it starts with /aai
	body   string
	header map[string]string
}

// outcome is a response.
type outcome struct {
	status int
	header http.Header
	body   string
}

func (h *harness) send(c call) outcome {
	h.t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, h.request(c))
	return outcome{status: w.Code, header: w.Header(), body: w.Body.String()}
}

// withVersion replaces {rv}.
func (h *harness) withVersion(c call) call {
	h.t.Helper()
	if strings.Contains(c.path+c.body, "{rv}") {
		uri, _, _ := strings.Cut(c.path, "?")
		version := h.version(uri)
		c.path, c.body = strings.ReplaceAll(c.path, "{rv}", version), strings.ReplaceAll(c.body, "{rv}", version)
	}
	return c
}

// request returns the HTTP request of a call, with a transaction id of its own.
func (h *harness) request(c call) *http.Request {
	h.t.Helper()
	c = h.withVersion(c)
	method, path := cmp.Or(c.method, http.MethodGet), c.path
	if !strings.HasPrefix(path, "/aai") {
		path = "/aai/v32" + path
	}
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(c.body))
	r.Header.Set("Accept", jsonType)
	r.Header.Set("X-FromAppId", "test")
	r.Header.Set("X-TransactionId", fmt.Sprintf("tx-%d", h.sent.Add(1)))
	r.Header.Set("Content-Type", jsonType)
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", patchType)
	}
	for name, value := range c.header {
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r
}

// must sends a request, and fails the test unless the request succeeds.
func (h *harness) must(c call) outcome {
	h.t.Helper()
	out := h.send(c)
	if out.status >= 300 {
		h.t.Fatalf("%s %s: status %d: %s", c.method, c.path, out.status, out.body)
	}
	return out
}

// version returns the resource-version of a node that has to exist.
func (h *harness) version(uri string) string {
	h.t.Helper()
	return as[string](h.t, h.document(uri)["resource-version"])
}

// document returns the document of a node that has to exist.
func (h *harness) document(uri string) map[string]any {
	h.t.Helper()
	doc, ok := h.Get(uri)
	if !ok {
		h.t.Fatalf("no node at %s", uri)
	}
	return doc
}

func put1(path, body string) call    { return call{method: http.MethodPut, path: path, body: body} }
func patch1(path, body string) call  { return call{method: http.MethodPatch, path: path, body: body} }
func delete1(path, body string) call { return call{method: http.MethodDelete, path: path, body: body} }

func bulk1(body string) call {
	return call{method: http.MethodPost, path: "/bulk/single-transaction", body: body}
}

// linked returns a Pod with relationships to these nodes.
func linked(uris ...string) string { return `{` + podFields + `,` + relationshipsTo(uris...) + `}` }

// relationshipsTo returns a relationship-list as a field of a document.
func relationshipsTo(uris ...string) string {
	list := make([]string, len(uris))
	for i, uri := range uris {
		list[i] = linkTo(uri)
	}
	return `"relationship-list":{"relationship":[` + strings.Join(list, ",") + `]}`
}

// linkTo returns a relationship.
func linkTo(uri string) string { return `{"related-link":"` + uri + `"}` }

// with adds fields to a document.
func with(fields, document string) string { return "{" + fields + "," + document[1:] }

// operations wraps bulk operations in their envelope.
func operations(list ...string) string { return `{"operations":[` + strings.Join(list, ",") + `]}` }

func op(action, uri, body string) string {
	return fmt.Sprintf(`{"action":%q,"uri":%q,"body":%s}`, action, uri, body)
}

// ecPattern matches the error code among the variables, as a client does.
var ecPattern = regexp.MustCompile(`^(ERR\.)?\d\.\d\.\d{4}$`)

// errorBody is a decoded error body.
type errorBody struct {
	id, text  string
	variables []string
}

func (o outcome) errorBody(t *testing.T) errorBody {
	t.Helper()
	var doc struct {
		RequestError map[string]struct {
			MessageID string   `json:"messageId"`
			Text      string   `json:"text"`
			Variables []string `json:"variables"`
		} `json:"requestError"`
	}
	if err := json.Unmarshal([]byte(o.body), &doc); err != nil {
		t.Fatalf("error body is no JSON: %v\n%s", err, o.body)
	}
	for _, e := range doc.RequestError {
		return errorBody{e.MessageID, e.Text, e.Variables}
	}
	t.Fatalf("no requestError in %s", o.body)
	return errorBody{}
}

// ec returns the error code of a response, or an empty string if it has none.
func (o outcome) ec(t *testing.T) string {
	t.Helper()
	if o.status < 400 || !strings.Contains(o.body, "requestError") {
		return ""
	}
	for _, v := range o.errorBody(t).variables {
		if ecPattern.MatchString(v) {
			return v
		}
	}
	t.Fatalf("no error code in %s", o.body)
	return ""
}

func (o outcome) decode(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(o.body), &doc); err != nil {
		t.Fatalf("body is no JSON object: %v\n%s", err, o.body)
	}
	return doc
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// requestTests is a table of single requests on a prepared inventory.
type requestTests map[string]struct {
	setup   []call // must succeed
	call    call
	status  int
	ec      string
	message string // the message before the error code; empty for any
	body    string // the whole body, with RV for resource-versions; empty for any
}

func (table requestTests) run(t *testing.T) {
	t.Helper()
	for name, tc := range table {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			for _, c := range tc.setup {
				h.must(c)
			}
			before := h.State()
			out := h.send(tc.call)
			diff(t, "status", tc.status, out.status)
			diff(t, "error code", tc.ec, out.ec(t))
			if tc.message != "" {
				variables := out.errorBody(t).variables
				diff(t, "message", tc.message, variables[slices.Index(variables, tc.ec)-1])
			}
			if tc.body != "" {
				diff(t, "body", tc.body, out.withoutVersions())
			}
			if tc.status >= 400 {
				diff(t, "a refused request must leave no trace in the inventory", before, h.State())
			}
			checkInvariants(t, h.inventory)
		})
	}
}

// withoutVersions returns the body with RV in place of each resource-version.
func (o outcome) withoutVersions() string {
	return regexp.MustCompile(`"resource-version":"\d+"`).ReplaceAllString(o.body, `"resource-version":"RV"`)
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// as asserts the type of a value in a document.
func as[T any](t *testing.T, v any) T {
	t.Helper()
	typed, ok := v.(T)
	if !ok {
		t.Fatalf("got %T, want %T", v, typed)
	}
	return typed
}

// sendInProcess sends a request without a network, as in-process transports do. A panic with http.ErrAbortHandler is a broken
// connection.
func (h *harness) sendInProcess(c call) (out outcome, err error) {
	h.t.Helper()
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler { //nolint:errorlint // a panic value, never wrapped
				panic(p)
			}
			err = errors.New("connection closed")
		}
	}()
	return h.send(c), nil
}

// overNetwork returns a function that sends requests over a loopback connection. The function returns the error of the request
// or of its body.
func (h *harness) overNetwork() func(call) (outcome, error) {
	h.t.Helper()
	server := httptest.NewServer(h)
	transport := &http.Transport{DisableCompression: true}
	h.t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	client := &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(c call) (outcome, error) {
		c = h.withVersion(c)
		template := h.request(c)
		ctx, cancel := context.WithTimeout(h.t.Context(), 10*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, template.Method, server.URL+template.RequestURI, strings.NewReader(c.body))
		if err != nil {
			return outcome{}, err
		}
		r.Header = template.Header
		response, err := client.Do(r)
		if err != nil {
			return outcome{}, err
		}
		body, err := io.ReadAll(response.Body)
		return outcome{response.StatusCode, response.Header, string(body)}, errors.Join(err, response.Body.Close())
	}
}

func (h *harness) fault(rules ...Fault) {
	h.t.Helper()
	if err := h.AddFaults(rules...); err != nil {
		h.t.Fatal(err)
	}
}

// control sends a request to the control surface.
func (h *harness) control(method, path, body string) outcome {
	h.t.Helper()
	w := httptest.NewRecorder()
	h.Control().ServeHTTP(w, httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(body)))
	return outcome{status: w.Code, header: w.Header(), body: w.Body.String()}
}

func decodeInto[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("cannot decode %s: %v", text, err)
	}
	return v
}
