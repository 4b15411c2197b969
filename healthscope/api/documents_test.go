package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
// instances, a group that does not exist, and a cluster with its network intents.
const (
	groupURL   = "/v2/projects/retail/composite-apps/shop/v2/deployment-intent-groups/autumn"
	autumnURL  = groupURL + "/status"
	winterURL  = "/v2/projects/retail/composite-apps/shop/v2/deployment-intent-groups/winter/status"
	springURL  = "/v2/projects/retail/composite-apps/shop/v2/deployment-intent-groups/spring/status"
	networkURL = "/v2/cluster-providers/west/clusters/bonn/status"
	autumnID   = "5127746093381250097"
	oldID      = "2204310587736190422"
	networkID  = "7741902256340018863"
)

// autumn is the group of autumnURL. Its instance autumnID is running, and oldID is terminated.
var autumn = appcontext.GroupRef("retail", "shop", "v2", "autumn")

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
	views map[appcontext.DeploymentRef]appcontext.View
	// age is the time since the last response of etcd.
	age time.Duration
	err error
}

func (m *memoryContexts) View(_ context.Context, subject appcontext.DeploymentRef, instance string) (appcontext.View, error) {
	view := m.views[subject]
	view.AsOf = time.Now().Add(-m.age)
	switch {
	case m.err != nil:
		return appcontext.View{}, m.err
	case instance == oldID && slices.Contains(view.Contexts, oldID):
		view.ContextID, view.Context, view.StatusContext = oldID, nil, nil
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

// observationOf returns the observation of a bundle with a Deployment.
func observationOf(cluster string, state healthscope.State) Observation {
	r := healthscope.Result{
		Key:     healthscope.Key{Cluster: cluster, Group: "apps", Kind: "Deployment", Namespace: "store", Name: "web"},
		Version: "v1", State: state, Since: time.Now().Add(-time.Hour),
	}
	if state == healthscope.Failed {
		r.Reason, r.Message = "CrashLoopBackOff", "it crashes"
	}
	judgement := healthscope.Judge([]healthscope.Result{r}, healthscope.Policy{}, time.Now())
	return Observation{
		Report: status.Report{Members: judgement.Members, Observed: true, LastSeen: time.Now()},
		Read:   func(context.Context) (*status.Bundle, error) { return status.DecodeBundle(cluster, savedWeb, nil), nil },
	}
}

// fixtures returns the contexts and clusters of the tests.
func fixtures(t testing.TB) (*memoryContexts, memoryClusters) {
	t.Helper()
	instance := etcdKeys{
		"/context/" + autumnID + "/meta/":                                  `{"CompositeProfile":"small","ChildContextIDs":["1"]}`,
		"/context/" + autumnID + "/app/web/cluster/west+away/readystatus/": `"Retrying"`,
	}.
		put(autumnID, "web", "west+bonn", "web+Deployment", deployment, "Applied", savedWeb).
		put(autumnID, "web", "west+berlin", "web+Deployment", deployment, "Applied", savedWeb).
		put(autumnID, "web", "west+away", "web+Deployment", deployment, "Applied", "").
		put(autumnID, "web", "west+former", "web+Deployment", deployment, "Applied", savedWeb).
		put(autumnID, "cache", "west+former", "cache+Deployment", strings.Replace(deployment, "web", "cache", 1), "Applied", savedWeb).
		put(autumnID, "web", "west+lost", "web+Deployment", deployment, "Applied", "").
		put(autumnID, "broken", "west+bonn", "x+ConfigMap", ": no object", "Failed", "").snapshot(t)
	network := etcdKeys{}.put(networkID, "network-intents", "west+bonn", "net+Network", "apiVersion: k8s.plugin.opnfv.org/v1alpha1\nkind: Network\n", "Applied", "").snapshot(t)
	when := time.Date(2026, 3, 2, 8, 58, 21, 186e6, time.UTC)
	contexts := &memoryContexts{views: map[appcontext.DeploymentRef]appcontext.View{
		autumn: {
			Info:     appcontext.StateInfo{Actions: []appcontext.Action{{State: "Created", Time: when}, {State: "Instantiated", ContextID: autumnID, Time: when.Add(time.Hour)}}},
			Contexts: []string{oldID, autumnID}, ContextID: autumnID, Context: instance, StatusContext: instance,
		},
		appcontext.GroupRef("retail", "shop", "v2", "winter"): {Info: appcontext.StateInfo{Actions: []appcontext.Action{{State: "Created", Time: when}}}},
		appcontext.ClusterRef("west", "bonn"):                 {Contexts: []string{networkID}, ContextID: networkID, Context: network, StatusContext: network},
	}}
	lost := observationOf("west+lost", healthscope.Ready)
	lost.Members = healthscope.MarkUnreachable(lost.Members, healthscope.ReasonClusterUnreachable, "no answer", time.Now())
	lost.Unreachable, lost.Reason, lost.Read = true, healthscope.ReasonClusterUnreachable, nil
	failed := observationOf("west+bonn", healthscope.Failed)
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

// requestsForDocuments returns requests for status documents: first those that group and cluster answer in the same way.
func requestsForDocuments(t testing.TB) map[string]request {
	t.Helper()
	const group, cluster, instance = groupPath + "/status", "/v2/cluster-providers/{provider}/clusters/{cluster}/status", "/v1/instance/{id}/status"
	failing := func(err error) *Documents {
		return NewDocuments(DocumentsOptions{Contexts: &memoryContexts{err: fmt.Errorf("cannot read status: %w", err)}, Clusters: memoryClusters{}})
	}
	away := failing(appcontext.ErrUnavailable)
	old, clusters := fixtures(t)
	old.age = time.Minute
	stale := NewDocuments(DocumentsOptions{Contexts: old, Clusters: clusters})
	silent := NewDocuments(DocumentsOptions{Contexts: &memoryContexts{age: time.Minute}, Clusters: memoryClusters{}})
	unread := NewDocuments(DocumentsOptions{Clusters: memoryClusters{unread: []string{"east+tokyo"}, instances: map[string][]Observation{"gentle-fox": {observationOf("west+bonn", healthscope.Ready)}}}})
	contexts, _ := fixtures(t)
	panics := NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: panicking{}})
	all := map[string]request{
		"group panics":            {path: group, target: autumnURL + "?health=true", from: panics, want: 500, detail: "its log says how"},
		"instance panics":         {path: instance, from: panics, want: 500, detail: "its log says how"},
		"group without etcd":      {path: group, from: NewDocuments(DocumentsOptions{}), want: 503, detail: "the server's configuration has no section appContext"},
		"group known":             {path: group, accept: typeEMCO, header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"instance is known":       {path: instance, header: http.Header{"If-None-Match": {"*"}}, want: 304},
		"instance too early":      {path: instance, ready: func() error { return errors.New("the bundles have not been read yet") }, want: 503, detail: "the bundles have not been read yet"},
		"instance, partly unread": {path: instance, from: unread, want: 200},
		"instance, maybe unread":  {path: instance, target: "/v1/instance/odd-fox/status", from: unread, want: 503, detail: `nothing is known of instance "odd-fox", and it may be in a cluster that has not been read yet: east+tokyo`},
		"EMCO by parameter":       {path: group, target: autumnURL + "?dialect=22.12", accept: "application/json", want: 200},
		"EMCO, not in text":       {path: group, target: autumnURL + "?dialect=22.12", accept: "text/plain", want: 406, detail: "this path can be answered as application/json or application/vnd.emco.v22+json"},
		"EMCO, not of instances":  {path: instance, accept: typeEMCO, want: 406, detail: "this path can be answered as application/json"},
		"EMCO, old":               {path: group, from: stale, accept: typeEMCO, want: 503, detail: "etcd has not answered since"},

		"group unknown before etcd went":    {path: group, from: silent, want: 503, detail: "etcd has not answered since"},
		"instance unknown before etcd went": {path: group, target: autumnURL + "?instance=99", from: silent, want: 503, detail: "nothing was known of it then"},
	}
	for _, path := range []string{group, cluster} {
		all[path+" is known"] = request{path: path, header: http.Header{"If-None-Match": {"*"}}, want: 304}
		all[path+" with etcd away"] = request{path: path, from: away, want: 503, detail: "cannot read the AppContexts in etcd: cannot read status: Etcd is not available"}
		all[path+" with etcd away, EMCO"] = request{path: path, from: away, accept: typeEMCO, want: 503, detail: "Etcd is not available"}
		all[path+" that cannot be decoded"] = request{path: path, from: failing(appcontext.ErrMalformed), want: 500, detail: "Stored value cannot be read"}
		all[path+" of bad context"] = request{path: path, from: failing(appcontext.ErrInvalid), want: 400, detail: appcontext.ErrInvalid.Error()}
	}
	for name, tt := range map[string]struct {
		path, target string
		want         int
		detail       string
	}{
		"group with health":            {group, autumnURL + "?health=true&type=all", 200, ""},
		"group in detail":              {group, autumnURL + "?output=full", 200, ""},
		"group, nothing matches":       {group, autumnURL + "?app=a&cluster=a%2Bb&resource=c&resource=d&type=cluster", 200, ""},
		"group, instances":             {group, autumnURL + "?instance", 200, ""},
		"group, instance":              {group, autumnURL + "?instance=" + autumnID, 200, ""},
		"group, instance gone":         {group, autumnURL + "?instance=" + oldID, 200, ""},
		"group, instance of none":      {group, autumnURL + "?instance=99", 404, `query parameter "instance" has the value "99", which is none of its instances; without a value, instance lists them`},
		"group before its first":       {group, winterURL, 200, ""},
		"group that is none":           {group, springURL, 404, `nothing is known of deployment intent group "retail/shop/v2/spring"`},
		"group of bad name":            {group, strings.Replace(autumnURL, "autumn", "a%2Fb", 1), 400, `parameter "group" has the value "a/b"`},
		"group of a dot":               {group, strings.Replace(autumnURL, "retail", "%2e", 1), 400, `parameter "project" has the value "."`},
		"group of dots":                {group, strings.Replace(autumnURL, "retail", "%2e%2e", 1), 400, `parameter "project" has the value ".."`},
		"group of the longest name":    {group, strings.Replace(autumnURL, "shop", strings.Repeat("x", 253), 1), 404, "nothing is known"},
		"group of long name":           {group, strings.Replace(autumnURL, "shop", strings.Repeat("x", 254), 1), 400, `parameter "app" has the value "xxx`},
		"group of no UTF-8":            {group, strings.Replace(autumnURL, "shop", "%ff", 1), 400, `parameter "app" has the value "\xff"`},
		"group with bad type":          {group, autumnURL + "?type=both", 400, `query parameter "type" with value "both" cannot be used; allowed: rsync, cluster, all`},
		"group with type twice":        {group, autumnURL + "?type=rsync&type=cluster", 400, `query parameter "type" with value "rsync,cluster" is given 2 times`},
		"group with unknown parameter": {group, autumnURL + "?namespace=a", 400, `unknown query parameter "namespace" with value "a"; this path takes ["app" "apps" "cluster" "clusters" "dialect" "health" "instance" "output" "resource" "resources" "status" "type"]`},
		"cluster in detail":            {cluster, networkURL + "?output=detail", 200, ""},
		"cluster that is none":         {cluster, "/v2/cluster-providers/west/clusters/ulm/status", 404, `nothing is known of the network intents of cluster "west/ulm"`},
		"cluster of bad name":          {cluster, "/v2/cluster-providers/west/clusters/%00/status", 400, `parameter "cluster"`},
		"instance without contents":    {instance, "/v1/instance/empty-fox/status", 200, ""},
		"instance that is lost":        {instance, "/v1/instance/lost-fox/status", 200, ""},
		"instance that is none":        {instance, "/v1/instance/odd-fox/status", 404, `no ResourceBundleState that can be seen has the label k8splugin.io/rb-instance-id=odd-fox`},
		"instance of bad name":         {instance, "/v1/instance/-/status", 400, `parameter "id" has the value "-"`},
		"instance with parameter":      {instance, "/v1/instance/gentle-fox/status?full=true", 400, `unknown query parameter "full"`},

		"EMCO: group":               {group, autumnURL, 200, ""},
		"EMCO: group, of clusters":  {group, autumnURL + "?type=cluster&output=detail", 200, ""},
		"EMCO: group, deployed":     {group, autumnURL + "?status=deployed", 200, ""},
		"EMCO: group, ready":        {group, autumnURL + "?status=ready&app=web&cluster=west%2Bberlin&resource=web", 200, ""},
		"EMCO: apps":                {group, autumnURL + "?apps", 200, ""},
		"EMCO: clusters":            {group, autumnURL + "?clusters=", 200, ""},
		"EMCO: resources":           {group, autumnURL + "?resources=true", 200, ""},
		"EMCO: before its first":    {group, winterURL, 200, ""},
		"EMCO: group that is none":  {group, springURL, 404, `DeploymentIntentGroup not found: there is neither`},
		"EMCO: no such cluster":     {cluster, "/v2/cluster-providers/west/clusters/ulm/status", 404, `Cluster not found: there is neither`},
		"EMCO: another dialect":     {group, autumnURL + "?dialect=21.03", 400, `Invalid query dialect: query parameter "dialect" with value "21.03" cannot be used; allowed: 22.12`},
		"EMCO: unknown parameter":   {group, autumnURL + "?namespace=a", 400, `unknown query parameter "namespace"`},
		"EMCO: unknown app":         {group, autumnURL + "?app=nosuch", 400, "Filter app nosuch not in list of apps for composite app shop"},
		"EMCO: instance of none":    {group, autumnURL + "?instance=99", 400, "No state information for 99"},
		"EMCO: apps of a cluster":   {cluster, networkURL + "?apps", 400, "only for deployment intent groups"},
		"EMCO: cluster":             {cluster, networkURL, 200, ""},
		"EMCO: cluster, ready":      {cluster, networkURL + "?status=ready", 200, ""},
		"EMCO: cluster, of cluster": {cluster, networkURL + "?type=cluster", 200, ""},
		"EMCO: cluster, deployed":   {cluster, networkURL + "?status=deployed", 200, ""},
	} {
		r := request{path: tt.path, target: tt.target, want: tt.want, detail: tt.detail}
		if strings.HasPrefix(name, "EMCO") {
			r.accept = typeEMCO
		}
		all[name] = r
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

// TestDocumentsSayWhereWhatTheyShowComesFrom covers a cluster that the hub observes, with a bundle in the context as well; one that it does not
// observe, with such a bundle; two that have never been reached, the second with such a bundle; and one that cannot be reached any more.
func TestDocumentsSayWhereWhatTheyShowComesFrom(t *testing.T) {
	d := document(t, manyDocuments(t), autumnURL+"?output=full")
	if former := clustersOf(t, d, "cache")["former"].Resources; len(former) != 2 || former[0].ClusterStatus != status.PresenceUnknown {
		t.Errorf("what the bundle lacks must not be known: %+v", former)
	}
	clusters := clustersOf(t, d, "web")
	const unreachable = string(healthscope.ReasonClusterUnreachable)
	for name, want := range map[string]struct {
		state, reason, last, source string
		detail                      bool
	}{
		"bonn":   {"Failed", "CrashLoopBackOff", "", "", true},
		"berlin": {"Ready", "", "", "context", true},
		"away":   {"Unknown", unreachable, "", "", false},
		"former": {"Unknown", unreachable, "Ready", "context", true},
		"lost":   {"Unknown", unreachable, "Ready", "", false},
	} {
		c := clusters[name]
		if len(c.Resources) != 1 || c.Source != want.source || len(c.Resources[0].Detail) > 0 != want.detail {
			t.Errorf("%s: %+v, want %+v", name, c, want)
		} else if h := c.Resources[0].Health; h.State != want.state || h.Reason != want.reason || h.LastState != want.last {
			t.Errorf("%s: %+v, want %+v", name, h, want)
		}
	}
}

func TestOnlyDetailReadsFromClusters(t *testing.T) {
	for query, want := range map[string]bool{"?output=detail": false, "?type=cluster": false, "?output=small": false, "?output=full": true} {
		contexts, clusters := fixtures(t)
		read := false
		bonn := observationOf("west+bonn", healthscope.Ready)
		bonn.Read = func(context.Context) (*status.Bundle, error) {
			read = true
			return nil, errors.New("no answer")
		}
		clusters.seen[[2]string{"west+bonn", autumnID + "-web"}] = bonn
		document(t, NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: clusters}), autumnURL+query)
		if read != want {
			t.Errorf("%s: a bundle was read from its cluster: %t", query, read)
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
		held := observationOf("west+bonn", healthscope.Ready)
		held.Read = func(context.Context) (*status.Bundle, error) {
			begun.Add(1)
			<-over
			return nil, errors.New("no answer")
		}
		clusters.instances["held-fox"] = slices.Repeat([]Observation{held}, maxReads+1)
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
				got := send(ctx, h, http.MethodGet, target, nil, "")
				checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "are being made already")
				cancel()
			}
		}
		if begun.Load() != maxDetail*maxReads {
			t.Errorf("%d whole bundles are read at once, want %d for each of %d answers", begun.Load(), maxReads, maxDetail)
		}
		for _, target := range targets {
			began := time.Now()
			got := get(t, h, target, nil)
			checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "are being made already")
			if took := time.Since(began); took > 0 {
				t.Errorf("%s: failed after %s, want at once", target, took)
			}
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
	for _, contexts.age = range []time.Duration{0, time.Minute, 0} {
		if got := document(t, d, autumnURL); (got.LastSeen != "") != (contexts.age > 0) {
			t.Errorf("after %s, last-seen is %q", contexts.age, got.LastSeen)
		}
	}
}

// TestKeptAnswersHold asserts that a cached response is reused until a change of its history or its context, and not after it.
func TestKeptAnswersHold(t *testing.T) {
	contexts, clusters := fixtures(t)
	d := NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: clusters})
	h := NewHandler(Options{Documents: d})
	tag := func() string { t.Helper(); return get(t, h, autumnURL, nil).Header().Get("ETag") }
	first := tag()
	cache := d.cacheOf(autumn, contexts.views[autumn])
	kept, ok := cache.document(contexts.views[autumn], "")
	if !ok || kept.tag != first || kept.document != nil {
		t.Errorf("kept: %t with tag %s; the answer has the tag %s, and only its encoded form must be kept", ok, kept.tag, first)
	}
	kept.tag = `"kept"`
	cache.store(contexts.views[autumn], "", kept)
	if again := tag(); again != kept.tag {
		t.Errorf("nothing has changed, and the answer is made again")
	}
	cache.replace(appcontext.View{})
	failed := etcdKeys{}.put(autumnID, "web", "west+bonn", "web+Deployment", deployment, "Failed", "").snapshot(t)
	changes := map[string]func(*appcontext.View){
		"a history": func(v *appcontext.View) {
			v.Info.Actions = append(slices.Clone(v.Info.Actions), appcontext.Action{State: "Terminated", ContextID: autumnID, Time: time.Now()})
		},
		"a resource":           func(v *appcontext.View) { v.Context = failed },
		"a state of resources": func(v *appcontext.View) { v.StatusContext = failed },
	}
	for what, change := range changes {
		before := contexts.views[autumn]
		changed := before
		change(&changed)
		contexts.views[autumn] = changed
		if got := tag(); got == first {
			t.Errorf("%s has changed, and the answer has not", what)
		}
		contexts.views[autumn] = before
		if got := tag(); got != first {
			t.Errorf("%s is as before, and the answer is not", what)
		}
	}
}

func TestWhatDependsOnClustersIsNotKept(t *testing.T) {
	for _, query := range []string{"?type=cluster", "?health=true"} {
		contexts, clusters := fixtures(t)
		d := NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: clusters})
		before := clustersOf(t, document(t, d, autumnURL+query), "web")["bonn"]
		delete(clusters.seen, [2]string{"west+bonn", autumnID + "-web"})
		if after := clustersOf(t, document(t, d, autumnURL+query), "web")["bonn"]; before.Source != "" || after.Source != "context" {
			t.Errorf("%s: the source is %q, and %q when the hub does not observe the cluster any more", query, before.Source, after.Source)
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
	targets := []string{autumnURL, autumnURL + "?output=summary", autumnURL + "?output=detail", networkURL, autumnURL + "?instance=" + oldID}
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
