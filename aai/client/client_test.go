package client_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
)

// wire holds the parts of a request that are compared.
type wire struct{ Method, URL, ContentType, Body string }

// encoded is an object as the client sends it.
const encoded = `{"id":"13dd","name":"n","group":"","version":"v1","kind":"Service","namespace":"ns","labels":["hs/status=Ready"],"selflink":"http://x","data-owner":"healthscope-lab"}`

// confirm sends the response with which A&AI confirms a request.
func confirm(w http.ResponseWriter, r *http.Request) {
	stored := strings.Replace(encoded, "}", `,"resource-version":"1"}`, 1)
	switch {
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"operation-responses":[{"response-status-code":201},{"response-status-code":204}]}`)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut && !strings.HasSuffix(r.URL.Path, "/relationship") && r.ContentLength <= int64(len(encoded)): // The body of an update is longer.
		w.WriteHeader(http.StatusCreated)
	case r.Method != http.MethodGet:
	case strings.HasSuffix(r.URL.Path, "k8s-resources"):
		fmt.Fprint(w, `{"k8s-resource":[`+stored+`]}`)
	case strings.HasSuffix(r.URL.Path, "vf-modules"):
		fmt.Fprint(w, `{"vf-module":[{"vf-module-id":"m","resource-version":"1"}]}`)
	case strings.HasSuffix(r.URL.Path, "/t=1"):
		fmt.Fprint(w, `{"tenant-id":"t=1","resource-version":"1"}`)
	case strings.HasSuffix(r.URL.Path, "/vnf-1"):
		fmt.Fprint(w, `{"vnf-id":"vnf-1","resource-version":"1"}`)
	default:
		fmt.Fprint(w, strings.Replace(stored, "13dd", r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], 1))
	}
}

func TestRequestsOnTheWire(t *testing.T) {
	const edge = `{"related-to":"generic-vnf","related-link":"/network/generic-vnfs/generic-vnf/vnf-1"}`
	want := map[string]wire{
		"probe":    {"GET", "/aai/v32/cloud-infrastructure/cloud-regions/cloud-region/healthscope-probe/healthscope-probe/tenants/tenant/healthscope-probe/k8s-resources/k8s-resource/healthscope-probe", "", ""},
		"list":     {"GET", tenantPath + "/k8s-resources?data-owner=healthscope-lab&resultIndex=1&resultSize=500&skip-related-to=true", "", ""},
		"get":      {"GET", keyPath, "", ""},
		"put":      {"PUT", keyPath, "application/json", encoded},
		"update":   {"PUT", keyPath, "application/json", strings.Replace(strings.Replace(encoded, "hs/status=Ready", "a=b", 1), "}", `,"resource-version":"17 3"}`, 1)},
		"delete":   {"DELETE", keyPath + "?resource-version=17%203", "", ""},
		"relate":   {"PUT", keyPath + "/relationship-list/relationship", "application/json", edge},
		"unrelate": {"DELETE", keyPath + "/relationship-list/relationship", "application/json", edge},
		"tenant":   {"GET", tenantPath + "?nodes-only=true", "", ""},
		"bulk":     {"POST", "/aai/v32/bulk/single-transaction", "application/json", `{"operations":[{"action":"put","uri":"` + strings.TrimPrefix(keyPath, "/aai/v32") + `","body":` + encoded + `},{"action":"delete","uri":"` + strings.TrimPrefix(keyPath, "/aai/v32") + `?resource-version=17%203","body":{}}]}`},
		"target":   {"GET", "/aai/v32/network/generic-vnfs/generic-vnf/vnf-1?nodes-only=true", "", ""},
		"modules":  {"GET", "/aai/v32/network/generic-vnfs/generic-vnf/vnf-1/vf-modules?nodes-only=true", "", ""},
		"status":   {"PATCH", "/aai/v32/network/generic-vnfs/generic-vnf/vnf-1/vf-modules/vf-module/m", "application/merge-patch+json", `{"operational-status":"in-service-path","resource-version":"17 3"}`},
	}
	ids := map[string]bool{}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			s := serve(t, confirm)
			if err := call(t.Context(), connect(t, s.URL+"/")); err != nil {
				t.Fatal(err)
			}
			requests := s.received()
			if len(requests) != 1 {
				t.Fatalf("%d requests, want 1", len(requests))
			}
			r := requests[0]
			got := wire{r.Method, r.Path, r.Header.Get("Content-Type"), r.Body}
			if r.Query != "" {
				got.URL += "?" + r.Query
			}
			if diff := cmp.Diff(want[name], got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			checkHeaders(t, r.Header)
			ids[r.Header.Get("X-TransactionId")] = true
		})
	}
	if len(ids) != len(want) {
		t.Errorf("%d transaction ids in %d operations", len(ids), len(want))
	}
}

func checkHeaders(t *testing.T, header http.Header) {
	t.Helper()
	r := http.Request{Header: header}
	if u, p, ok := r.BasicAuth(); !ok || u != user || p != password {
		t.Errorf("credentials are %q, %q", u, p)
	}
	if diff := cmp.Diff([]string{"application/json"}, header.Values("Accept")); diff != "" {
		t.Errorf("Accept, -want +got:\n%s", diff)
	}
	if got := header.Get("X-FromAppId"); got != "HealthScope" {
		t.Errorf("X-FromAppId is %q", got)
	}
	if _, err := uuid.Parse(header.Get("X-TransactionId")); err != nil {
		t.Errorf("X-TransactionId: %v", err)
	}
}

// pages returns a handler that serves documents in pages. totals reports whether it sends the number of pages.
func pages(documents []string, totals bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		index, _ := strconv.Atoi(r.URL.Query().Get("resultIndex"))
		size, _ := strconv.Atoi(r.URL.Query().Get("resultSize"))
		first := (index - 1) * size
		if first >= len(documents) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, refusal("serviceException", "SVC3001", "GET", "x", "Node Not Found", "ERR.5.4.6114"))
			return
		}
		if totals {
			w.Header().Set("total-pages", strconv.Itoa((len(documents)+size-1)/size))
		}
		var list []aai.Document
		for _, id := range documents[first:min(first+size, len(documents))] {
			list = append(list, document(id))
		}
		answerList(w, list)
	}
}

// answerList sends a response with a list of documents.
func answerList(w http.ResponseWriter, documents []aai.Document) {
	for i := range documents {
		documents[i].ResourceVersion = "1"
	}
	body, err := json.Marshal(struct {
		Documents []aai.Document `json:"k8s-resource"`
	}{documents})
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(body)
}

func TestListReadsEveryPage(t *testing.T) {
	cases := map[string]struct {
		answer   http.HandlerFunc
		want     []string
		requests int
	}{
		"nothing":                        {answer: pages(nil, true), requests: 1},
		"one page":                       {answer: pages([]string{"a", "b"}, true), want: []string{"a", "b"}, requests: 1},
		"full pages":                     {answer: pages([]string{"a", "b", "c", "d", "e", "f"}, true), want: []string{"a", "b", "c", "d", "e", "f"}, requests: 2},
		"last page not full":             {answer: pages([]string{"a", "b", "c", "d"}, true), want: []string{"a", "b", "c", "d"}, requests: 2},
		"a document that moved a page":   {answer: pages([]string{"a", "b", "c", "c", "d"}, true), want: []string{"a", "b", "c", "d"}, requests: 2},
		"no totals, last page not full":  {answer: pages([]string{"a", "b", "c", "d"}, false), want: []string{"a", "b", "c", "d"}, requests: 2},
		"no totals, last page full":      {answer: pages([]string{"a", "b", "c"}, false), want: []string{"a", "b", "c"}, requests: 2},
		"an empty list, which is no 404": {answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"k8s-resource":[]}`) }, requests: 1},
		"a server that does not page": {
			answer: func(w http.ResponseWriter, _ *http.Request) {
				answerList(w, []aai.Document{document("a"), document("b"), document("c")})
			},
			want: []string{"a", "b", "c"}, requests: 2,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.answer)
			documents, err := connect(t, s.URL, func(o *client.Options) { o.PageSize = 3 }).ListK8sResources(t.Context(), tenant, "x")
			if err != nil {
				t.Fatal(err)
			}
			got := make([]string, 0, len(documents))
			for _, d := range documents {
				got = append(got, d.ID)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if n := len(s.received()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
		})
	}
}

