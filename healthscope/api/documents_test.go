package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// The subjects of the tests: a group with a running instance and an instance whose context no longer exists, a group without
// instances, and a cluster with its network intents.
const (
	groupURL   = "/v2/projects/retail/composite-apps/shop/v2/deployment-intent-groups/autumn"
	autumnURL  = groupURL + "/status"
	winterURL  = "/v2/projects/retail/composite-apps/shop/v2/deployment-intent-groups/winter/status"
	networkURL = "/v2/cluster-providers/west/clusters/bonn/status"
	autumnID   = "5127746093381250097"
	goneID     = "2204310587736190422"
	networkID  = "7741902256340018863"
)

// etcdKeys holds the keys and raw values of a context.
type etcdKeys map[string]string

// put adds an app in a cluster to the context, with one resource in a state, and with the saved bundle unless bundle is empty.
func (k etcdKeys) put(id, app, cluster, resource, body, state, bundle string) etcdKeys {
	at := "/context/" + id + "/"
	quote := strconv.Quote // For the texts of the tests, the result is the same as in JSON.
	k[at] = quote(id)
	k[at+"status/"] = `{"Status":"Instantiated"}`
	k[at+"app/"+app+"/"] = quote(app)
	k[at+"app/"+app+"/cluster/"+cluster+"/"] = quote(cluster)
	k[at+"app/"+app+"/cluster/"+cluster+"/resource/"+resource+"/"] = quote(body)
	k[at+"app/"+app+"/cluster/"+cluster+"/resource/"+resource+"/status/"] = `{"Status":"` + state + `"}`
	if bundle != "" {
		k[at+"app/"+app+"/cluster/"+cluster+"/status/"] = quote(bundle)
	}
	return k
}

