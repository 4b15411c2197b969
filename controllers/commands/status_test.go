package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/api"
)

func TestStatusPrintsTables(t *testing.T) {
	t.Parallel()
	h := newStatusHub(t)
	h.state = healthscope.Failed
	for subject, c := range map[string]struct {
		code int
		want string
	}{
		autumn: {exitNo, `
deployment intent group retail/shop/v2/autumn: Instantiated
Failed (CrashLoopBackOff) for 60m: Deployment/web of web in west+bonn: it crashes [2J
0 of 2 resources are ready, 0 pending, 1 failed, 1 unknown
rsync: 2 Applied
clusters: 1 Present, 1 Unknown

APP   CLUSTER       RESOURCE         NAMESPACE   STATE     REASON               AGE   RSYNC     MESSAGE
web   west+berlin   Deployment/web   store       Unknown   ClusterUnreachable   -     Applied   no answer
web   west+bonn     Deployment/web   store       Failed    CrashLoopBackOff     60m   Applied   it crashes [2J
`},
		"vfw": {exitNo, `
HealthScope default/vfw: unhealthy, Failed (MembersFailed)
1 of 2 resources are not healthy
1 of 2 resources are ready, 0 pending, 1 failed, 0 unknown; 1/2 clusters can be seen

APP    CLUSTER       STATE     READY   LAST SEEN
sink   west+bonn     Ready     2/2     now
sink   west+berlin   Unknown   0/0     120m ago

APP    CLUSTER     RESOURCE         NAMESPACE   STATE    REASON             AGE    CAUSE
sink   west+bonn   Deployment/fw0   default     Failed   CrashLoopBackOff   120m   Pod fw0-0: exit code 1
`},
		"shop/web": {exitOK, `
HealthScope shop/web: healthy, Ready
all is well
2 of 2 resources are ready, 0 pending, 0 failed, 0 unknown; 2/2 clusters can be seen

APP    CLUSTER     STATE   READY   LAST SEEN
sink   west+bonn   Ready   2/2     now
`},
		"": {exitNo, `
NAMESPACE   NAME   HEALTH      STATE    READY   CLUSTERS   REASON          FIRST CULPRIT
default     vfw    unhealthy   Failed   1/2     1/2        MembersFailed   Deployment/fw0 in west+bonn: CrashLoopBackOff
shop        web    healthy     Ready    2/2     2/2        Healthy         -
`},
	} {
		args := []string{subject}
		if subject == "" {
			args = nil
		}
		code, out, errOut := runStatus(t, h.URL, args...)
		if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), out); diff != "" || code != c.code || errOut != "" {
			t.Errorf("%q: exit code %d, want %d, %s\n-want +got:\n%s", subject, code, c.code, errOut, diff)
		}
	}
}

func TestStatusPrintsTheDocumentAsItIsServed(t *testing.T) {
	t.Parallel()
	h := newStatusHub(t)
	for subject, path := range map[string]string{
		autumn: autumnURL + "?output=all&type=rsync", bonn: "/v2/cluster-providers/west/clusters/bonn/status?output=all&type=rsync", "default/vfw": "/scopes/default/vfw", "vfw": "/scopes/vfw",
	} {
		response, err := http.Get(h.URL + path) //nolint:noctx // The server is the test's.
		if err != nil {
			t.Fatal(err)
		}
		served, err := io.ReadAll(response.Body)
		if err != nil || response.Body.Close() != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %s", path, err, served)
		}
		args := []string{subject}
		if strings.Contains(path, "?") {
			args = append(args, "--detail", "all", "--health=false", "--type", "rsync")
			served = []byte(strings.ReplaceAll(string(served), "\n", ""))
		}
		_, out, errOut := runStatus(t, h.URL, append(args, "-o", "json")...)
		if strings.TrimSpace(out) != strings.TrimSpace(string(served)) {
			t.Errorf("%s: want %s, got %s%s", subject, served, out, errOut)
		}
		_, out, _ = runStatus(t, h.URL, append(args, "-o", "yaml")...)
		if back, err := yaml.YAMLToJSON([]byte(out)); err != nil || !sameJSON(t, back, served) {
			t.Errorf("%s: want %s, got %s", subject, served, out)
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(x, y)
}

func TestStatusQueries(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		autumnURL + "?health=true&output=small": {autumn},
		autumnURL + "?app=web&app=db&cluster=west+bonn&health=true&output=full&resource=web&type=cluster": {
			autumn, "--app", "web", "--app", "db", "--cluster", "west+bonn", "--resource", "web", "--type", "cluster", "--detail", "full",
		},
		autumnURL + "?health=true&instance=" + autumnID + "&output=summary": {autumn, "--instance", autumnID, "--detail", "summary"},
		autumnURL + "?instance=": {autumn, "--instances"},
		"/v2/cluster-providers/west/clusters/bonn/status?health=true&output=small": {bonn},
		"/scopes?namespace=shop": {"-n", "shop"},
		"/scopes/shop/web":       {"shop/web"},
	} {
		h := newStatusHub(t)
		code, _, errOut := runStatus(t, h.URL, args...)
		if got := h.asked(); code == exitUsage || !slices.Equal(got, []string{want}) {
			t.Errorf("%q: exit code %d, want %q, got %q, %s", args, code, want, got, errOut)
		}
	}
}

