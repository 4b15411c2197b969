package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
)

// requestsForPages returns requests for scopes below /v1alpha1.
func requestsForPages() map[string]request {
	const list, one = "/v1alpha1/scopes", "/v1alpha1/scopes/{namespace}/{name}"
	out := func() error { return &OutageError{Reason: "ClusterUnreachable", Message: "no answer"} }
	bad := func(query, detail string) request {
		return request{path: list, target: list + "?" + query, want: 400, detail: detail}
	}
	all := map[string]request{
		"page":                    {path: list, target: list + "?limit=2", want: 200},
		"page as text":            {path: list, target: list + "?limit=2", accept: "text/plain", want: 200},
		"page of everything":      {path: list, target: list + "?limit=0&continue=&labelSelector=&watch=false", want: 200},
		"page that is known":      {path: list, header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"page of one health":      {path: list, target: list + "?health=unknown&labelSelector=a!%3Db", want: 200},
		"page in an outage":       {path: list, current: out, want: 503, detail: "cannot say how the HealthScopes of all namespaces are now: no answer"},
		"page without namespace":  bad("namespace=", `parameter "namespace" has the value ""`),
		"page of no health":       bad("health=", `query parameter "health" has the value ""; it must be healthy, unhealthy, unknown`),
		"page of odd health":      bad("health=superb", `query parameter "health" has the value "superb"; it must be healthy, unhealthy, unknown`),
		"page of odd labels":      bad("labelSelector=a%3D%3D%3Db", `query parameter "labelSelector" has the value "a===b"; it must be a label selector: `),
		"page of less than none":  bad("limit=-1", `query parameter "limit" has the value "-1"; it must be a number from 0 to 1000`),
		"page of too many":        bad("limit=1001", `query parameter "limit" has the value "1001"; it must be a number from 0 to 1000`),
		"page of a word":          bad("limit=many", `query parameter "limit" has the value "many"`),
		"page after what is none": bad("continue=%C3%A9", `query parameter "continue" has the value "é"; it must be metadata.continue of the page before`),
		"page after no document":  bad("continue=AAAA", `query parameter "continue" has the value "AAAA"; it must be metadata.continue of the page before`),
		"page after another list": bad("continue=e30", `query parameter "continue" has the value "e30"; it must be of a list with the same namespace, labelSelector and health`),
		"page watched":            bad("watch=true&limit=5", `query parameter "limit" has the value "5"; it cannot be together with watch=true`),
		"pages watched":           bad("watch=true&continue=", `query parameter "continue" has the value ""; it cannot be together with watch=true`),
		"watched, of odd health":  bad("watch=true&health=x", `query parameter "health" has the value "x"`),
		"v1alpha1 of unknown":     bad("x=y", `this path takes ["continue" "health" "labelSelector" "limit" "namespace" "watch"]`),
		"v1alpha1 scope known":    {path: one, header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"v1alpha1 scope as text":  {path: one, accept: "text/plain", want: 200},
		"v1alpha1 scope missing":  {path: one, target: "/v1alpha1/scopes/telco/vfw", want: 404, detail: `there is no HealthScope "vfw" in namespace "telco"`},
		"v1alpha1 of bad name":    {path: one, target: "/v1alpha1/scopes/telco/-a", want: 400, detail: `parameter "name" has the value "-a"`},
		"v1alpha1 in an outage":   {path: one, current: out, want: 503, detail: "no answer"},
	}
	panics := scopesFunc(func(context.Context) error { panic("secret") })
	for _, path := range []string{list, one} {
		all[path+" panics"] = request{path: path, scopes: panics, want: 500, detail: "its log says how"}
		all[path+" fails"] = request{path: path, scopes: scopesFunc(func(context.Context) error { return errors.New("no cache") }), want: 503, detail: "no cache"}
		all[path+" has too many streams"] = request{
			path: path, target: paths[path] + "?watch=true", guard: rights{may: map[string][]Access{"all": nil}}, streams: maxStreamsOfOne, header: bearer("all"), want: 429, detail: "streams open already",
		}
	}
	return all
}

// labelled returns manyScopes with a label on the scopes in the namespace telco.
func labelled() memory {
	scopes := manyScopes()
	for i := range scopes {
		if scopes[i].Namespace == "telco" {
			scopes[i].Labels = map[string]string{"tier": "core"}
		}
	}
	return scopes
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
	h := NewHandler(Options{Scopes: labelled()})
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

// TestPagesAreTheList asserts that all pages together are the list, in JSON and as text, even if scopes are created and deleted
// between two requests.
func TestPagesAreTheList(t *testing.T) {
	scopes := newChanging(labelled())
	h := NewHandler(Options{Scopes: scopes})
	next := "/v1alpha1/scopes?limit=2"
	var got []string
	var text strings.Builder
	for n := 0; next != ""; n++ {
		p, header := getPage(t, h, next)
		got = append(got, namesOf(p.Items))
		text.WriteString(get(t, h, next, http.Header{"Accept": {typeText}}).Body.String())
		if n == 0 {
			if want := (ListMetadata{Continue: p.Metadata.Continue, RemainingItemCount: 3}); p.Metadata != want || p.Total != 5 {
				t.Errorf("the first page: %+v of %d", p.Metadata, p.Total)
			}
			scopes.set("default", "new", nil) // Deletes the last scope of the first page.
			fresh := wellScope("default", "zeta", 0)
			scopes.set("default", "zeta", &fresh)
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
	if want := "default/edited unknown\ndefault/new unknown\ndefault/vfw unhealthy\ndefault/zeta healthy\ntelco/lost unknown\ntelco/web healthy\n"; text.String() != want {
		t.Errorf("text: want %q, got %q", want, text.String())
	}
}

// TestContinueIsOfItsList asserts that the server rejects a token for another list than the one it belongs to.
func TestContinueIsOfItsList(t *testing.T) {
	h := NewHandler(Options{Scopes: labelled()})
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

// TestTextAndJSONAgree asserts that each path returns the same health in JSON and as text.
func TestTextAndJSONAgree(t *testing.T) {
	h := NewHandler(Options{Scopes: labelled()})
	for _, target := range []string{"/scopes", "/v1alpha1/scopes", "/v1alpha1/scopes?limit=3", "/v1alpha1/scopes?health=unknown"} {
		p, _ := getPage(t, h, target)
		var want strings.Builder
		for _, item := range p.Items {
			want.WriteString(item.Namespace + "/" + item.Name + " " + item.Health + "\n")
			for _, prefix := range []string{"/scopes/", "/v1alpha1/scopes/"} {
				one := prefix + item.Namespace + "/" + item.Name
				if text := get(t, h, one, http.Header{"Accept": {typeText}}).Body.String(); text != item.Health+"\n" {
					t.Errorf("%s: JSON has %q, text %q", one, item.Health, text)
				}
			}
		}
		if text := get(t, h, target, http.Header{"Accept": {typeText}}).Body.String(); text != want.String() {
			t.Errorf("%s: JSON has %q, text %q", target, want.String(), text)
		}
	}
}

func TestStreamOfSelectedScopes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scopes := newChanging(labelled())
		l := listen(t, Options{Scopes: scopes}, "/v1alpha1/scopes?labelSelector=tier&health=healthy&watch=true", nil)
		if got := expect[ScopePage](t, l, "snapshot"); namesOf(got.Items) != "telco/web" {
			t.Errorf("snapshot %+v", got)
		}
		well := wellScope("telco", "lost", 0)
		scopes.set("telco", "lost", &well) // Without its label, it is not selected.
		well.Labels = labels.Set{"tier": "core"}
		scopes.set("telco", "lost", well.DeepCopy())
		if got := expect[ScopeItem](t, l, "scope"); got.Name != "lost" {
			t.Errorf("it is healthy now: %+v", got)
		}
		ill := broken()
		ill.Namespace, ill.Name, ill.Labels = "telco", "lost", maps.Clone(well.Labels)
		scopes.set("telco", "lost", &ill)
		if got := expect[ScopeName](t, l, "deleted"); got != (ScopeName{Namespace: "telco", Name: "lost"}) {
			t.Errorf("it is not healthy any more: %+v", got)
		}
	})
}
