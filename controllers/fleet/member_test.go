package fleet

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope"
)

// newTestMember returns a published member of a hub that sends nothing, with bundles of the namespace shop in a store.
func newTestMember(t *testing.T, o Options, logger logr.Logger, bundles ...string) (*member, bundleStore) {
	t.Helper()
	o.Policy = healthscope.DefaultPolicy()
	e := &environment{options: o, view: newView("local"), clock: clock.RealClock{}}
	m := newMember(e, "edge", false, nil, logger)
	m.publish()
	t.Cleanup(m.syncer.queue.ShutDown)
	s := newStore("edge")
	for _, name := range bundles {
		put(t, s, name, "1")
	}
	return m, s
}

// put puts a version of a bundle, as filled by a monitor of ours, into a store.
func put(t *testing.T, s bundleStore, name, version string) {
	t.Helper()
	k := kept(name)
	k.Value = &cachedBundle{Bundle: Bundle{BundleKey: keyOf("edge", name), UID: types.UID(name), ResourceVersion: version, Own: true, Observed: true}}
	if err := s[""].Update(k); err != nil {
		t.Fatal(err)
	}
}

// kept returns the cache entry of a bundle without its contents.
func kept(name string) *observe.Entry[*cachedBundle] {
	return &observe.Entry[*cachedBundle]{PartialObjectMetadata: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}}
}

// TestChangesDuringRecoveryAreShown changes bundles after all have been read again, and before the view shows that the cluster
// is back.
func TestChangesDuringRecoveryAreShown(t *testing.T) {
	t.Parallel()
	for _, away := range []Reachability{Unreachable, Forbidden, MonitorStale, MonitorMissing} {
		var meanwhile func()
		logger := funcr.New(func(_, args string) {
			if strings.Contains(args, `"state"="Connected"`) && meanwhile != nil {
				meanwhile()
			}
		}, funcr.Options{})
		m, s := newTestMember(t, Options{}, logger, "changes", "goes", "stays")
		become := func(r Reachability) { m.setState(ClusterState{Name: "edge", Reachability: r, Since: noon}) }
		become(Connected)
		m.syncer.resync(s)
		become(away)
		notified := 0
		meanwhile = func() {
			notified++
			put(t, s, "changes", "2")
			put(t, s, "comes", "1")
			if err := s[""].Delete(kept("goes")); err != nil {
				t.Error(err)
			}
			for _, name := range []string{"changes", "comes", "goes"} {
				m.syncer.sync(types.NamespacedName{Namespace: "shop", Name: name})
			}
		}
		become(Connected)
		versions := map[string]string{}
		for _, b := range m.env.view.All() {
			versions[b.Name] = b.ResourceVersion
			if b.Stale {
				t.Errorf("%s: bundle %q is shown as one that cannot be seen", away, b.Name)
			}
		}
		if notified != 1 || versions["changes"] != "2" || versions["comes"] != "1" || versions["stays"] != "1" || len(versions) != 3 {
			t.Errorf("%s: notified %d times, and bundles are shown in the versions %v", away, notified, versions)
		}
	}
}