func TestListFailsWhenAPageDoes(t *testing.T) {
	all := pages([]string{"a", "b", "c", "d"}, true)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resultIndex") == "2" {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		all(w, r)
	})
	documents, err := connect(t, s.URL, func(o *client.Options) { o.PageSize = 2 }).ListK8sResources(t.Context(), tenant, "x")
	if documents != nil || aai.KindOf(err) != aai.Retry {
		t.Errorf("got %d documents and %v: half a list must not pass for a whole one", len(documents), err)
	}
}

func TestGetReadsADocument(t *testing.T) {
	const body = `{"id":"13dd","name":"n","resource-version":"1","new-property":{}}`
	want := aai.Document{ID: "13dd", Name: "n", ResourceVersion: "1"}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			fmt.Fprint(w, body)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		fmt.Fprint(compressed, body)
		_ = compressed.Close()
	})
	got, found, err := connect(t, s.URL).GetK8sResource(t.Context(), key)
	if diff := cmp.Diff(want, got); diff != "" || !found || err != nil {
		t.Errorf("found %t, %v, -want +got:\n%s", found, err, diff)
	}
}

func TestCredentialsAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	userFile, passwordFile := filepath.Join(dir, "user"), filepath.Join(dir, "password")
	store := func(file, content string) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	c := connect(t, s.URL, func(o *client.Options) { o.Credentials = client.FileCredentials(userFile, passwordFile) })
	steps := []struct{ user, password, want string }{
		{"AAI\n", "one\n", "AAI:one"},
		{"AAI", "two", "AAI:two"},
		{"", "two", ""},
		{"A:I", "two", ""},
		{"AAI", "three ", "AAI:three"},
	}
	for _, step := range steps {
		store(userFile, step.user)
		store(passwordFile, step.password)
		before := len(s.received())
		err := update(t.Context(), c)
		requests := s.received()[before:]
		if step.want == "" {
			if err == nil || failure(t, err).Kind != aai.Misconfigured || len(requests) != 0 {
				t.Errorf("with user %q: %d requests and %v, want none and Misconfigured", step.user, len(requests), err)
			}
			continue
		}
		if err != nil || len(requests) != 1 {
			t.Fatalf("%d requests and %v", len(requests), err)
		}
		r := http.Request{Header: requests[0].Header}
		if u, p, _ := r.BasicAuth(); u+":"+p != step.want {
			t.Errorf("sent %q, want %q", u+":"+p, step.want)
		}
	}
	if err := os.Remove(passwordFile); err != nil {
		t.Fatal(err)
	}
	if err := update(t.Context(), c); err == nil || failure(t, err).Kind != aai.Misconfigured {
		t.Errorf("without a password file: %v, want Misconfigured", err)
	}
}

