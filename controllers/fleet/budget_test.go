package fleet

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// takes adds an object of that name and that estimated size to the usage of a cluster.
func takes(t *testing.T, q *quota, name string, bytes int64) {
	t.Helper()
	source, _ := q.newMeter().wrap(&toolscache.ListWatch{}, objectsPage, nil)
	c, ok := source.(*meteredListerWatcher)
	if !ok {
		t.Fatalf("it is counted by a %T", source)
	}
	c.usageOf = func(runtime.Object) usage { return usage{resources: 1, bytes: bytes} }
	_ = c.admit(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// TestTotalBudgetIsEnforced: the sum over all clusters is limited. The cluster with the highest usage is cut off first, after
// the rest of the clusters that were cut off before has been dropped. The hub's own cluster is never cut off.
func TestTotalBudgetIsEnforced(t *testing.T) {
	t.Parallel()
	qs := &quotas{hard: Budget{Total: 100}}
	quiet := func() {}
	local, small, great := qs.register("local", true, quiet), qs.register("small", false, quiet), qs.register("great", false, quiet)
	takes(t, local, "a", 30)
	takes(t, small, "a", 20)
	takes(t, great, "a", 40)
	for _, q := range []*quota{local, small, great} {
		if why, _ := q.status(); why != "" {
			t.Fatalf("%s is cut off within the budget: %s", q.cluster, why)
		}
	}
	takes(t, great, "b", 20) // Half of its 60 bytes is still shown.
	why, drop := great.status()
	if !strings.Contains(why, "of all clusters") || drop {
		t.Fatalf("who takes most is not cut off: %q, %t", why, drop)
	}
	takes(t, small, "b", 30)
	if why, _ := small.status(); why != "" {
		t.Errorf("a cluster is cut off for what is left of another one: %s", why)
	}
	if _, drop := great.status(); !drop {
		t.Error("what is left of the cluster that was cut off is kept")
	}
	takes(t, local, "b", 80)
	if why, _ := local.status(); why != "" {
		t.Errorf("the hub's own cluster is cut off: %s", why)
	}
}

// TestCutOffPauseDoubles: the pauses before a cluster that is cut off repeatedly is read again double up to an hour. They start
// from the minimum again when the cluster was current in between.
func TestCutOffPauseDoubles(t *testing.T) {
	t.Parallel()
	at := clocktesting.NewFakeClock(noon)
	m, _ := newTestMember(t, Options{Members: &Members{Parse: func([]byte) (*rest.Config, error) { return nil, errors.New("not today") }}}, logr.Discard())
	m.env.clock, m.spec = at, clusterSpec{name: "edge", secret: &corev1.ObjectReference{}}
	for _, c := range []struct{ current, want time.Duration }{
		{time.Minute, minCutOff}, {time.Minute, 10 * time.Minute}, {time.Minute, 20 * time.Minute}, {time.Minute, 40 * time.Minute}, {time.Minute, maxCutOff}, {time.Minute, maxCutOff},
		{time.Hour, minCutOff},
	} {
		m.state = ClusterState{Name: "edge", Reachability: Connected, Since: at.Now().Add(-c.current)}
		m.quota.newMeter().cutOff("too much")
		m.enforceBudget(t.Context())
		if got := m.cutOff.until.Sub(at.Now()); got != c.want {
			t.Errorf("after it was current for %s, it is read again after %s, want %s", c.current, got, c.want)
		}
		at.SetTime(m.cutOff.until)
		m.enforceBudget(t.Context())
	}
}

// TestCutOffClusterKeepsStaleBundles: the bundles of a cluster that is cut off are shown as Unknown, with the reason, until the
// cluster is read again.
func TestCutOffClusterKeepsStaleBundles(t *testing.T) {
	t.Parallel()
	at := clocktesting.NewFakeClock(noon)
	m, s := newTestMember(t, Options{}, logr.Discard(), "web")
	m.env.clock = at
	m.setState(ClusterState{Name: "edge", Reachability: Connected, Since: noon})
	m.syncer.resync(s)
	m.quota.newMeter().cutOff("it sends too much")
	m.reconcile(t.Context())
	key := BundleKey{Cluster: "edge", Namespace: "shop", Name: "web"}
	b := m.env.view.Bundle(key)
	state, _ := m.env.view.State("edge")
	if b == nil || !b.Stale || state.Reachability != OverBudget || state.Message != "it sends too much" || m.env.view.CompleteFor("edge", "shop") {
		t.Fatalf("it is %s: %s; its bundle is %v", state.Reachability, state.Message, b)
	}
	if !m.cutOff.until.Equal(noon.Add(minCutOff)) {
		t.Errorf("it is read again at %s", m.cutOff.until)
	}
}

// TestRateOfChangesIsLimited: a cluster that changes faster than allowed is slowed down, and cut off after a while. A cluster
// with quiet periods is not.
func TestRateOfChangesIsLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		qs := &quotas{hard: Budget{Changes: 100}, clock: clock.RealClock{}}
		edge := qs.register("edge", false, func() {})
		m := edge.newMeter()
		change := func(times int) time.Duration {
			begin := time.Now()
			for range times {
				if err := m.awaitChange(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(begin)
		}
		for range 10 {
			if took := change(1000); took != 0 {
				t.Fatalf("what has been saved up in ten seconds takes %s", took)
			}
			if took := change(2000); took < 19*time.Second || took > 21*time.Second {
				t.Fatalf("2000 changes more take %s", took)
			}
			<-time.After(10 * time.Second)
		}
		if why, _ := edge.status(); why != "" {
			t.Fatalf("a cluster that is quiet in between is cut off: %s", why)
		}
		change(1000 + 31*100)
		if why, _ := edge.status(); why != "it changes more than 100 times a second" {
			t.Errorf("a cluster that changes too often is not cut off: %q", why)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if m.awaitChange(stopped) == nil {
			t.Error("who has stopped waits")
		}
	})
}
