package fleet

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// TestMembersJudgeBundlesConcurrently: members do not wait for each other. While some members judge all of their bundles, which
// takes long for many bundles, the bundles of others are judged.
func TestMembersJudgeBundlesConcurrently(t *testing.T) {
	t.Parallel()
	e := &environment{view: newView("local"), clock: clock.RealClock{}}
	start := func(name string) *member {
		m := newMember(e, name, false, nil, logr.Discard())
		m.publish()
		m.running.Go(func() { m.syncer.run(t.Context()) })
		t.Cleanup(func() {
			m.syncer.queue.ShutDown()
			m.running.Wait()
		})
		return m
	}
	for _, name := range []string{"a", "b", "c"} {
		busy := start(name)
		busy.syncer.mu.Lock() // As while it judges all of its bundles.
		defer busy.syncer.mu.Unlock()
		busy.syncer.changed(types.NamespacedName{Namespace: "shop", Name: "web"})
	}
	quick := start("quick")
	s := newStore("quick")
	quick.syncer.resync(s)
	put(t, s, "web", "1")
	judged, cancel := e.view.Subscribe(Writes)
	defer cancel()
	quick.setState(ClusterState{Name: "quick", Reachability: Connected})
	quick.syncer.changed(types.NamespacedName{Namespace: "shop", Name: "web"})
	select {
	case <-judged.Ready():
	case <-time.After(time.Minute):
		t.Error("a bundle waits for the members that judge all of theirs")
	}
}