// TestRestrictedNamespacesShowTheirBundlesAgain limits the namespaces of a cluster to one that its credentials may not read, so
// that the former connection stays in use, and reverts that. Whenever the view reports that it knows a namespace, it must have
// its bundles.
func TestRestrictedNamespacesShowTheirBundlesAgain(t *testing.T) {
	t.Parallel()
	m, s := newTestMember(t, Options{Members: &Members{Parse: func([]byte) (*rest.Config, error) { return nil, errors.New("not today") }}}, logr.Discard(), "web")
	view := m.env.view
	m.current = silent(m.env.clock)
	m.current.Namespaces, m.current.synced = []string{"shop"}, true
	m.spec = clusterSpec{name: "edge", namespaces: []string{"shop"}}
	m.syncer.resync(s)
	m.state.Reachability, m.state.namespaces = Connected, m.readNamespaces()
	m.publish()
	key := BundleKey{Cluster: "edge", Namespace: "shop", Name: "web"}
	if view.Bundle(key) == nil || !view.CompleteFor("edge", "shop") {
		t.Fatal("the bundle is not shown at first")
	}
	var wrong atomic.Int64
	stop := whileRunning(func() {
		view.mu.RLock()
		defer view.mu.RUnlock()
		if view.clusters["edge"].state.reads("shop") != (view.bundles[types.NamespacedName{Namespace: "shop", Name: "web"}]["edge"] != nil) {
			wrong.Add(1)
		}
	})
	desired := [][]string{{"default"}, {"shop"}, {"default"}, {"default", "shop"}, {"other"}, {"a mistake"}, nil}
	for _, namespaces := range slices.Repeat(desired, 500) {
		w := clusterSpec{name: "edge", namespaces: namespaces, secret: &corev1.ObjectReference{}}
		if len(namespaces) > 0 && namespaces[0] == "a mistake" {
			w.namespaces, w.problem = nil, namespaces[0]
		}
		m.apply(t.Context(), w)
		want := namespaces == nil || namespaces[len(namespaces)-1] == "shop"
		if got := view.CompleteFor("edge", "shop"); got != want {
			t.Errorf("with the namespaces %v, that all is known of shop is %t", namespaces, got)
		}
		if got := view.Bundle(key) != nil; got != want {
			t.Errorf("with the namespaces %v, that the bundle of shop is shown is %t", namespaces, got)
		}
	}
	if stop(); wrong.Load() > 0 {
		t.Errorf("the namespace is said to be read while its bundle is not there: seen %d times", wrong.Load())
	}
}

// whileRunning calls look continuously until stop is called, and then once more.
func whileRunning(look func()) (stop func()) {
	var running sync.WaitGroup
	end := make(chan struct{})
	running.Go(func() {
		for {
			select {
			case <-end:
				look()
				return
			default:
				look()
			}
		}
	})
	return func() {
		close(end)
		running.Wait()
	}
}

// withoutBundles returns a member whose API server responds but does not serve bundles, so that no connection to it is ever
// complete. web returns the lookup of a Deployment of the member that was Ready when it was read.
func withoutBundles(t *testing.T) (m *member, clock *clocktesting.FakeClock, web func() Lookup) {
	t.Helper()
	o := NewObjects(nil, nil)
	o.ctx = t.Context()
	m, _ = newTestMember(t, Options{Objects: o}, logr.Discard())
	clock = clocktesting.NewFakeClock(time.Now())
	m.env.clock = clock
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	name := types.NamespacedName{Namespace: "shop", Name: "web"}
	o.Want(types.NamespacedName{Namespace: "shop", Name: "scope"}, map[Kind]struct{}{{"edge", gvk}: {}})
	m.next = unserved(m)
	m.reconcile(t.Context())
	if m.state.Reachability != MonitorMissing || len(o.kinds) != 1 {
		t.Fatalf("the cluster is %s, and %d kinds are watched there", m.state.Reachability, len(o.kinds))
	}
	for _, w := range o.kinds {
		if err := w.store.Replace([]any{keptResult(name, web1)}, ""); err != nil {
			t.Fatal(err)
		}
		w.informer.Tracker.Report(observe.Event{Kind: observe.Listed})
	}
	t.Cleanup(func() { o.Detach("edge") })
	return m, clock, func() Lookup { return o.Get("edge", gvk, name) }
}

// web1 is the result of a Deployment that was read.
var web1 = web(healthscope.Ready, "")

// unserved returns a connection to an API server that has not served bundles for an hour.
func unserved(m *member) *connection {
	c := silent(m.env.clock)
	c.updateLiveness(func(l *liveness, now time.Time) {
		for _, before := range []time.Duration{time.Hour, time.Minute, 0} {
			bundlesEvent(l, refusedEvent(observe.NotServed, "not served"), now.Add(-before))
		}
	})
	return c
}

