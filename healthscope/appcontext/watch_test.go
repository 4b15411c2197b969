package appcontext_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// receive returns the next update.
func receive(t testing.TB, updates <-chan appcontext.Update) appcontext.Update {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case u, ok := <-updates:
		if !ok {
			t.Fatal("the watch has ended")
		}
		return u
	case <-timer.C:
		t.Fatal("the watch is silent")
	}
	return appcontext.Update{}
}

// receiveUntil receives until an update is as it should be.
func receiveUntil(t testing.TB, updates <-chan appcontext.Update, holds func(appcontext.Update) bool) appcontext.Update {
	t.Helper()
	for {
		if u := receive(t, updates); holds(u) {
			return u
		}
	}
}

// asIn fails when a snapshot is not what etcd holds under a handle at the snapshot's revision.
func asIn(t testing.TB, client *clientv3.Client, h appcontext.Handle, s *appcontext.Snapshot) {
	t.Helper()
	response, err := client.Get(t.Context(), string(h), clientv3.WithPrefix(), clientv3.WithRev(s.Revision()))
	if err != nil {
		t.Fatalf("cannot read etcd: %v", err)
	}
	want := map[string]string{}
	for _, kv := range response.Kvs {
		want[string(kv.Key)] = string(kv.Value)
	}
	if diff := cmp.Diff(want, contents(s)); diff != "" {
		t.Errorf("at revision %d (-etcd +snapshot):\n%s", s.Revision(), diff)
	}
	if s.Len() != len(want) {
		t.Errorf("at revision %d: want %d keys, Len is %d", s.Revision(), len(want), s.Len())
	}
}

