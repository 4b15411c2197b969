package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The routes of scopes.
const (
	listPath    = "/scopes"
	defaultPath = "/scopes/{name}"
	scopePath   = "/scopes/{namespace}/{name}"
	pagesPath   = "/v1alpha1/scopes"
	v1alpha1    = "/v1alpha1/scopes/{namespace}/{name}"
)

// requestsForScopes returns requests to the routes of scopes: first those that each route answers in the same way.
func requestsForScopes() map[string]request {
	panics := scopesFunc(func(context.Context, string, string) error { panic("index out of range: secret") })
	fails := scopesFunc(func(context.Context, string, string) error { return errors.New("the cache is not started") })
	out := func() error {
		return &OutageError{Reason: "ClusterUnreachable", Message: `cluster "local": the API server does not answer`, LastSeen: noon.Time}
	}
	const vfw, web = `HealthScope "vfw" in namespace "default"`, `HealthScope "web" in namespace "telco"`
	all := map[string]request{
		"readyz in an outage":  {path: "/readyz", current: out, want: 503, detail: "not ready: "},
		"healthz in an outage": {path: "/healthz", current: out, want: 200},
	}
	for path, subject := range map[string]string{listPath: "", pagesPath: "", defaultPath: vfw, scopePath: web, v1alpha1: web} {
		unknown, failure := "cannot say how "+subject+" is now: ", "cannot get "+subject
		if subject == "" {
			unknown, failure = "cannot say how the HealthScopes of all namespaces are now: ", "cannot list the HealthScopes of all namespaces"
		}
		unknown += `cluster "local": the API server does not answer; it was known last at 2026-05-01T10:00:00Z`
		all[path+" as text"] = request{path: path, accept: "text/plain", want: 200}
		all[path+" is known"] = request{path: path, header: http.Header{"If-None-Match": {"*"}}, want: 304}
		all[path+" in an outage"] = request{path: path, current: out, want: 503, detail: unknown}
		all[path+" in an outage, as text"] = request{path: path, accept: "text/plain", current: out, want: 503, detail: unknown}
		all[path+" in an outage, watched"] = request{path: path, target: targets[path] + "?watch=true", current: out, want: 503, detail: unknown}
		all[path+" fails"] = request{path: path, scopes: fails, want: 503, detail: failure + ": the cache is not started"}
		all[path+" panics"] = request{path: path, scopes: panics, want: 500, detail: "the server failed while it made the answer; its log says how"}
	}
	for name, tt := range map[string]struct {
		path, target string
		want         int
		detail       string
	}{
		"list of namespace": {listPath, "/scopes?namespace=telco", 200, ""},
		"list of bad name":  {listPath, "/scopes?namespace=Telco_1", 400, `parameter "namespace" has the value "Telco_1", which cannot be a name`},
		"list of no name":   {listPath, "/scopes?namespace=", 400, `parameter "namespace" has the value ""`},
		"list not watched":  {listPath, "/scopes?watch=false", 200, ""},
		"list half watched": {listPath, "/scopes?watch=yes", 400, `query parameter "watch" has the value "yes"; it must be true or false`},

		"scope not evaluated":      {defaultPath, "/scopes/new", 200, ""},
		"scope missing":            {defaultPath, "/scopes/web", 404, `there is no HealthScope "web" in namespace "default", the default one; /scopes/{namespace}/{name} looks in another`},
		"scope missing, watched":   {defaultPath, "/scopes/web?watch=true", 404, `there is no HealthScope "web"`},
		"scope of bad name":        {defaultPath, "/scopes/V", 400, `parameter "name" has the value "V", which cannot be a name`},
		"scope of long name":       {defaultPath, "/scopes/" + strings.Repeat("x", 5000), 400, `xxx"... (5000 bytes), which cannot be a name: must be no more than 253`},
		"scope of escaped slash":   {defaultPath, "/scopes/a%2Fb", 400, `parameter "name" has the value "a/b"`},
		"scope of dots":            {defaultPath, "/scopes/%2e%2e", 400, `parameter "name" has the value ".."`},
		"scope elsewhere, missing": {scopePath, "/scopes/telco/vfw", 404, `there is no HealthScope "vfw" in namespace "telco"`},
		"scope of bad namespace":   {scopePath, "/scopes/a.b/web", 400, `parameter "namespace" has the value "a.b"`},
		"v1alpha1 scope missing":   {v1alpha1, "/v1alpha1/scopes/telco/vfw", 404, `there is no HealthScope "vfw" in namespace "telco"`},
		"v1alpha1 scope, bad name": {v1alpha1, "/v1alpha1/scopes/telco/-a", 400, `parameter "name" has the value "-a"`},

		"page":                    {pagesPath, "/v1alpha1/scopes?limit=2", 200, ""},
		"page of everything":      {pagesPath, "/v1alpha1/scopes?limit=0&continue=&labelSelector=&watch=false", 200, ""},
		"page of one health":      {pagesPath, "/v1alpha1/scopes?health=unknown&labelSelector=a!%3Db", 200, ""},
		"page of unknown":         {pagesPath, "/v1alpha1/scopes?x=y", 400, `this path takes ["continue" "health" "labelSelector" "limit" "namespace" "watch"]`},
		"page of no namespace":    {pagesPath, "/v1alpha1/scopes?namespace=", 400, `parameter "namespace" has the value ""`},
		"page of no health":       {pagesPath, "/v1alpha1/scopes?health=", 400, `query parameter "health" has the value ""; it must be healthy, unhealthy, unknown`},
		"page of odd health":      {pagesPath, "/v1alpha1/scopes?watch=true&health=superb", 400, `query parameter "health" has the value "superb"; it must be healthy, unhealthy, unknown`},
		"page of odd labels":      {pagesPath, "/v1alpha1/scopes?labelSelector=a%3D%3D%3Db", 400, `query parameter "labelSelector" has the value "a===b"; it must be a label selector: `},
		"page of less than none":  {pagesPath, "/v1alpha1/scopes?limit=-1", 400, `query parameter "limit" has the value "-1"; it must be a number from 0 to 1000`},
		"page of the most":        {pagesPath, "/v1alpha1/scopes?limit=1000", 200, ""},
		"page of too many":        {pagesPath, "/v1alpha1/scopes?limit=1001", 400, `query parameter "limit" has the value "1001"; it must be a number from 0 to 1000`},
		"page after what is none": {pagesPath, "/v1alpha1/scopes?continue=%C3%A9", 400, `query parameter "continue" has the value "é"; it must be metadata.continue of the page before`},
		"page after no document":  {pagesPath, "/v1alpha1/scopes?continue=AAAA", 400, `query parameter "continue" has the value "AAAA"; it must be metadata.continue of the page before`},
		"page after another list": {pagesPath, "/v1alpha1/scopes?continue=e30", 400, `query parameter "continue" has the value "e30"; it must be of a list with the same namespace, labelSelector and health`},
		"page watched":            {pagesPath, "/v1alpha1/scopes?watch=true&limit=5", 400, `query parameter "limit" has the value "5"; it cannot be together with watch=true`},
		"page after it, watched":  {pagesPath, "/v1alpha1/scopes?watch=true&continue=", 400, `query parameter "continue" has the value ""; it cannot be together with watch=true`},
	} {
		all[name] = request{path: tt.path, target: tt.target, want: tt.want, detail: tt.detail}
	}
	all["list watched as JSON"] = request{path: listPath, target: "/scopes?watch=true", accept: "application/json", want: 406, detail: `this path can be answered as text/event-stream with watch=true, or without it as application/json or text/plain`}
	all["list as stream, unwatched"] = request{path: listPath, accept: "text/event-stream", want: 406, detail: `this path can be answered as application/json or text/plain`}
	all["list of namespace in an outage"] = request{path: listPath, target: "/scopes?namespace=telco", current: out, want: 503, detail: `cannot say how the HealthScopes of namespace "telco" are now`}
	all["scope missing as text"] = request{path: defaultPath, target: "/scopes/web", accept: "text/plain", want: 404, detail: `there is no HealthScope "web"`}
	return all
}