// silent returns a connection that has received nothing yet.
func silent(c clock.WithTickerAndDelayedExecution) *connection {
	return &connection{
		Access: Access{Config: &rest.Config{Host: "https://127.0.0.1:1"}}, clock: c, wake: func() {}, cancel: func() {},
		liveness: newLiveness(false, 10*time.Second, c.Now()),
	}
}

// TestObjectsOfAClusterWithoutBundlesAreWatched renews the credentials of such a cluster, with good and with bad ones. Objects
// to which scopes refer directly can be read all the time.
func TestObjectsOfAClusterWithoutBundlesAreWatched(t *testing.T) {
	t.Parallel()
	m, clock, web := withoutBundles(t)
	var seen []Reachability
	look := func(what string) {
		t.Helper()
		clock.SetTime(clock.Now().Add(time.Second))
		cmp.Or(m.current, m.next).updateLiveness(func(l *liveness, now time.Time) { l.answered(now) })
		m.reconcile(t.Context())
		seen = append(seen, m.state.Reachability)
		if got := web(); got.Result.State != healthscope.Ready || got.Syncing {
			t.Errorf("%s: the Deployment is %+v", what, got)
		}
	}
	look("at first")
	first := m.current
	m.next = silent(clock)
	look("while a new connection is made")
	m.next = unserved(m)
	look("when the new connection is as good")
	if m.current == first || m.next != nil {
		t.Error("the new connection is not in use")
	}
	second := m.current
	m.next = silent(clock)
	m.next.updateLiveness(func(l *liveness, now time.Time) {
		bundlesEvent(l, refusedEvent(observe.Unauthorized, "401"), now.Add(-time.Hour))
		l.answered(now)
	})
	look("when the new credentials are bad")
	if m.current != second || !strings.Contains(m.specProblem, "401") {
		t.Errorf("the connection before is in use: %t, and the problem is %q", m.current == second, m.specProblem)
	}
	for _, r := range seen {
		if r != MonitorMissing {
			t.Errorf("the cluster went through %s", seen)
		}
	}
}

// TestObjectsStayWhenBundlesComeToBeServed installs the CRD in such a cluster.
func TestObjectsStayWhenBundlesComeToBeServed(t *testing.T) {
	t.Parallel()
	for name, bundles := range map[string][]string{"without bundles": nil, "with a bundle of ours": {"web"}} {
		m, _, web := withoutBundles(t)
		_, s := newTestMember(t, Options{}, logr.Discard(), bundles...)
		var seen []Reachability
		assess := func() {
			m.reconcile(t.Context())
			seen = append(seen, m.state.Reachability)
		}
		conn := m.current
		conn.store = s
		conn.updateLiveness(readBundles)
		assess()
		assess()
		if got := web(); got.Result.State != healthscope.Ready || slices.Contains(seen, Connecting) {
			t.Errorf("%s: the Deployment is %+v, and the cluster went through %s", name, got, seen)
		}
		conn.updateLiveness(func(l *liveness, now time.Time) {
			l.leaseObserved("1", time.Hour, now)
			readAll(func(e observe.Event) { leasesEvent(l, e, now) })
		})
		m.reconcile(t.Context())
		if m.state.Reachability != Connected {
			t.Errorf("%s: the cluster is %s in the end", name, m.state.Reachability)
		}
	}
}

// TestSettlingOfObjectsEnds looks up an object in a cluster that responds but whose objects cannot be watched.
func TestSettlingOfObjectsEnds(t *testing.T) {
	t.Parallel()
	o := NewObjects(nil, nil)
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	name := types.NamespacedName{Namespace: "shop", Name: "web"}
	for since, want := range map[time.Duration]bool{time.Second: true, time.Hour: false} {
		o.setState(ClusterState{Name: "edge", Reachability: MonitorMissing, Since: time.Now().Add(-since)})
		if got := o.Get("edge", gvk, name); got.Syncing != want || got.Result.State != healthscope.Unknown {
			t.Errorf("%s after the cluster answered: %+v", since, got)
		}
	}
}