func TestAWatchTellsWhatIsAndWhatChanges(t *testing.T) {
	store := open(t, appcontext.Options{})
	client := rawClient(t, endpoint(t))
	ac, h := newContext(t, store)
	a, c, r := add(t, ac, h, "a", "p+c", "r+Kind")
	updates := must(store.Watch(t.Context(), h))(t)
	first := receive(t, updates)
	if !first.Anew || first.Changed != nil || first.Err != nil || !first.Snapshot.Exists() {
		t.Errorf("want the whole context first, got %+v", first)
	}
	asIn(t, client, h, first.Snapshot)

	steps := []struct {
		name    string
		change  func() error
		changed []appcontext.Handle
	}{
		{"two levels at once", func() error { return ac.SetLevelValues(t.Context(), c, map[string]any{"status": "{}", "seen": 1}) }, []appcontext.Handle{c.Level("seen"), c.Level("status")}},
		{"a value", func() error { return ac.UpdateResourceValue(t.Context(), r, "other") }, []appcontext.Handle{r}},
		{"a cluster with all that is in it", func() error { return ac.DeleteCluster(t.Context(), c) }, []appcontext.Handle{c, r, c.Level("seen"), c.Level("status")}},
		{"a new cluster", func() error { _, err := ac.AddCluster(t.Context(), a, "p+d"); return err }, []appcontext.Handle{a.Level("cluster/p+d")}},
		{"everything", func() error { return ac.DeleteCompositeApp(t.Context()) }, []appcontext.Handle{h, a, a.Level("cluster/p+d")}},
	}
	for _, step := range steps {
		if err := step.change(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		u := receive(t, updates)
		slices.Sort(step.changed)
		if diff := cmp.Diff(step.changed, u.Changed); diff != "" || u.Anew || u.Err != nil {
			t.Errorf("%s: %+v (-want +got):\n%s", step.name, u, diff)
		}
		asIn(t, client, h, u.Snapshot)
	}
	if first.Snapshot.Len() != 4 || !first.Snapshot.Exists() {
		t.Error("a change has changed an earlier snapshot")
	}
}

func TestAWatchOfAClusterSeesThatClusterOnly(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	a, c, _ := add(t, ac, h, "a", "p+c", "r+Kind")
	d := must(ac.AddCluster(t.Context(), a, "p+cd"))(t)
	updates := must(store.Watch(t.Context(), c))(t)
	asIn(t, rawClient(t, endpoint(t)), c, receive(t, updates).Snapshot)
	must(ac.AddLevelValue(t.Context(), d, "status", "{}"))(t)
	must(ac.AddLevelValue(t.Context(), c, "status", "{}"))(t)
	u := receive(t, updates)
	if diff := cmp.Diff([]appcontext.Handle{c.Level("status")}, u.Changed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestASlowReaderGetsTheLatest(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	at := must(ac.AddLevelValue(t.Context(), h, "status", 0))(t)
	updates := must(store.Watch(t.Context(), h))(t)
	receive(t, updates)
	const last = 200
	for n := 1; n <= last; n++ {
		if err := ac.UpdateValue(t.Context(), at, n); err != nil {
			t.Fatal(err)
		}
	}
	count := 0
	receiveUntil(t, updates, func(u appcontext.Update) bool {
		count++
		if !slices.Equal(u.Changed, []appcontext.Handle{at}) {
			t.Errorf("want what has changed named once, got %v", u.Changed)
		}
		value, _ := u.Snapshot.Value(at)
		return string(value) == strconv.Itoa(last)
	})
	// One may have been on its way, and the changes may have come while the reader was at it; but not one by one.
	if count > last/2 {
		t.Errorf("%d updates for %d changes that nobody waited for", count, last)
	}
}

func TestAWatchGoesOnAfterALostConnectionAndACompaction(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	direct := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	client := rawClient(t, etcd.Endpoint())
	l, url := newLink(t, etcd.Endpoint())
	watched := open(t, appcontext.Options{Endpoints: []string{url}, Timeout: time.Second, ProofInterval: 50 * time.Millisecond})
	ac, h := newContext(t, direct)
	at := must(ac.AddLevelValue(t.Context(), h, "status", "before"))(t)
	updates := must(watched.Watch(t.Context(), h))(t)
	receive(t, updates)

	l.cut()
	lost := receiveUntil(t, updates, func(u appcontext.Update) bool { return u.Err != nil })
	if value, _ := lost.Snapshot.Value(at); string(value) != `"before"` {
		t.Errorf("want the last known snapshot with the error, got %s", value)
	}
	if err := ac.UpdateValue(t.Context(), at, "between"); err != nil {
		t.Fatal(err)
	}
	must(ac.AddApp(t.Context(), h, "gone"))(t)
	if err := ac.DeleteApp(t.Context(), h.Level("app/gone")); err != nil {
		t.Fatal(err)
	}
	if err := ac.UpdateValue(t.Context(), at, "after"); err != nil {
		t.Fatal(err)
	}
	compact(t, client)
	l.mend(etcd.Endpoint())
	u := receiveUntil(t, updates, func(u appcontext.Update) bool { return u.Err == nil })
	if value, _ := u.Snapshot.Value(at); !u.Anew || string(value) != `"after"` {
		t.Errorf("want everything anew with the latest value, got %s of %+v", value, u)
	}
	asIn(t, client, h, u.Snapshot)
}

// compact makes etcd forget everything but the present.
func compact(t testing.TB, client *clientv3.Client) {
	t.Helper()
	response, err := client.Get(t.Context(), "/")
	if err == nil {
		_, err = client.Compact(t.Context(), response.Header.Revision)
	}
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) { // When nothing was written since, or a reply was lost and the request sent again.
		t.Fatalf("cannot compact: %v", err)
	}
}

func TestAWatchNoticesAConnectionThatHasGoneSilent(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	direct := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	l, url := newLink(t, etcd.Endpoint())
	watched := open(t, appcontext.Options{Endpoints: []string{url}, Timeout: 500 * time.Millisecond, ProofInterval: 50 * time.Millisecond})
	ac, h := newContext(t, direct)
	updates := must(watched.Watch(t.Context(), h))(t)
	receive(t, updates)
	l.freeze(t)
	frozen := time.Now()
	must(ac.AddApp(t.Context(), h, "a"))(t)
	if u := receive(t, updates); u.Err == nil {
		t.Errorf("want to be told of the silence, got %+v", u)
	}
	u := receiveUntil(t, updates, func(u appcontext.Update) bool { return u.Err == nil })
	if _, ok := u.Snapshot.App("a"); !ok || !u.Anew {
		t.Errorf("want the app that came during the silence, got %+v", u)
	}
	// The silence is noticed after half a second; gRPC would notice after ten.
	if took := time.Since(frozen); took > 10*time.Second {
		t.Errorf("the silent connection was given up after %s only", took)
	}
}

func TestAWatchNoticesThatEtcdWasRestored(t *testing.T) {
	etcd, restored := ownEtcd(t, controlplane.EtcdOptions{}), ownEtcd(t, controlplane.EtcdOptions{})
	client := rawClient(t, restored.Endpoint())
	l, url := newLink(t, etcd.Endpoint())
	watched := open(t, appcontext.Options{Endpoints: []string{url}, Timeout: time.Second, ProofInterval: 50 * time.Millisecond})
	ac, h := newContext(t, watched)
	for n := range 20 { // So that the revision is far ahead of that of the backup.
		must(ac.AddApp(t.Context(), h, strconv.Itoa(n)))(t)
	}
	updates := must(watched.Watch(t.Context(), h))(t)
	receive(t, updates)
	putRaw(t, client, map[string]string{string(h): strconv.Quote(ac.ID()), string(h) + "app/old/": `"old"`})
	l.cut()
	l.mend(restored.Endpoint())
	u := receiveUntil(t, updates, func(u appcontext.Update) bool { return u.Anew && u.Err == nil })
	asIn(t, client, h, u.Snapshot)
}

func TestAWatchBeginsWhenEtcdComes(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	if err := etcd.Kill(); err != nil {
		t.Fatal(err)
	}
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Timeout: time.Second})
	updates := must(store.Watch(t.Context(), appcontext.ContextHandle("1")))(t)
	if u := receive(t, updates); u.Snapshot != nil || !errors.Is(u.Err, appcontext.ErrUnavailable) {
		t.Errorf("want ErrUnavailable and no snapshot, got %+v", u)
	}
	if err := etcd.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	u := receiveUntil(t, updates, func(u appcontext.Update) bool { return u.Err == nil })
	if u.Snapshot.Exists() || u.Snapshot.Len() != 0 || u.Snapshot.ID() != "1" {
		t.Errorf("want an empty snapshot, got %+v", u.Snapshot)
	}
}

func TestAWatchEndsAndLeavesNothingBehind(t *testing.T) {
	url := endpoint(t)
	for name, end := range map[string]func(context.CancelFunc, *appcontext.Store){
		"context": func(cancel context.CancelFunc, _ *appcontext.Store) { cancel() },
		"store":   func(_ context.CancelFunc, s *appcontext.Store) { closeStore(t, s) },
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			store := must(appcontext.Open(appcontext.Options{Endpoints: []string{url}, ProofInterval: 10 * time.Millisecond}))(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ac, h := newContext(t, store)
			var all []<-chan appcontext.Update
			for range 5 {
				all = append(all, must(store.Watch(ctx, h))(t))
			}
			receive(t, all[0])
			must(ac.AddApp(t.Context(), h, "a"))(t) // Most of them have something to tell that nobody hears.
			end(cancel, store)
			for _, updates := range all {
				for range updates { // Until it is closed.
				}
			}
			closeStore(t, store)
			goleak.VerifyNone(t, before)
		})
	}
}