func TestStatusOutput(t *testing.T) {
	t.Parallel()
	h := newStatusHub(t)
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{autumn, "--instances"}, exitOK, []string{autumnID}},
		{[]string{autumn, "--app", "nothing"}, exitUnknown, []string{"! --app matches nothing: nothing", "NoMatch"}},
		{[]string{autumn, "--detail", "summary", "--cluster", bonn}, exitOK, []string{"Ready", "1 of 1 resources are ready", "rsync: 1 Applied"}},
		{[]string{autumn, "--health=false", "--detail", "all"}, exitOK, []string{"RSYNC   ", "Deployment/web   Applied"}},
		{[]string{"-n", "empty"}, exitOK, []string{"There are no HealthScopes."}},
	} {
		code, out, errOut := runStatus(t, h.URL, c.args...)
		for _, want := range c.want {
			if code != c.code || !strings.Contains(out, want) {
				t.Errorf("%q: exit code %d, want %d and %q, got:\n%s%s", c.args, code, c.code, want, out, errOut)
			}
		}
	}
}

func TestStatusNotesOldData(t *testing.T) {
	t.Parallel()
	h := newStatusHub(t)
	const note = "! what is oldest in this answer was known last 60m ago"
	for _, args := range [][]string{{autumn}, {autumn, "--cluster", bonn, "--detail", "summary"}, {autumn, "--health=false", "--detail", "all"}} {
		h.set("", "", func() { h.silent = 0 })
		if _, out, errOut := runStatus(t, h.URL, args...); out == "" || strings.Contains(out, "!") {
			t.Errorf("%q: all is current, got:\n%s%s", args, out, errOut)
		}
		h.set("", "", func() { h.silent = time.Hour + 30*time.Second })
		if _, out, errOut := runStatus(t, h.URL, args...); !strings.Contains(out, note) {
			t.Errorf("%q: etcd does not answer, want %q, got:\n%s%s", args, note, out, errOut)
		}
	}
}

func TestStatusErrors(t *testing.T) {
	t.Parallel()
	h := newStatusHub(t)
	alive := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(alive.Close)
	near, err := net.Dial("tcp", alive.Listener.Addr().String()) //nolint:noctx // It is there.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	dead := &httptest.Server{URL: "http://" + near.LocalAddr().String()} // The port refuses connections, and stays reserved until the test ends.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/away/") {
			http.Redirect(w, r, h.URL+"/scopes", http.StatusFound)
			return
		}
		_, _ = w.Write([]byte("<html>Welcome</html>"))
	}))
	t.Cleanup(elsewhere.Close)
	held := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held }))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(held) })
	token := writeFile(t, "token", "two words")
	for _, c := range []struct {
		server string
		code   int
		args   []string
		want   string
	}{
		{h.URL, exitUnknown, []string{"shop/none"}, `cannot get the status of HealthScope shop/none: Not Found (404): there is no HealthScope "none" in namespace "shop"`},
		{h.URL, exitUnknown, []string{"retail/shop/v2/winter"}, `Not Found (404): nothing is known of deployment intent group`},
		{h.URL, exitUsage, []string{autumn, "--type", "odd"}, `Bad Request (400): query parameter "type" with value "odd" cannot be used; allowed: rsync, cluster, all`},
		{h.URL, exitUnknown, []string{autumn, "--instance", "1"}, `query parameter "instance" has the value`},
		{h.URL, exitUsage, []string{"a/../v/g"}, "is no subject"},
		{h.URL, exitUsage, []string{"west+"}, "is no subject"},
		{h.URL, exitUsage, []string{"a", "b"}, "accepts at most 1 arg"},
		{h.URL, exitUsage, []string{"vfw", "--app", "a"}, "--app is given; it is for deployment intent groups and clusters, and not for HealthScope vfw"},
		{h.URL, exitUsage, []string{autumn, "-n", "shop"}, "--namespace is given; it is for HealthScopes, and not for deployment intent group"},
		{h.URL, exitUsage, []string{autumn, "--instances", "--app", "a"}, "--app is given; it cannot be together with --instances"},
		{h.URL, exitUsage, []string{"-o", "xml"}, `--output is "xml"; it must be table, json or yaml`},
		{h.URL, exitUsage, []string{"--interval", "1ms"}, "--interval is 1ms; it must be 1s or more"},
		{h.URL, exitUsage, []string{"--timeout", "0s"}, "--timeout is 0s"},
		{"ftp://hub", exitUsage, nil, "--server must be an http or https URL"},
		{"http://me:secret@hub", exitUsage, nil, "--server must be scheme, host, port and path only"},
		{"http://hub.example.com", exitUsage, []string{"--token-file", "../../LICENSE"}, "must hold one token and nothing else"},
		{h.URL, exitUsage, []string{"--token-file", token}, "must hold one token and nothing else"},
		{h.URL, exitUsage, []string{"--token-file", "nothing"}, "cannot read --token-file"},
		{h.URL, exitUsage, []string{"--ca-file", token}, "it holds no certificate"},
		{dead.URL, exitUnknown, nil, "cannot ask the server at " + dead.URL + ": "},
		{elsewhere.URL, exitUnknown, nil, "the answer is not a status document"},
		{elsewhere.URL + "/away", exitUnknown, nil, "the server answers 302 Found without a message"},
		{slow.URL, exitUnknown, []string{"--timeout", "50ms"}, "no answer within 50ms; increase --timeout"},
	} {
		code, out, errOut := runStatus(t, c.server, c.args...)
		if code != c.code || out != "" || !strings.Contains(errOut, c.want) || strings.Contains(errOut, "secret") {
			t.Errorf("%s %q: want exit code %d and %q, got %d, %s%s", c.server, c.args, c.code, c.want, code, out, errOut)
		}
	}
}