// timeless returns a scope with a time that has no form in JSON.
func timeless() memory {
	scope := wellScope("default", "vfw", 0)
	scope.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.AddDate(9000, 0, 0))
	return memory{scope}
}

func TestDefaultNamespaceIsAnOption(t *testing.T) {
	h := NewHandler(Options{Scopes: manyScopes(), DefaultNamespace: "telco"})
	for target, want := range map[string]int{"/scopes/web": http.StatusOK, "/scopes/vfw": http.StatusNotFound} {
		if got := get(t, h, target, nil); got.Code != want {
			t.Errorf("%s: status %d, want %d", target, got.Code, want)
		}
	}
}

// getPage requests a page.
func getPage(t *testing.T, h http.Handler, target string) (ScopePage, http.Header) {
	t.Helper()
	var p ScopePage
	got := get(t, h, target, nil)
	if err := json.Unmarshal(got.Body.Bytes(), &p); err != nil || got.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", target, got.Code, got.Body)
	}
	return p, got.Header()
}

func namesOf(items []ScopeItem) string {
	names := make([]string, 0, len(items))
	for _, item := range items {
		names = append(names, item.Namespace+"/"+item.Name)
	}
	return strings.Join(names, " ")
}

func TestScopesAreSelected(t *testing.T) {
	h := NewHandler(Options{Scopes: manyScopes()})
	for query, want := range map[string]string{
		"":                                  "default/edited default/new default/vfw telco/lost telco/web",
		"namespace=telco":                   "telco/lost telco/web",
		"health=healthy":                    "telco/web",
		"health=unhealthy":                  "default/vfw",
		"health=unknown":                    "default/edited default/new telco/lost",
		"labelSelector=tier":                "telco/lost telco/web",
		"labelSelector=tier+in+(core,edge)": "telco/lost telco/web",
		"labelSelector=!tier":               "default/edited default/new default/vfw",
		"labelSelector=tier%3Dcore&health=unknown": "telco/lost",
		"labelSelector=tier%3Dedge":                "",
		"namespace=default&labelSelector=tier":     "",
	} {
		p, _ := getPage(t, h, "/v1alpha1/scopes?"+query)
		if got := namesOf(p.Items); got != want || p.Total != len(p.Items) || p.Metadata != (ListMetadata{}) || p.Items == nil {
			t.Errorf("%q: got %q of %d, %+v; want %q", query, got, p.Total, p.Metadata, want)
		}
	}
}