func TestWithoutCredentialsNoneAreSent(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	c := connect(t, s.URL, func(o *client.Options) { o.Credentials, o.Timeout = nil, 0 }) // The default timeout is long enough.
	if err := update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := s.received()[0].Header.Get("Authorization"); got != "" {
		t.Errorf("Authorization is %q", got)
	}
}

func TestEveryRequestIsObserved(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPreconditionFailed) })
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			var got []string
			observe := func(o *client.Options) {
				o.Observe = func(op, code string, d time.Duration) {
					if d <= 0 {
						t.Errorf("took %s", d)
					}
					got = append(got, op+" "+code)
				}
			}
			_ = call(t.Context(), connect(t, s.URL, observe))
			_ = call(t.Context(), connect(t, "http://127.0.0.1:1", observe))
			if diff := cmp.Diff([]string{name + " 412", name + " error"}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNewRefusesBadOptions(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		options client.Options
		want    string
	}{
		"no URL":         {client.Options{}, "BaseURL"},
		"no scheme":      {client.Options{BaseURL: "aai.onap:8443"}, "BaseURL"},
		"another scheme": {client.Options{BaseURL: "ftp://aai.onap"}, "BaseURL"},
		"no host":        {client.Options{BaseURL: "https://"}, "BaseURL"},
		"a query":        {client.Options{BaseURL: "https://aai.onap/?x=y"}, "BaseURL"},
		"a fragment":     {client.Options{BaseURL: "https://aai.onap/#x"}, "BaseURL"},
		"a path":         {client.Options{BaseURL: "https://aai.onap/aai"}, "BaseURL"},
		"a password":     {client.Options{BaseURL: "https://u:" + "hidden@aai.onap"}, "BaseURL"},
		"old schema":     {client.Options{BaseURL: "https://aai.onap", SchemaVersion: "v23"}, `"v23"`},
		"negative time":  {client.Options{BaseURL: "https://aai.onap", Timeout: -1}, "timeout"},
		"negative pages": {client.Options{BaseURL: "https://aai.onap", PageSize: -1}, "page size"},
		"CA not there":   {client.Options{BaseURL: "https://aai.onap", CAFile: empty + "x"}, "CAFile"},
		"no key":         {client.Options{BaseURL: "https://aai.onap", CertFile: "tls.crt"}, "KeyFile"},
		"no certificate": {client.Options{BaseURL: "https://aai.onap", CertFile: empty, KeyFile: empty}, "CertFile"},
		"CA empty":       {client.Options{BaseURL: "https://aai.onap", CAFile: empty}, "CAFile"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := client.New(c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("got %v, want an error about %s", err, c.want)
			}
		})
	}
}