func (k etcdKeys) snapshot(t testing.TB) *appcontext.Snapshot {
	t.Helper()
	values := map[string][]byte{}
	for key, value := range k {
		values[key] = []byte(value)
	}
	s, err := appcontext.NewSnapshot(7, values)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: store\n"

// savedWeb is the status of a bundle as EMCO's rsync saves it.
const savedWeb = `{"ready":true,"resourceCount":1,"deploymentStatuses":[{"metadata":{"name":"web","namespace":"store"},"spec":{"replicas":1},"status":{"replicas":1,"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1}}]}`

// memoryContexts is a Contexts with a few subjects.
type memoryContexts struct {
	mu    sync.Mutex
	views map[appcontext.DeploymentRef]appcontext.View
	// age is the time since the last response of etcd.
	age   time.Duration
	err   error
	asked int
}

func (m *memoryContexts) View(_ context.Context, subject appcontext.DeploymentRef, instance string) (appcontext.View, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	view := m.views[subject]
	view.AsOf = time.Now().Add(-m.age)
	switch {
	case m.err != nil:
		return appcontext.View{}, m.err
	case instance == goneID && slices.Contains(view.Contexts, goneID):
		view.ContextID, view.Context, view.StatusContext = goneID, nil, nil
	case instance != "" && instance != view.ContextID:
		return appcontext.View{AsOf: view.AsOf}, fmt.Errorf("No state information for %s: %w", instance, appcontext.ErrNotFound)
	}
	return view, nil
}

// memoryClusters is a Clusters that observes some bundles, by cluster and name.
type memoryClusters struct {
	seen      map[[2]string]Observation
	instances map[string][]Observation
	// unread are the clusters that have never been read.
	unread []string
}

func (m memoryClusters) Bundle(cluster, name, _ string) (Observation, bool) {
	s, ok := m.seen[[2]string{cluster, name}]
	if cluster == "west+away" || cluster == "west+former" {
		return Observation{Report: status.Report{Unreachable: true, Reason: healthscope.ReasonClusterUnreachable, Message: "no answer"}}, false
	}
	return s, ok
}

func (m memoryClusters) Instance(id string) (found []Observation, unread []string) {
	return slices.Clone(m.instances[id]), m.unread
}

// observationOf returns the observation of a bundle with a Deployment. whole is true if the whole bundle can be read.
func observationOf(cluster string, state healthscope.State, whole bool) Observation {
	r := healthscope.Result{
		Key:     healthscope.Key{Cluster: cluster, Group: "apps", Kind: "Deployment", Namespace: "store", Name: "web"},
		Version: "v1", State: state, Since: time.Now().Add(-time.Hour),
	}
	if state == healthscope.Failed {
		r.Reason, r.Message = "CrashLoopBackOff", "it crashes"
	}
	judgement := healthscope.Judge([]healthscope.Result{r}, healthscope.Policy{}, time.Now())
	s := Observation{Report: status.Report{Members: judgement.Members, Observed: true, LastSeen: time.Now()}}
	s.Read = func(context.Context) (*status.Bundle, error) {
		if !whole {
			return nil, errors.New("no answer")
		}
		return status.DecodeBundle(cluster, savedWeb, nil), nil
	}
	return s
}

// fixtures returns the contexts and clusters of the tests.
func fixtures(t testing.TB) (*memoryContexts, memoryClusters) {
	t.Helper()
	autumn := etcdKeys{
		"/context/" + autumnID + "/meta/":                                  `{"CompositeProfile":"small","ChildContextIDs":["1"]}`,
		"/context/" + autumnID + "/app/web/cluster/west+away/readystatus/": `"Retrying"`,
	}.
		put(autumnID, "web", "west+bonn", "web+Deployment", deployment, "Applied", "").
		put(autumnID, "web", "west+berlin", "web+Deployment", deployment, "Applied", savedWeb).
		put(autumnID, "web", "west+away", "web+Deployment", deployment, "Applied", "").
		put(autumnID, "web", "west+former", "web+Deployment", deployment, "Applied", savedWeb).
		put(autumnID, "web", "west+lost", "web+Deployment", deployment, "Applied", "").
		put(autumnID, "broken", "west+bonn", "x+ConfigMap", ": no object", "Failed", "").snapshot(t)
	network := etcdKeys{}.put(networkID, "network-intents", "west+bonn", "net+Network", "apiVersion: k8s.plugin.opnfv.org/v1alpha1\nkind: Network\n", "Applied", "").snapshot(t)
	when := time.Date(2026, 3, 2, 8, 58, 21, 186e6, time.UTC)
	group, winter, cluster := appcontext.GroupRef("retail", "shop", "v2", "autumn"), appcontext.GroupRef("retail", "shop", "v2", "winter"), appcontext.ClusterRef("west", "bonn")
	contexts := &memoryContexts{views: map[appcontext.DeploymentRef]appcontext.View{
		group: {
			Info:     appcontext.StateInfo{Actions: []appcontext.Action{{State: "Created", Time: when}, {State: "Instantiated", ContextID: autumnID, Time: when.Add(time.Hour)}}},
			Contexts: []string{goneID, autumnID}, ContextID: autumnID, Context: autumn, StatusContext: autumn,
		},
		winter:  {Info: appcontext.StateInfo{Actions: []appcontext.Action{{State: "Created", Time: when}}}},
		cluster: {Contexts: []string{networkID}, ContextID: networkID, Context: network, StatusContext: network},
	}}
	lost := observationOf("west+lost", healthscope.Ready, false)
	lost.Members = healthscope.MarkUnreachable(lost.Members, healthscope.ReasonClusterUnreachable, "no answer", time.Now())
	lost.Unreachable, lost.Reason, lost.Read = true, healthscope.ReasonClusterUnreachable, nil
	failed := observationOf("west+bonn", healthscope.Failed, true)
	failed.Truncated, failed.Unlisted = true, healthscope.Summary{Total: 1, Ready: 1}
	failed.Members[0].Cause = "Pod web-0: exit code 1"
	failed.Namespace = "store"
	return contexts, memoryClusters{
		seen:      map[[2]string]Observation{{"west+bonn", autumnID + "-web"}: failed, {"west+lost", autumnID + "-web"}: lost},
		instances: map[string][]Observation{"gentle-fox": {failed}, "lost-fox": {lost}, "empty-fox": {{}}},
	}
}

func manyDocuments(t testing.TB) *Documents {
	t.Helper()
	contexts, clusters := fixtures(t)
	return NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: clusters, Policy: healthscope.DefaultPolicy()})
}

