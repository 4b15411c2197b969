package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// The ids of the instances of the group in the golden documents. The instance oldID is terminated.
const oldID, newID = "2204310587736190422", "5127746093381250097"

// storage is an etcd with its clients. The server reads it through a tap.
type storage struct {
	etcd   *controlplane.Etcd
	client *clientv3.Client
	// store writes to etcd directly, not through the tap.
	store *appcontext.Store
	tap   *faults.EtcdTap
	cache *appcontext.Cache
}

// usualProof is the interval at which the stores of tests confirm that they are current, in tests that do not count requests.
const usualProof = 50 * time.Millisecond

// newStorage starts an etcd. The tap counts the reads of newID.
func newStorage(t *testing.T, timeout, proof time.Duration, arguments ...string) *storage {
	t.Helper()
	suite.NeedsControlPlane(t)
	s := &storage{}
	var err error
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.etcd, err = controlplane.StartEtcd(t.Context(), controlplane.EtcdOptions{Arguments: arguments})
	fatal(err)
	t.Cleanup(func() { fatal(s.etcd.Stop()) })
	s.client, err = clientv3.New(clientv3.Config{Endpoints: []string{s.etcd.Endpoint()}, Logger: zap.NewNop()})
	fatal(err)
	t.Cleanup(func() { _ = s.client.Close() })
	s.store = s.open(t, s.etcd.Endpoint(), 30*time.Second, proof)
	s.tap, err = faults.StartEtcdTap(s.etcd.Endpoint(), string(appcontext.ContextHandle(newID)))
	fatal(err)
	t.Cleanup(func() { _ = s.tap.Stop() })
	s.cache = appcontext.NewCache(s.open(t, s.tap.URL, timeout, proof), appcontext.CacheOptions{})
	running := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { running <- s.cache.Run(ctx) }()
	t.Cleanup(func() { cancel(); fatal(<-running) })
	return s
}

