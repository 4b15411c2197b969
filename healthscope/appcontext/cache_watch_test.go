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

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// snapshotSince reads a context from a cache until the revision is the given one or later.
func snapshotSince(t testing.TB, cache *appcontext.Cache, id string, revision int64) (s *appcontext.Snapshot) {
	t.Helper()
	eventually(t, "the cache does not catch up", func(ctx context.Context) (err error) {
		if s, _, err = cache.Snapshot(ctx, id); err == nil && s.Revision() < revision {
			return fmt.Errorf("revision %d, want %d", s.Revision(), revision)
		}
		return err
	})
	return s
}

// wantStatus reads a context from a cache until it has the status.
func wantStatus(t testing.TB, cache *appcontext.Cache, id string, status appcontext.State) {
	t.Helper()
	eventually(t, "the cache does not follow", func(ctx context.Context) error {
		s, _, err := cache.Snapshot(ctx, id)
		if err != nil {
			return err
		}
		if got, err := s.Status(); err != nil || got != status {
			return fmt.Errorf("the status is %q, want %q: %w", got, status, err)
		}
		return nil
	})
}

// setStatus writes the status of a context.
func setStatus(t testing.TB, store *appcontext.Store, h appcontext.Handle, status appcontext.State) {
	t.Helper()
	noError(t, set(t.Context(), store, h, map[string]any{"status": map[string]any{"Status": status}}))
}

// compact removes all revisions from etcd but the current one.
func compact(t testing.TB, client *clientv3.Client) {
	t.Helper()
	response, err := client.Get(t.Context(), "/")
	if err == nil {
		_, err = client.Compact(t.Context(), response.Header.Revision)
	}
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) { // Nothing was written since, or a response was lost and the request sent again.
		t.Fatalf("cannot compact: %v", err)
	}
}

// newWire returns a connection to etcd that can be broken, and its URL.
func newWire(t testing.TB, endpoint string) (w *faults.Wire, url string) {
	t.Helper()
	w = must(faults.NewWire(strings.TrimPrefix(endpoint, "http://")))(t)
	t.Cleanup(func() { _ = w.Close() })
	return w, "http://" + w.Addr()
}

// cut breaks all connections and refuses new ones.
func cut(w *faults.Wire) {
	w.Refuse(true)
	w.Reset()
}

func TestCacheRecoversFromDisconnectAndCompaction(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	direct := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	wire, url := newWire(t, etcd.Endpoint())
	watched := open(t, appcontext.Options{Endpoints: []string{url}, Timeout: time.Second, ProgressInterval: 50 * time.Millisecond})
	ac, h := newContext(t, direct)
	setStatus(t, direct, h, appcontext.StateInstantiating)
	cache := runCache(t, watched, appcontext.CacheOptions{})
	wantStatus(t, cache, ac.ID(), appcontext.StateInstantiating)

	cut(wire)
	must(ac.AddApp(t.Context(), h, "gone"))(t)
	noError(t, ac.DeleteApp(t.Context(), h.Level("app/gone")))
	setStatus(t, direct, h, appcontext.StateInstantiated)
	wantStatus(t, cache, ac.ID(), appcontext.StateInstantiating)
	compact(t, rawClient(t, etcd.Endpoint()))
	wire.Refuse(false)
	wantStatus(t, cache, ac.ID(), appcontext.StateInstantiated)
}

func TestCacheRecoversFromStalledConnection(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	direct := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	wire, url := newWire(t, etcd.Endpoint())
	watched := open(t, appcontext.Options{Endpoints: []string{url}, Timeout: 500 * time.Millisecond, ProgressInterval: 50 * time.Millisecond})
	ac, h := newContext(t, direct)
	setStatus(t, direct, h, appcontext.StateInstantiating)
	cache := runCache(t, watched, appcontext.CacheOptions{})
	wantStatus(t, cache, ac.ID(), appcontext.StateInstantiating)

	wire.HalfOpen()
	frozen := time.Now()
	setStatus(t, direct, h, appcontext.StateInstantiated)
	if _, asOf, err := cache.Snapshot(t.Context(), ac.ID()); err != nil || asOf.After(frozen) {
		t.Errorf("the answer is as of %s after the connection went silent: %v", asOf.Sub(frozen), err)
	}
	wantStatus(t, cache, ac.ID(), appcontext.StateInstantiated)
}

func TestCacheRecoversFromEtcdRestore(t *testing.T) {
	etcd, restored := ownEtcd(t, controlplane.EtcdOptions{}), ownEtcd(t, controlplane.EtcdOptions{})
	direct := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	wire, url := newWire(t, etcd.Endpoint())
	backup, backupURL := newWire(t, restored.Endpoint())
	backup.Refuse(true)
	watched := open(t, appcontext.Options{Endpoints: []string{url, backupURL}, Timeout: time.Second, ProgressInterval: 50 * time.Millisecond})
	ac, h := newContext(t, direct)
	for n := range 20 { // This moves the revision far ahead of that of the backup.
		must(ac.AddApp(t.Context(), h, strconv.Itoa(n)))(t)
	}
	cache := runCache(t, watched, appcontext.CacheOptions{})
	setStatus(t, direct, h, appcontext.StateInstantiated)
	wantStatus(t, cache, ac.ID(), appcontext.StateInstantiated)
	putRaw(t, rawClient(t, restored.Endpoint()), map[string]string{string(h): strconv.Quote(ac.ID()), string(h) + "status/": `{"Status":"Terminated"}`})
	cut(wire)
	backup.Refuse(false)
	wantStatus(t, cache, ac.ID(), appcontext.StateTerminated)
}

// TestCacheReadsContextsWhileTheWatchIsBroken lets a user read both ranges that the cache loads, but not watch them as one.
func TestCacheReadsContextsWhileTheWatchIsBroken(t *testing.T) {
	t.Parallel()
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	enableUsers(t, rawClient(t, etcd.Endpoint()), [2]string{"/context/", "/context0"}, [2]string{"/healthscope/", "/healthscope0"})
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Username: "emco", Password: "geheim", Timeout: time.Second})
	var contexts []*appcontext.AppContext
	for range 20 {
		ac, _ := newContext(t, store)
		contexts = append(contexts, ac)
	}
	cache := runCache(t, store, appcontext.CacheOptions{})
	for n, ac := range contexts {
		if _, _, err := cache.Snapshot(t.Context(), ac.ID()); err != nil {
			t.Fatalf("context %d: %v", n, err)
		}
	}
}