func requestsForDocuments(t testing.TB) map[string]request {
	t.Helper()
	const group, cluster, instance = "/v2/projects/{project}/composite-apps/{app}/{version}/deployment-intent-groups/{group}/status", "/v2/cluster-providers/{provider}/clusters/{cluster}/status", "/v1/instance/{id}/status"
	away := NewDocuments(DocumentsOptions{Contexts: &memoryContexts{err: fmt.Errorf("cannot read status: %w", appcontext.ErrUnavailable)}, Clusters: memoryClusters{}})
	malformed := NewDocuments(DocumentsOptions{Contexts: &memoryContexts{err: fmt.Errorf("cannot read status: %w", appcontext.ErrMalformed)}, Clusters: memoryClusters{}})
	old, clusters := fixtures(t)
	old.age = time.Minute
	stale := NewDocuments(DocumentsOptions{Contexts: old, Clusters: clusters})
	silent := NewDocuments(DocumentsOptions{Contexts: &memoryContexts{age: time.Minute}, Clusters: memoryClusters{}})
	unconfigured := NewDocuments(DocumentsOptions{Clusters: memoryClusters{}})
	broken := NewDocuments(DocumentsOptions{})
	unread := NewDocuments(DocumentsOptions{Clusters: memoryClusters{unread: []string{"east+tokyo"}, instances: map[string][]Observation{"gentle-fox": {observationOf("west+bonn", healthscope.Ready, true)}}}})
	all := map[string]request{
		"instance that nobody fills":     {path: instance, target: "/v1/instance/empty-fox/status", want: 200},
		"group":                          {path: group, want: 200},
		"group with health":              {path: group, target: autumnURL + "?health=true&type=all", want: 200},
		"group in detail":                {path: group, target: autumnURL + "?output=full", want: 200},
		"group, nothing matches":         {path: group, target: autumnURL + "?app=a&cluster=a%2Bb&resource=c&resource=d&type=cluster", want: 200},
		"group, instances":               {path: group, target: autumnURL + "?instance", want: 200},
		"group, instance":                {path: group, target: autumnURL + "?instance=" + autumnID, want: 200},
		"group, instance gone":           {path: group, target: autumnURL + "?instance=" + goneID, want: 200},
		"group, instance of none":        {path: group, target: autumnURL + "?instance=99", want: 404, detail: `query parameter "instance" has the value "99", which is none of its instances; without a value, instance lists them`},
		"group before its first":         {path: group, target: winterURL, want: 200},
		"group that is none":             {path: group, target: strings.Replace(autumnURL, "autumn", "spring", 1), want: 404, detail: `nothing is known of deployment intent group "retail/shop/v2/spring"`},
		"group of bad name":              {path: group, target: strings.Replace(autumnURL, "autumn", "a%2Fb", 1), want: 400, detail: `parameter "group" has the value "a/b"`},
		"group of dots":                  {path: group, target: strings.Replace(autumnURL, "retail", "%2e%2e", 1), want: 400, detail: `parameter "project" has the value ".."`},
		"group of long name":             {path: group, target: strings.Replace(autumnURL, "shop", strings.Repeat("x", 254), 1), want: 400, detail: `parameter "app" has the value "xxx`},
		"group with bad type":            {path: group, target: autumnURL + "?type=both", want: 400, detail: `query parameter "type" with value "both" cannot be used; allowed: rsync, cluster, all`},
		"group with bad cluster":         {path: group, target: autumnURL + "?cluster=west+bonn", want: 400, detail: `<provider>+<cluster>, where + is sent as %2B`},
		"group with unknown parameter":   {path: group, target: autumnURL + "?namespace=a", want: 400, detail: `unknown query parameter "namespace" with value "a"; this path takes ["app" "apps" "cluster" "clusters" "dialect" "health" "instance" "output" "resource" "resources" "status" "type"]`},
		"group with parameter of EMCO":   {path: group, target: autumnURL + "?status=ready", want: 400, detail: `query parameter "status" with value "ready" is one of EMCO 22.12; allowed: it, with dialect=22.12`},
		"group with type twice":          {path: group, target: autumnURL + "?type=rsync&type=cluster", want: 400, detail: `query parameter "type" with value "rsync,cluster" is given 2 times`},
		"group known":                    {path: group, header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"group without etcd":             {path: group, from: unconfigured, want: 503, detail: "the server's configuration has no section appContext"},
		"group with etcd away":           {path: group, from: away, want: 503, detail: "cannot read the AppContexts in etcd: cannot read status: Etcd is not available"},
		"group unknown before etcd went": {path: group, from: silent, want: 503, detail: "etcd has not answered since"},
		"instance unknown before":        {path: group, target: autumnURL + "?instance=99", from: silent, want: 503, detail: "nothing was known of it then"},
		"group that cannot be read":      {path: group, from: malformed, want: 500, detail: "Stored value cannot be read"},

		"cluster":                {path: cluster, want: 200},
		"cluster in detail":      {path: cluster, target: networkURL + "?output=detail", want: 200},
		"cluster that is none":   {path: cluster, target: "/v2/cluster-providers/west/clusters/ulm/status", want: 404, detail: `nothing is known of the network intents of cluster "west/ulm"`},
		"cluster of bad name":    {path: cluster, target: "/v2/cluster-providers/west/clusters/%00/status", want: 400, detail: `parameter "cluster"`},
		"cluster known":          {path: cluster, header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"cluster with etcd away": {path: cluster, from: away, want: 503, detail: "Etcd is not available"},
		"cluster, malformed":     {path: cluster, from: malformed, want: 500, detail: "Stored value cannot be read"},

		"EMCO: group":                    {path: group, accept: typeEMCO, want: 200},
		"EMCO: group by parameter":       {path: group, target: autumnURL + "?dialect=22.12", want: 200},
		"EMCO: group, with JSON as well": {path: group, target: autumnURL + "?dialect=22.12", accept: "application/json", want: 200},
		"EMCO: group, how it is":         {path: group, target: autumnURL + "?type=cluster&output=detail", accept: typeEMCO, want: 200},
		"EMCO: group, deployed":          {path: group, target: autumnURL + "?status=deployed", accept: typeEMCO, want: 200},
		"EMCO: group, ready":             {path: group, target: autumnURL + "?status=ready&app=web&cluster=west%2Bberlin&resource=web", accept: typeEMCO, want: 200},
		"EMCO: apps":                     {path: group, target: autumnURL + "?apps", accept: typeEMCO, want: 200},
		"EMCO: clusters":                 {path: group, target: autumnURL + "?clusters=", accept: typeEMCO, want: 200},
		"EMCO: resources":                {path: group, target: autumnURL + "?resources=true", accept: typeEMCO, want: 200},
		"EMCO: group before its first":   {path: group, target: winterURL, accept: typeEMCO, want: 200},
		"EMCO: group known":              {path: group, accept: typeEMCO, header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"EMCO: group that is none":       {path: group, target: strings.Replace(autumnURL, "autumn", "spring", 1), accept: typeEMCO, want: 404, detail: `DeploymentIntentGroup not found: there is neither`},
		"EMCO: cluster that is none":     {path: cluster, target: "/v2/cluster-providers/west/clusters/ulm/status", accept: typeEMCO, want: 404, detail: `Cluster not found: there is neither`},
		"EMCO: bad type":                 {path: group, target: autumnURL + "?type=all&dialect=22.12", want: 400, detail: `Invalid query type: query parameter "type" with value "all"`},
		"EMCO: another dialect":          {path: group, target: autumnURL + "?dialect=21.03", want: 400, detail: `Invalid query dialect: query parameter "dialect" with value "21.03" cannot be used; allowed: 22.12`},
		"EMCO: unknown parameter":        {path: group, target: autumnURL + "?namespace=a", accept: typeEMCO, want: 400, detail: `unknown query parameter "namespace"`},
		"EMCO: unknown app":              {path: group, target: autumnURL + "?app=nosuch", accept: typeEMCO, want: 400, detail: "Filter app nosuch not in list of apps for composite app shop"},
		"EMCO: instance of none":         {path: group, target: autumnURL + "?instance=99", accept: typeEMCO, want: 400, detail: "No state information for 99"},
		"EMCO: apps of a cluster":        {path: cluster, target: networkURL + "?apps", accept: typeEMCO, want: 400, detail: "only for deployment intent groups"},
		"EMCO: cluster":                  {path: cluster, accept: typeEMCO, want: 200},
		"EMCO: cluster, ready":           {path: cluster, target: networkURL + "?status=ready", accept: typeEMCO, want: 200},
		"EMCO: cluster, how it is":       {path: cluster, target: networkURL + "?type=cluster", accept: typeEMCO, want: 200},
		"EMCO: cluster, deployed":        {path: cluster, target: networkURL + "?status=deployed", accept: typeEMCO, want: 200},
		"EMCO: what etcd said before":    {path: group, from: stale, accept: typeEMCO, want: 503, detail: "etcd has not answered since"},
		"EMCO: with etcd away":           {path: group, from: away, accept: typeEMCO, want: 503, detail: "Etcd is not available"},
		"EMCO: not in text":              {path: group, target: autumnURL + "?dialect=22.12", accept: "text/plain", want: 406, detail: "this path can be answered as application/json or application/vnd.emco.v22+json"},
		"EMCO: no path that has it":      {path: instance, accept: typeEMCO, want: 406, detail: "this path can be answered as application/json"},

		"instance":                {path: instance, want: 200},
		"instance that is lost":   {path: instance, target: "/v1/instance/lost-fox/status", want: 200},
		"instance that is none":   {path: instance, target: "/v1/instance/odd-fox/status", want: 404, detail: `no ResourceBundleState that can be seen has the label k8splugin.io/rb-instance-id=odd-fox`},
		"instance of bad name":    {path: instance, target: "/v1/instance/-/status", want: 400, detail: `parameter "id" has the value "-"`},
		"instance with parameter": {path: instance, target: "/v1/instance/gentle-fox/status?full=true", want: 400, detail: `unknown query parameter "full"`},
		"instance known":          {path: instance, header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"instance too early":      {path: instance, ready: func() error { return errors.New("the bundles have not been read yet") }, want: 503, detail: "the bundles have not been read yet"},
		"instance, partly unread": {path: instance, from: unread, want: 200},
		"instance, maybe unread":  {path: instance, target: "/v1/instance/odd-fox/status", from: unread, want: 503, detail: `nothing is known of instance "odd-fox", and it may be in a cluster that has not been read yet: east+tokyo`},
		"instance panics":         {path: instance, from: broken, want: 500, detail: "its log says how"},
	}
	return all
}

// document requests a document, and decodes it.
func document(t *testing.T, d *Documents, target string) status.Document {
	t.Helper()
	got := get(t, NewHandler(Options{Documents: d}), target, nil)
	var decoded status.Document
	if err := json.Unmarshal(got.Body.Bytes(), &decoded); err != nil || got.Code != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", target, got.Code, err, got.Body)
	}
	return decoded
}

// clustersOf returns the clusters of an app in a document, by name.
func clustersOf(t *testing.T, d status.Document, app string) map[string]status.Cluster {
	t.Helper()
	found := map[string]status.Cluster{}
	for _, a := range d.Apps {
		for _, c := range a.Clusters {
			if a.Name == app {
				found[c.Name] = c
			}
		}
	}
	return found
}

func TestDocumentsSayWhereWhatTheyShowComesFrom(t *testing.T) {
	clusters := clustersOf(t, document(t, manyDocuments(t), autumnURL+"?health=true&type=all"), "web")
	want := map[string]struct{ state, reason, last, source string }{
		"bonn":   {"Failed", "CrashLoopBackOff", "", ""},
		"berlin": {"Ready", "", "", "context"},
		"away":   {"Unknown", string(healthscope.ReasonClusterUnreachable), "", ""},
		"former": {"Unknown", string(healthscope.ReasonClusterUnreachable), "Ready", "context"},
		"lost":   {"Unknown", string(healthscope.ReasonClusterUnreachable), "Ready", ""},
	}
	for name, tt := range want {
		c := clusters[name]
		if len(c.Resources) != 1 || c.Source != tt.source {
			t.Errorf("%s: %+v, want %+v", name, c, tt)
		} else if h := c.Resources[0].Health; h.State != tt.state || h.Reason != tt.reason || h.LastState != tt.last {
			t.Errorf("%s: %+v, want %+v", name, h, tt)
		}
	}
}

func TestDetailIsReadFromTheCluster(t *testing.T) {
	clusters := clustersOf(t, document(t, manyDocuments(t), autumnURL+"?output=detail&type=cluster"), "web")
	for name, want := range map[string]bool{"bonn": true, "berlin": true, "away": false, "lost": false} {
		if got := len(clusters[name].Resources[0].Detail) > 0; got != want {
			t.Errorf("%s has detail: %t, want %t", name, got, want)
		}
	}
}

// TestWholeObjectsHaveALimit asserts that at most maxDetail responses with whole objects are made at once, and that requests that wait for them
// do not block others: when many wait, the next one fails at once, as does one that waits too long, and all other requests get a response.
func TestWholeObjectsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		contexts, clusters := fixtures(t)
		var begun atomic.Int64
		over := make(chan struct{})
		held := observationOf("west+bonn", healthscope.Ready, true)
		held.Read = func(context.Context) (*status.Bundle, error) {
			begun.Add(1)
			<-over
			return nil, errors.New("no answer")
		}
		clusters.instances["held-fox"] = []Observation{held}
		h := NewHandler(Options{Scopes: manyScopes(), Documents: NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: clusters})})
		targets := []string{"/v1/instance/held-fox/status", autumnURL + "?output=detail"}
		var asking sync.WaitGroup
		defer asking.Wait()
		defer close(over)
		for i := range maxDetail + maxWaiting {
			target := targets[0]
			if i >= maxDetail { // Requests for both documents wait for the same tokens.
				target = targets[i%2]
			}
			asking.Go(func() {
				if got := get(t, h, target, nil); got.Code != http.StatusOK {
					t.Errorf("%s: status %d, %s", target, got.Code, got.Body)
				}
			})
			synctest.Wait()
			if i != maxDetail-1 {
				continue
			}
			for _, target := range targets { // These wait too long.
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				got := serve(h, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+target, http.NoBody))
				checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "are being made already")
				cancel()
			}
		}
		if begun.Load() != maxDetail {
			t.Errorf("%d answers read whole bundles, want %d", begun.Load(), maxDetail)
		}
		for _, target := range targets {
			got := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+target, http.NoBody)
			asking.Go(func() { h.ServeHTTP(got, r) })
			synctest.Wait() // The response must not depend on time, which does not advance here.
			checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "are being made already")
		}
		for _, target := range []string{"/scopes", autumnURL} {
			if got := get(t, h, target, nil); got.Code != http.StatusOK {
				t.Errorf("%s: status %d, %s", target, got.Code, got.Body)
			}
		}
	})
}