// TestClusterWithoutMonitorLeaseIsNeverConnected follows a member from its first connection. The monitor that fills its bundles
// is known only when they have been stored. A complete read of the bundles is no reason to report them as current.
func TestClusterWithoutMonitorLeaseIsNeverConnected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read  time.Duration // how long it took to read the bundles
		after func(l *liveness, now time.Time)
		want  []Reachability
	}{
		"there is no Lease":   {time.Second, func(l *liveness, now time.Time) { l.leaseObserved("", 0, now) }, []Reachability{Connecting, MonitorMissing}},
		"there is one":        {time.Second, func(l *liveness, now time.Time) { l.leaseObserved("1", time.Hour, now) }, []Reachability{Connecting, Connected}},
		"there is one, later": {time.Hour, func(l *liveness, now time.Time) { l.leaseObserved("1", time.Hour, now) }, []Reachability{Connecting, Connected}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, s := newTestMember(t, Options{}, logr.Discard(), "web")
			fake := clocktesting.NewFakeClock(noon)
			m.env.clock, m.state.Since = fake, noon
			var seen []Reachability
			look := func(pass time.Duration) {
				fake.SetTime(fake.Now().Add(pass))
				if m.next != nil || m.current != nil {
					cmp.Or(m.current, m.next).updateLiveness(func(l *liveness, now time.Time) { l.answered(now) })
				}
				m.reconcile(t.Context())
				if len(seen) == 0 || seen[len(seen)-1] != m.state.Reachability {
					seen = append(seen, m.state.Reachability)
				}
			}
			conn := silent(fake)
			conn.store = s
			m.next = conn
			look(0)
			fake.SetTime(fake.Now().Add(c.read))
			conn.updateLiveness(readBundles)
			look(0)
			conn.updateLiveness(func(l *liveness, now time.Time) {
				c.after(l, now)
				readAll(func(e observe.Event) { leasesEvent(l, e, now) })
			})
			for range 12 {
				look(time.Second)
			}
			if !slices.Equal(seen, c.want) {
				t.Errorf("went through %v, want %v", seen, c.want)
			}
		})
	}
}

// TestTimeAloneChangesTheState: nothing wakes a member whose API server has stopped to answer. The hub's own cluster stays
// Connected then, and has an outage.
func TestTimeAloneChangesTheState(t *testing.T) {
	t.Parallel()
	for cluster, want := range map[string]Reachability{"edge": Unreachable, "local": Connected} {
		t.Run(cluster, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := &environment{options: Options{Policy: healthscope.DefaultPolicy()}, view: newView("local"), clock: clock.RealClock{}}
				local := cluster == e.view.Cluster()
				m := newMember(e, cluster, local, nil, logr.Discard())
				m.publish()
				m.spec, m.current = clusterSpec{name: cluster}, silent(e.clock)
				m.current.liveness.local = local
				m.current.updateLiveness(readBundles)
				ctx, cancel := context.WithCancel(t.Context())
				go m.run(ctx)
				outageAfter := probeInterval + m.current.liveness.timeout + probeGrace
				look := func(pass time.Duration) (ClusterState, bool) {
					<-e.clock.After(pass)
					synctest.Wait()
					state, _ := e.view.State(cluster)
					_, outage := e.view.Outage()
					return state, outage
				}
				if state, outage := look(outageAfter - assessInterval); state.Reachability != Connected || outage {
					t.Errorf("before the timeout it is %s: %s; outage %t", state.Reachability, state.Message, outage)
				}
				if state, outage := look(2 * assessInterval); state.Reachability != want || outage != local {
					t.Errorf("after the timeout it is %s: %s; outage %t", state.Reachability, state.Message, outage)
				}
				cancel()
				<-m.stopped
			})
		})
	}
}