// TestPagesAreTheList asserts that all pages together are the list, even if scopes are created and deleted between two requests.
func TestPagesAreTheList(t *testing.T) {
	scopes := newChanging(manyScopes())
	h := NewHandler(Options{Scopes: scopes})
	next := "/v1alpha1/scopes?limit=2"
	var got []string
	for n := 0; next != ""; n++ {
		p, header := getPage(t, h, next)
		got = append(got, namesOf(p.Items))
		if n == 0 {
			if want := (ListMetadata{Continue: p.Metadata.Continue, RemainingItemCount: 3}); p.Metadata != want || p.Total != 5 {
				t.Errorf("the first page: %+v of %d", p.Metadata, p.Total)
			}
			scopes.remove("default", "new") // It is the last scope of the first page.
			scopes.put(wellScope("default", "zeta", 0))
		}
		if (p.Metadata.Continue == "") != (header.Get("Link") == "") {
			t.Fatalf("page %d: metadata %+v, Link %q", n, p.Metadata, header.Get("Link"))
		}
		link, _, _ := strings.Cut(strings.TrimPrefix(header.Get("Link"), "<"), ">")
		if next = link; next != "" && !strings.HasSuffix(next, "?"+url.Values{"continue": {p.Metadata.Continue}, "limit": {"2"}}.Encode()) {
			t.Fatalf("page %d: metadata %+v, Link %q", n, p.Metadata, link)
		}
	}
	if diff := cmp.Diff([]string{"default/edited default/new", "default/vfw default/zeta", "telco/lost telco/web"}, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

// TestContinueIsOfItsList asserts that the server rejects a token for another list than the one it belongs to.
func TestContinueIsOfItsList(t *testing.T) {
	h := NewHandler(Options{Scopes: manyScopes()})
	p, _ := getPage(t, h, "/v1alpha1/scopes?limit=1&namespace=telco")
	rest := "&continue=" + p.Metadata.Continue
	if second, _ := getPage(t, h, "/v1alpha1/scopes?limit=7&namespace=telco"+rest); namesOf(second.Items) != "telco/web" {
		t.Errorf("another limit: %+v", second)
	}
	for _, query := range []string{"limit=1", "limit=1&namespace=default", "namespace=telco&health=healthy", "namespace=telco&labelSelector=tier"} {
		got := get(t, h, "/v1alpha1/scopes?"+query+rest, nil)
		checkProblem(t, got.Body.Bytes(), http.StatusBadRequest, "list from the start without it")
	}
}