func TestWhatEtcdHasNotConfirmedIsShownWithItsAge(t *testing.T) {
	contexts, clusters := fixtures(t)
	d := NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: clusters})
	if got := document(t, d, autumnURL); got.LastSeen != "" {
		t.Errorf("current, and last-seen is %q", got.LastSeen)
	}
	contexts.age = time.Minute
	if got := document(t, d, autumnURL); got.LastSeen == "" {
		t.Error("a minute old, and the document does not say so")
	}
}

// TestKeptAnswersHold asserts that a cached response is reused until a change of its history or its context, and not after it.
func TestKeptAnswersHold(t *testing.T) {
	contexts, clusters := fixtures(t)
	d := NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: clusters})
	h := NewHandler(Options{Documents: d})
	group := appcontext.GroupRef("retail", "shop", "v2", "autumn")
	tag := func() string { t.Helper(); return get(t, h, autumnURL, nil).Header().Get("ETag") }
	first := tag()
	if again := tag(); again != first {
		t.Errorf("nothing has changed, and the tag is %s instead of %s", again, first)
	}
	changes := map[string]func(*appcontext.View){
		"a history": func(v *appcontext.View) {
			v.Info.Actions = append(slices.Clone(v.Info.Actions), appcontext.Action{State: "Terminated", ContextID: autumnID, Time: time.Now()})
		},
		"a resource": func(v *appcontext.View) {
			v.Context = etcdKeys{}.put(autumnID, "web", "west+bonn", "web+Deployment", deployment, "Failed", "").snapshot(t)
			v.StatusContext = v.Context
		},
	}
	for what, change := range changes {
		before := contexts.views[group]
		changed := before
		change(&changed)
		contexts.views[group] = changed
		if got := tag(); got == first {
			t.Errorf("%s has changed, and the answer has not", what)
		}
		contexts.views[group] = before
		if got := tag(); got != first {
			t.Errorf("%s is as before, and the answer is not", what)
		}
	}
}