func TestStatusSendsToken(t *testing.T) {
	t.Parallel()
	h := newStatusHub(t)
	h.tokens = []string{"friend", "stranger"}
	config := func(user string) string {
		return writeFile(t, "kubeconfig", `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],
			"clusters":[{"name":"k","cluster":{"server":"https://nobody.example.com"}}],"users":[{"name":"u","user":`+user+`}]}`)
	}
	friend := writeFile(t, "token", "friend\n")
	for _, c := range []struct {
		server string
		args   []string
		code   int
		want   string
	}{
		{h.URL, nil, exitUnknown, "Unauthorized (401)"},
		{h.URL, nil, exitUnknown, "give a token with --token-file, --kubeconfig or --context"},
		{h.URL, []string{"--token-file", writeFile(t, "token", "unknown")}, exitUnknown, "Unauthorized (401)"},
		{h.URL, []string{"--token-file", writeFile(t, "token", "stranger")}, exitUnknown, "Forbidden (403)"},
		{h.URL, []string{"--token-file", friend}, exitNo, ""},
		{h.URL, []string{"--kubeconfig", config(`{"token":"friend"}`)}, exitNo, ""},
		{h.URL, []string{"--kubeconfig", config(`{"username":"a","password":"b"}`)}, exitUsage, "cannot find a token: the context of the kubeconfig file has another way to authenticate"},
		{h.URL, []string{"--kubeconfig", config(`{"token":"friend"}`), "--token-file", friend}, exitUsage, "one of them must say which token to use"},
		{"http://hub.example.com", []string{"--token-file", friend}, exitUsage, "a token must not go over the network in the clear"},
	} {
		code, _, errOut := runStatus(t, c.server, c.args...)
		if code != c.code || !strings.Contains(errOut, c.want) || strings.Contains(errOut, "friend") {
			t.Errorf("%q: want exit code %d and %q, got %d, %s", c.args, c.code, c.want, code, errOut)
		}
	}
}

// Scopes without the field come first, then numbers by their value, then texts; what is equal is sorted by name.
func TestStatusSortsByAField(t *testing.T) {
	t.Parallel()
	source := &scopeSource{statusCommand: &statusCommand{sortBy: ".field"}, sortKey: jsonpath.New("sort-by").AllowMissingKeys(true)}
	if err := source.sortKey.Parse("{.field}"); err != nil {
		t.Fatal(err)
	}
	var scopes []unstructured.Unstructured
	for name, value := range map[string]any{"a": "x", "b": int64(10), "c": int64(9), "d": 9.5, "e": nil, "f": "10", "g": nil, "h": true, "i": int64(9)} {
		o := unstructured.Unstructured{Object: map[string]any{"field": value}}
		if value == nil {
			o.Object = map[string]any{}
		}
		o.SetName(name)
		scopes = append(scopes, o)
	}
	var names []string
	err := source.sort(scopes)
	for i := range scopes {
		names = append(names, scopes[i].GetName())
	}
	if got := strings.Join(names, ""); err != nil || got != "egcidbfha" {
		t.Errorf("got %s, error %v", got, err)
	}
}

func TestColoursAreForStates(t *testing.T) {
	t.Parallel()
	list := scopeList("Failed", "Ready")
	plain, coloured := (&statusCommand{}).scopesPage(list).String(), (&statusCommand{colour: true}).scopesPage(list).String()
	if strings.Contains(plain, "\x1b") || !strings.Contains(coloured, "\x1b[31mFailed\x1b[0m") || !strings.Contains(coloured, "\x1b[32mReady\x1b[0m") {
		t.Errorf("want colours in the second only: %q, %q", plain, coloured)
	}
	if stripped := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[0m", "").Replace(coloured); stripped != plain {
		t.Errorf("colours have no width: %q, %q", stripped, plain)
	}
}

// scopeList returns scopes in states.
func scopeList(states ...string) (list []api.Scope) {
	for i, state := range states {
		s := scopeIn("default", fmt.Sprintf("s%d", i), true)
		list = append(list, api.Scope{ScopeItem: api.ScopeItem{Name: s.Name, Namespace: s.Namespace, Health: string(corev1alpha2.Healthy), State: state}})
	}
	return list
}
