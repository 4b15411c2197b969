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

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// testTimeout limits every wait of the tests.
const testTimeout = time.Minute

// shared is the etcd of the tests that do not disturb it. It starts on first use.
var shared = sync.OnceValues(func() (*controlplane.Etcd, error) {
	return controlplane.StartEtcd(context.Background(), controlplane.EtcdOptions{})
})

// started reports whether shared must be stopped.
var started bool

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() { // The examples need etcd, and an example cannot skip itself.
		if err := flag.Set("test.skip", "^Example"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if started {
		if etcd, err := shared(); err == nil {
			if err := etcd.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// sharedEndpoint returns the URL of the shared etcd.
func sharedEndpoint() (string, error) {
	etcd, err := shared()
	if err != nil {
		return "", err
	}
	started = true
	return etcd.Endpoint(), nil
}

func endpoint(t testing.TB) string {
	t.Helper()
	suite.NeedsControlPlane(t)
	url, err := sharedEndpoint()
	if err != nil {
		t.Fatalf("cannot start etcd: %v", err)
	}
	return url
}

// ownEtcd starts an etcd for one test.
func ownEtcd(t testing.TB, options controlplane.EtcdOptions) *controlplane.Etcd {
	t.Helper()
	suite.NeedsControlPlane(t)
	etcd, err := controlplane.StartEtcd(t.Context(), options)
	if err != nil {
		t.Fatalf("cannot start etcd: %v", err)
	}
	t.Cleanup(func() {
		if err := etcd.Stop(); err != nil {
			t.Errorf("cannot stop etcd: %v", err)
		}
	})
	return etcd
}

// open returns a store that is closed when the test ends.
func open(t testing.TB, options appcontext.Options) *appcontext.Store {
	t.Helper()
	if len(options.Endpoints) == 0 {
		options.Endpoints = []string{endpoint(t)}
	}
	store, err := appcontext.Open(options)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { closeStore(t, store) })
	return store
}

func closeStore(t testing.TB, store *appcontext.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// rawClient returns a client of etcd, without the library.
func rawClient(t testing.TB, endpoint string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatalf("cannot make client: %v", err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// raw returns the keys and values in etcd with a prefix.
func raw(t testing.TB, client *clientv3.Client, prefix string) map[string]string {
	t.Helper()
	response, err := client.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatalf("cannot read etcd: %v", err)
	}
	values := map[string]string{}
	for _, kv := range response.Kvs {
		values[string(kv.Key)] = string(kv.Value)
	}
	return values
}

// putRaw stores values without encoding them.
func putRaw(t testing.TB, client *clientv3.Client, values map[string]string) {
	t.Helper()
	for key, value := range values {
		if _, err := client.Put(t.Context(), key, value); err != nil {
			t.Fatalf("cannot write etcd: %v", err)
		}
	}
}

// dump reads the dump of etcd in testdata: raw values by key. It replaces the id of the context.
func dump(t testing.TB, id string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "group.json"))
	noError(t, err)
	var values map[string]string
	noError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(data), dumpID, id)), &values))
	return values
}

// dumpID is the id of the context in the dumps.
const dumpID = "5577006791947779410"

// newContext creates a context, and returns it with its handle.
func newContext(t testing.TB, store *appcontext.Store) (*appcontext.AppContext, appcontext.Handle) {
	t.Helper()
	ac := appcontext.NewAppContext(store)
	ac.InitAppContext()
	h, err := ac.CreateCompositeApp(t.Context())
	if err != nil {
		t.Fatalf("CreateCompositeApp: %v", err)
	}
	return ac, h
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
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError fails the test unless an error is of a kind.
func wantError(t testing.TB, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("want %v, got: %v", kind, err)
	}
}

// must returns a function that returns the value of a call, and fails the test if the call has failed.
func must[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		noError(t, err)
		return value
	}
}

// add adds an app with one cluster and one resource, and returns the three handles.
func add(t testing.TB, ac *appcontext.AppContext, h appcontext.Handle, app, cluster, resource string) (a, c, r appcontext.Handle) {
	t.Helper()
	a = must(ac.AddApp(t.Context(), h, app))(t)
	c = must(ac.AddCluster(t.Context(), a, cluster))(t)
	r = must(ac.AddResource(t.Context(), c, resource, "kind: Test\n"))(t)
	return a, c, r
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

// contents returns the keys and values of a snapshot, in the form of raw.
func contents(s *appcontext.Snapshot) map[string]string {
	values := map[string]string{}
	for h, value := range s.All() {
		values[string(h)] = string(value)
	}
	return values
}

// merged returns the union of maps.
func merged(all ...map[string]string) map[string]string {
	union := map[string]string{}
	for _, m := range all {
		maps.Copy(union, m)
	}
	return union
}