// oneRule is a user rule that gives its state to every Deployment. Without a state, it matches nothing.
type oneRule struct{ state healthscope.State }

func (r *oneRule) Covers(_, kind string) bool { return r.state != "" && kind == "Deployment" }

func (r *oneRule) Evaluate(map[string]any) (result healthscope.Result, rule string, matched bool) {
	return healthscope.Result{State: r.state}, "one", r.state != ""
}

// TestDocumentsForManyCallers asserts that all concurrent callers get the right response.
func TestDocumentsForManyCallers(t *testing.T) {
	h := NewHandler(Options{Documents: manyDocuments(t)})
	targets := []string{autumnURL, autumnURL + "?output=summary", autumnURL + "?output=detail", networkURL, autumnURL + "?instance=" + goneID}
	want := map[string]string{}
	for _, target := range targets {
		want[target] = get(t, h, target, nil).Body.String()
	}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			for n := range 20 {
				target := targets[(i+n)%len(targets)]
				if got := get(t, h, target, nil).Body.String(); got != want[target] {
					t.Errorf("%s: %s, want %s", target, got, want[target])
				}
			}
		})
	}
	group.Wait()
}

func TestUserRulesCountForSavedBundles(t *testing.T) {
	contexts, clusters := fixtures(t)
	user := &oneRule{}
	d := NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: clusters, HealthChecks: user})
	state := func() string {
		t.Helper()
		return clustersOf(t, document(t, d, autumnURL+"?health=true&type=all"), "web")["berlin"].Resources[0].Health.State
	}
	if got := state(); got != "Ready" {
		t.Fatalf("state %s without a rule", got)
	}
	user.state = healthscope.Failed
	d.Reset()
	if got := state(); got != "Failed" {
		t.Errorf("state %s with a rule that says Failed", got)
	}
}
