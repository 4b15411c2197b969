package appcontext_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/wait"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// testTimeout limits every wait of the tests.
const testTimeout = time.Minute

// shared is the etcd of the tests that do not disturb it; nil until one of them calls sharedEndpoint.
var shared *controlplane.Etcd

// sharedEndpoint returns the URL of the shared etcd, which it starts first.
var sharedEndpoint = sync.OnceValues(func() (url string, err error) {
	if shared, err = controlplane.StartEtcd(context.Background(), controlplane.EtcdOptions{}); err != nil {
		return "", err
	}
	return shared.Endpoint(), nil
})

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() { // The examples need etcd, and an example cannot skip itself.
		if err := flag.Set("test.skip", "^Example"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if shared != nil {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// ownEtcd starts an etcd for one test.
func ownEtcd(t testing.TB, options controlplane.EtcdOptions) *controlplane.Etcd {
	t.Helper()
	suite.NeedsControlPlane(t)
	etcd := must(controlplane.StartEtcd(t.Context(), options))(t)
	t.Cleanup(func() {
		if err := etcd.Stop(); err != nil {
			t.Errorf("cannot stop etcd: %v", err)
		}
	})
	return etcd
}

// optionsOf returns the options for an etcd.
func optionsOf(etcd *controlplane.Etcd) appcontext.Options {
	return appcontext.Options{Endpoints: []string{etcd.Endpoint()}}
}

// open returns a store that is closed when the test ends. Without endpoints, it is that of the shared etcd.
func open(t testing.TB, options appcontext.Options) *appcontext.Store {
	t.Helper()
	if len(options.Endpoints) == 0 {
		suite.NeedsControlPlane(t)
		options.Endpoints = []string{must(sharedEndpoint())(t)}
	}
	store := must(appcontext.Open(options))(t)
	t.Cleanup(func() { closeStore(t, store) })
	return store
}

func closeStore(t testing.TB, store *appcontext.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// rawClient returns a client of etcd, without the library. Without an endpoint, it is that of the shared etcd.
func rawClient(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	if len(endpoints) == 0 {
		suite.NeedsControlPlane(t)
		endpoints = []string{must(sharedEndpoint())(t)}
	}
	client := must(clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()}))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// raw returns the keys and values in etcd with a prefix.
func raw(t testing.TB, client *clientv3.Client, prefix string) map[string]string {
	t.Helper()
	values := map[string]string{}
	for _, kv := range must(client.Get(t.Context(), prefix, clientv3.WithPrefix()))(t).Kvs {
		values[string(kv.Key)] = string(kv.Value)
	}
	return values
}

// putRaw stores values without encoding them.
func putRaw(t testing.TB, client *clientv3.Client, values map[string]string) {
	t.Helper()
	for key, value := range values {
		must(client.Put(t.Context(), key, value))(t)
	}
}

// dump reads the dump of etcd in testdata: raw values by key. It replaces the id of the context.
func dump(t testing.TB, id string) map[string]string {
	t.Helper()
	data := must(os.ReadFile(filepath.Join("testdata", "group.json")))(t)
	var values map[string]string
	noError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(data), "5577006791947779410", id)), &values))
	return values
}

// newContext creates a context, and returns it with its handle.
func newContext(t testing.TB, store *appcontext.Store) (*appcontext.AppContext, appcontext.Handle) {
	t.Helper()
	ac := appcontext.NewAppContext(store)
	ac.InitAppContext()
	return ac, must(ac.CreateCompositeApp(t.Context()))(t)
}

// add adds an app with one cluster and one resource, and returns the three handles.
func add(t testing.TB, ac *appcontext.AppContext, h appcontext.Handle, app, cluster, resource string) (a, c, r appcontext.Handle) {
	t.Helper()
	a = must(ac.AddApp(t.Context(), h, app))(t)
	c = must(ac.AddCluster(t.Context(), a, cluster))(t)
	r = must(ac.AddResource(t.Context(), c, resource, "kind: Test\n"))(t)
	return a, c, r
}

// fixture is a context with app "a", cluster "p+c" and resource "r+Kind".
type fixture struct {
	store *appcontext.Store
	// client is one without the library.
	client *clientv3.Client
	ac     *appcontext.AppContext
	// h is the handle of the context; a, c and r are those of the app, the cluster and the resource.
	h, a, c, r appcontext.Handle
	// place is the app in the cluster.
	place appcontext.AppInCluster
	// subject is a deployment intent group of the test alone. The context does not name it.
	subject appcontext.DeploymentRef
}

// newFixture creates the context in the etcd of the options.
func newFixture(t testing.TB, options appcontext.Options) *fixture {
	t.Helper()
	f := &fixture{store: open(t, options), client: rawClient(t, options.Endpoints...), subject: appcontext.GroupRef("p", "ca", "v1", t.Name())}
	f.ac, f.h = newContext(t, f.store)
	f.a, f.c, f.r = add(t, f.ac, f.h, "a", "p+c", "r+Kind")
	f.place = appcontext.AppInCluster{ContextID: f.ac.ID(), App: "a", Cluster: "p+c"}
	return f
}

// meta returns meta data that name the subject.
func (f *fixture) meta() appcontext.CompositeAppMeta {
	return appcontext.CompositeAppMeta{Project: f.subject.Project, CompositeApp: f.subject.CompositeApp, Version: f.subject.Version, DeploymentIntentGroup: f.subject.Group}
}

// snapshot reads the context.
func (f *fixture) snapshot(t testing.TB) *appcontext.Snapshot {
	t.Helper()
	return must(f.store.Snapshot(t.Context(), f.ac.ID()))(t)
}

// set stores values at levels below a handle, together with records. It removes the levels whose values are nil.
func set(ctx context.Context, store *appcontext.Store, h appcontext.Handle, values map[string]any, records ...appcontext.Record) error {
	var writes []appcontext.Write
	for _, level := range slices.Sorted(maps.Keys(values)) {
		writes = append(writes, appcontext.Write{Handle: h.Level(level), Value: values[level]})
	}
	return store.WriteLevels(ctx, strings.Split(string(h), "/")[2], writes, appcontext.Condition{}, records...)
}

// noError fails the test if a call has failed.
func noError(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError fails the test unless an error is of a kind, and its message has the texts.
func wantError(t testing.TB, err, kind error, texts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("want %v, got: %v", kind, err)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("want %q in: %v", text, err)
		}
	}
}

// just returns the error of a call.
func just[T any](_ T, err error) error { return err }

// must returns a function that returns the value of a call, and fails the test if the call has failed.
func must[T any](value T, err error) func(t rapid.TB) T {
	return func(t rapid.TB) T {
		t.Helper()
		noError(t, err)
		return value
	}
}

// eventually calls answer until it returns nil.
func eventually(t testing.TB, what string, answer func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, testTimeout, true, func(ctx context.Context) (bool, error) {
		last = answer(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v; last answer: %v", what, err, last)
	}
}

// receive returns the next value from a channel, or the zero value if that is closed.
func receive[T any](t testing.TB, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(testTimeout):
		t.Fatal("nothing is reported")
	}
	return value
}

// contents returns the keys and values of a snapshot, in the form of raw.
func contents(s *appcontext.Snapshot) map[string]string {
	values := map[string]string{}
	for h, value := range s.All() {
		values[string(h)] = string(value)
	}
	return values
}