func (*storage) open(t *testing.T, endpoint string, timeout, proof time.Duration) *appcontext.Store {
	t.Helper()
	store, err := appcontext.Open(appcontext.Options{Endpoints: []string{endpoint}, Timeout: timeout, ProgressInterval: proof})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// dumped returns the keys and raw values of a context in testdata.
func dumped(t *testing.T, name string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "status", "testdata", name))
	values := map[string]string{}
	if err == nil {
		err = json.Unmarshal(data, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// builder creates a context with the functions of the library.
type builder struct {
	*appcontext.AppContext

	t     *testing.T
	store *appcontext.Store
	root  appcontext.Handle
}

func (b *builder) must(_ any, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// build creates the context of a dump, and asserts that etcd then holds exactly the same keys and values.
func (s *storage) build(t *testing.T, name string) {
	t.Helper()
	want := dumped(t, name)
	keys := make([]string, 0, len(want))
	for key := range want {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	b := &builder{AppContext: appcontext.NewAppContext(s.store), t: t, store: s.store}
	id := strings.Split(keys[0], "/")[2]
	number, err := strconv.ParseInt(id, 10, 64)
	b.must(nil, err)
	b.must(b.InitAppContextWithValue(number))
	b.root, err = b.CreateCompositeApp(t.Context())
	b.must(b.root, err)
	for _, key := range keys[1:] {
		b.put(strings.Split(strings.TrimSuffix(strings.TrimPrefix(key, string(b.root)), "/"), "/"), want[key])
	}
	got := map[string]string{}
	response, err := s.client.Get(t.Context(), string(b.root), clientv3.WithPrefix())
	b.must(response, err)
	for _, kv := range response.Kvs {
		got[string(kv.Key)] = string(kv.Value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the library has written (-as EMCO does +here):\n%s", diff)
	}
}

// put writes one value of a dump, by the parts of its key below the context.
func (b *builder) put(parts []string, raw string) {
	b.t.Helper()
	ctx, n := b.t.Context(), len(parts)
	var text string
	_ = json.Unmarshal([]byte(raw), &text) // For a value that is not a string, raw is used.
	switch {
	case n > 3 && parts[0] == "app":
		b.putCluster(parts, text, raw)
	case n == 1 && parts[0] == "meta":
		var meta appcontext.CompositeAppMeta
		b.must(nil, json.Unmarshal([]byte(raw), &meta))
		b.must(nil, b.AddCompositeAppMeta(ctx, meta))
	case parts[0] != "app":
		b.must(b.AddLevelValue(ctx, b.root, strings.Join(parts, "/"), json.RawMessage(raw)))
	case n == 3 && parts[1] == "instruction":
		b.must(b.AddInstruction(ctx, b.root, "app", parts[2], text))
	default:
		b.must(b.AddApp(ctx, b.root, parts[1]))
	}
}

// putCluster is put for keys below the cluster of an app.
func (b *builder) putCluster(parts []string, text, raw string) {
	b.t.Helper()
	ctx, n := b.t.Context(), len(parts)
	app := b.root.Level("app").Level(parts[1])
	cluster := app.Level("cluster").Level(parts[3])
	switch {
	case n == 4:
		b.must(b.AddCluster(ctx, app, parts[3]))
	case n == 5 && parts[4] == "!@#metaGrp":
		b.must(nil, b.AddClusterMetaGrp(ctx, cluster, text))
	case n == 5 && parts[4] == "status":
		at, err := b.store.ReadBundle(ctx, appcontext.AppInCluster{ContextID: b.ID(), App: parts[1], Cluster: parts[3]})
		b.must(at, err)
		b.must(nil, b.store.SaveBundle(ctx, at, text, appcontext.SavedBundle{Seen: time.Now(), Name: b.ID() + "-" + parts[1]}))
	case n == 7 && parts[5] == "instruction":
		b.must(b.AddInstruction(ctx, cluster, "resource", parts[6], text))
	case n == 6 && parts[4] == "resource":
		b.must(b.AddResource(ctx, cluster, parts[5], text))
	case n == 7:
		b.must(b.AddLevelValue(ctx, cluster.Level("resource").Level(parts[5]), parts[6], json.RawMessage(raw)))
	default:
		b.must(b.AddLevelValue(ctx, cluster, parts[4], json.RawMessage(raw)))
	}
}

// record records an action of a user.
func (s *storage) record(t *testing.T, subject appcontext.DeploymentRef, state appcontext.ActionState, id, at string) {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.RecordAction(t.Context(), appcontext.Record{Subject: subject, Action: appcontext.Action{State: state, ContextID: id, Time: when}}); err != nil {
		t.Fatal(err)
	}
}

// seeing is a Clusters that observes the bundles that are saved in a context.
type seeing struct {
	memoryClusters

	t     *testing.T
	saved map[string]string
}

func (s seeing) Bundle(cluster, name, _ string) (Observation, bool) {
	id, app, _ := strings.Cut(name, "-")
	var text string
	if err := json.Unmarshal([]byte(s.saved["/context/"+id+"/app/"+app+"/cluster/"+cluster+"/status/"]), &text); err != nil {
		s.t.Errorf("no bundle %q in %q: %v", name, cluster, err)
	}
	b := status.DecodeBundle(cluster, text, nil)
	r := status.SavedReport(b, healthscope.DefaultPolicy(), time.Now(), time.Now())
	r.Saved, r.Bundle = false, nil
	return Observation{Report: r, Read: func(context.Context) (*status.Bundle, error) { return b, nil }}, true
}

// TestGoldenDocumentsOfContextsBuiltWithTheLibrary covers each complete example in the published version of EMCO's status design.
// The library writes the context into etcd. For the same query, the test expects the same JSON from the server, byte for byte.
func TestGoldenDocumentsOfContextsBuiltWithTheLibrary(t *testing.T) {
	s := newStorage(t, 5*time.Second, usualProof)
	group, cluster := appcontext.GroupRef("retail", "shop", "v2", "autumn"), appcontext.ClusterRef("west", "berlin")
	s.record(t, group, appcontext.ActionCreated, "", "2026-03-02T08:58:21.186Z")
	s.record(t, group, appcontext.ActionApproved, "", "2026-03-02T08:59:02.748Z")
	s.build(t, "context-old.json")
	s.record(t, group, appcontext.ActionInstantiated, oldID, "2026-03-02T08:59:02.947Z")
	s.record(t, group, appcontext.ActionTerminated, oldID, "2026-03-02T09:14:11.061Z")
	s.record(t, group, appcontext.ActionApproved, "", "2026-03-02T09:15:34.436Z")
	s.build(t, "context-new.json")
	s.record(t, group, appcontext.ActionInstantiated, newID, "2026-03-02T09:15:34.64Z")
	s.record(t, cluster, appcontext.ActionCreated, "", "2026-03-01T17:02:02.464Z")
	s.build(t, "context-network.json")
	s.record(t, cluster, appcontext.ActionApplied, "7741902256340018863", "2026-03-01T17:05:11.983Z")

	hub := seeing{t: t, saved: dumped(t, "context-new.json")}
	h := NewHandler(Options{Documents: NewDocuments(DocumentsOptions{Contexts: s.cache, Clusters: hub, Policy: healthscope.DefaultPolicy()})})
	berlin := "/v2/cluster-providers/west/clusters/berlin/status"
	for target, golden := range map[string]string{
		autumnURL:                            "golden-all.json",
		autumnURL + "?type=rsync&output=all": "golden-all.json",
		autumnURL + "?output=summary":        "golden-summary.json",
		autumnURL + "?output=detail&type=cluster&app=store&resource=store-settings":                                   "golden-detail.json",
		autumnURL + "?output=all&type=rsync&resource=web-server&resource=store-settings&instance=2204310587736190422": "golden-instance.json",
		autumnURL + "?cluster=west%2Bbonn": "golden-cluster.json",
		autumnURL + "?instance":            "golden-instances.json",
		berlin:                             "golden-network.json",
		berlin + "?cluster=west%2Bberlin&app=network-intents": "golden-network.json",
	} {
		data, err := os.ReadFile(filepath.Join("..", "status", "testdata", golden))
		var want bytes.Buffer
		if err == nil {
			err = json.Compact(&want, data)
		}
		if err != nil {
			t.Fatal(err)
		}
		// Contexts do not have the name of the composite profile.
		text := strings.Replace(want.String(), `"composite-profile-name":"shop-profile",`, "", 1) + "\n"
		got := get(t, h, target, nil)
		if diff := cmp.Diff(text, got.Body.String()); diff != "" || got.Code != http.StatusOK {
			t.Errorf("%s: status %d (-%s +got):\n%s", target, got.Code, golden, diff)
		}
	}
}

// TestAColdDocumentTakesOneRead asserts that the server reads a context from etcd once, for any number of requests with any query.
func TestAColdDocumentTakesOneRead(t *testing.T) {
	s := newStorage(t, 5*time.Second, time.Hour)
	s.build(t, "context-new.json")
	s.record(t, appcontext.GroupRef("retail", "shop", "v2", "autumn"), appcontext.ActionInstantiated, newID, "2026-03-02T09:15:34.64Z")
	if before := s.tap.Take(); before != (faults.EtcdReads{}) {
		t.Errorf("etcd is read before anything is asked: %+v", before)
	}
	h := NewHandler(Options{Documents: NewDocuments(DocumentsOptions{Contexts: s.cache, Clusters: memoryClusters{}, Policy: healthscope.DefaultPolicy()})})
	ask := func(query string) {
		t.Helper()
		if got := get(t, h, autumnURL+query, nil); got.Code != http.StatusOK {
			t.Fatalf("status %d: %s", got.Code, got.Body)
		}
	}
	ask("?type=cluster&output=all")
	if cold := s.tap.Take(); cold.Contents != 1 || cold.Others > 8 {
		t.Errorf("a cold document takes %d reads of the context and %d others, want 1 and a few that do not grow with it", cold.Contents, cold.Others)
	}
	for _, query := range []string{"", "?output=summary", "?output=full", "?type=cluster&output=all", "?health=true", "?instance"} {
		ask(query)
	}
	if warm := s.tap.Take(); warm.Contents != 0 || warm.Others != 0 {
		t.Errorf("warm documents take %d reads of the context and %d others, want none", warm.Contents, warm.Others)
	}
}
