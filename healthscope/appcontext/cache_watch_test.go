package appcontext_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// compact removes all revisions from etcd but the current one.
func compact(t testing.TB, client *clientv3.Client) {
	t.Helper()
	response, err := client.Get(t.Context(), "/context/")
	if err == nil {
		_, err = client.Compact(t.Context(), response.Header.Revision)
	}
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) { // Nothing was written since, or a response was lost and the request sent again.
		t.Fatalf("cannot compact: %v", err)
	}
}

// newWire returns a connection to etcd that can be broken, and its URL.
func newWire(t testing.TB, etcd *controlplane.Etcd) (w *faults.Wire, url string) {
	t.Helper()
	w = must(faults.NewWire(strings.TrimPrefix(etcd.Endpoint(), "http://")))(t)
	t.Cleanup(func() { _ = w.Close() })
	return w, "http://" + w.Addr()
}

// watched is a context in an etcd, and a cache whose connection to the etcd can be broken.
type watched struct {
	*fixture

	wire  *faults.Wire
	cache *appcontext.Cache
}

// newWatched returns a cache that has the context, in state Instantiating. The cache knows other members of etcd too.
func newWatched(t testing.TB, others ...string) *watched {
	t.Helper()
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	w := &watched{fixture: newFixture(t, optionsOf(etcd))}
	var url string
	w.wire, url = newWire(t, etcd)
	w.setState(t, appcontext.StateInstantiating)
	options := appcontext.Options{Endpoints: append([]string{url}, others...), Timeout: time.Second, ProgressInterval: 50 * time.Millisecond}
	w.cache = runCache(t, open(t, options), appcontext.CacheOptions{})
	w.wantState(t, appcontext.StateInstantiating)
	return w
}

// setState writes the state, not through the wire.
func (w *watched) setState(t testing.TB, s appcontext.State) {
	t.Helper()
	noError(t, set(t.Context(), w.store, w.h, map[string]any{"status": state{string(s)}}))
}

// wantState reads the context from the cache until it has the state.
func (w *watched) wantState(t testing.TB, want appcontext.State) {
	t.Helper()
	eventually(t, "the cache does not follow", func(ctx context.Context) error {
		s, _, err := w.cache.Snapshot(ctx, w.ac.ID())
		if err != nil {
			return err
		}
		if got, err := s.Status(); err != nil || got != want {
			return fmt.Errorf("the state is %q, want %q: %w", got, want, err)
		}
		return nil
	})
}

// cut breaks all connections and refuses new ones.
func (w *watched) cut() {
	w.wire.Refuse(true)
	w.wire.Reset()
}

func TestCacheRecoversFromDisconnectAndCompaction(t *testing.T) {
	w := newWatched(t)
	w.cut()
	noError(t, w.ac.DeleteApp(t.Context(), w.a))
	w.setState(t, appcontext.StateInstantiated)
	w.wantState(t, appcontext.StateInstantiating)
	compact(t, w.client)
	w.wire.Refuse(false)
	w.wantState(t, appcontext.StateInstantiated)
}

func TestCacheRecoversFromStalledConnection(t *testing.T) {
	t.Parallel() // It takes gRPC fifteen seconds to give up the connection.
	w := newWatched(t)
	w.wire.HalfOpen()
	frozen := time.Now()
	w.setState(t, appcontext.StateInstantiated)
	if _, asOf, err := w.cache.Snapshot(t.Context(), w.ac.ID()); err != nil || asOf.After(frozen) {
		t.Errorf("the answer is as of %s after the connection went silent: %v", asOf.Sub(frozen), err)
	}
	w.wantState(t, appcontext.StateInstantiated)
}

func TestCacheRecoversFromEtcdRestore(t *testing.T) {
	restored := ownEtcd(t, controlplane.EtcdOptions{})
	backup, url := newWire(t, restored)
	backup.Refuse(true)
	w := newWatched(t, url)
	for n := range 20 { // This moves the revision far ahead of that of the backup.
		must(w.ac.AddApp(t.Context(), w.h, strconv.Itoa(n)))(t)
	}
	w.setState(t, appcontext.StateInstantiated)
	w.wantState(t, appcontext.StateInstantiated)
	putRaw(t, rawClient(t, restored.Endpoint()), map[string]string{string(w.h): strconv.Quote(w.ac.ID()), string(w.h) + "status/": `{"Status":"Terminated"}`})
	w.cut()
	backup.Refuse(false)
	w.wantState(t, appcontext.StateTerminated)
}

// TestCacheReadsContextsWhileTheWatchIsBroken lets a user read both ranges that the cache loads, but not watch them as one. Before
// each context is requested, etcd forgets the revision that the cache has loaded.
func TestCacheReadsContextsWhileTheWatchIsBroken(t *testing.T) {
	t.Parallel()
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	enableUsers(t, rawClient(t, etcd.Endpoint()), [2]string{"/context/", "/context0"}, [2]string{"/healthscope/", "/healthscope0"})
	root := must(clientv3.New(clientv3.Config{Endpoints: []string{etcd.Endpoint()}, Username: "root", Password: "root", Logger: zap.NewNop()}))(t)
	defer func() { _ = root.Close() }()
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Username: "emco", Password: "geheim", Timeout: testTimeout})
	var ids []string
	subject := func(id string) appcontext.DeploymentRef { return appcontext.GroupRef("p", "ca", "v1", id) }
	for range 20 {
		ac, _ := newContext(t, store)
		noError(t, ac.AddCompositeAppMeta(t.Context(), appcontext.CompositeAppMeta{Project: "p", CompositeApp: "ca", Version: "v1", Release: ac.ID()}))
		ids = append(ids, ac.ID())
	}
	cache := runCache(t, store, appcontext.CacheOptions{})
	for n, id := range ids {
		if n > 10 {
			newContext(t, store)
			compact(t, root)
		}
		var err error
		if n%2 == 0 {
			err = ask(t.Context(), cache, id)
		} else {
			err = just(cache.View(t.Context(), subject(id), ""))
		}
		if err != nil {
			t.Fatalf("context %d: %v", n, err)
		}
	}
}
