package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/healthscope/healthscope/controllers/observe"
)

// rotation is a member whose credentials are renewed.
type rotation struct {
	*member

	t     *testing.T
	clock *clocktesting.FakeClock
	seen  []Reachability
}

func newRotation(t *testing.T) *rotation {
	t.Helper()
	m, _ := newTestMember(t, Options{}, logr.Discard())
	r := &rotation{member: m, t: t, clock: clocktesting.NewFakeClock(noon)}
	m.env.clock, m.spec = r.clock, clusterSpec{name: "edge", secret: &corev1.ObjectReference{UID: "edge"}}
	return r
}

// connected returns a connection that has received nothing yet, with a bundle in its store for later.
func (r *rotation) connected(t *testing.T) *connection {
	t.Helper()
	s := newStore("edge")
	put(t, s, "web", "1")
	c := silent(r.clock)
	c.store = s
	return c
}

// read reports that the bundles of a connection have been read.
func (r *rotation) read(c *connection) {
	c.updateLiveness(readBundles)
	r.reconcile(r.t.Context())
}

// lease reports that the Lease has been read over the current connection, by a watch that has caught up.
func (r *rotation) lease(fingerprint string) {
	r.current.updateLiveness(func(l *liveness, now time.Time) {
		l.leaseObserved(fingerprint, 15*time.Second, now)
		readAll(func(e observe.Event) { leasesEvent(l, e, now) })
		leasesEvent(l, observe.Event{}, now.Add(leaseRules.CatchUp))
	})
	r.reconcile(r.t.Context())
}

// advance lets time pass, and calls deliver for connections every second.
func (r *rotation) advance(d time.Duration, deliver func(l *liveness, now time.Time), connections ...*connection) {
	for range d / time.Second {
		r.clock.SetTime(r.clock.Now().Add(time.Second))
		for _, l := range connections {
			l.updateLiveness(deliver)
		}
		r.reconcile(r.t.Context())
		if len(r.seen) == 0 || r.seen[len(r.seen)-1] != r.state.Reachability {
			r.seen = append(r.seen, r.state.Reachability)
		}
	}
}

// Possible responses to the requests of a connection.
var (
	answers  = func(l *liveness, now time.Time) { l.answered(now) }
	unserves = func(l *liveness, now time.Time) {
		bundlesEvent(l, refusedEvent(observe.NotServed, "not served"), now)
	}
	rejects = func(l *liveness, now time.Time) {
		bundlesEvent(l, refusedEvent(observe.Unauthorized, "401"), now)
		leasesEvent(l, refusedEvent(observe.Unauthorized, "401"), now)
	}
	dies = func(l *liveness, now time.Time) {
		bundlesEvent(l, observe.Event{Kind: observe.Ended}, now)
		leasesEvent(l, observe.Event{Kind: observe.Ended}, now)
		l.unanswered(now, "connection refused")
	}
)

// readBundles reports that all bundles have been read, by a watch that has caught up.
func readBundles(l *liveness, now time.Time) {
	readAll(func(e observe.Event) { bundlesEvent(l, e, now) })
	bundlesEvent(l, observe.Event{}, now.Add(bundleRules.CatchUp))
}

// TestNewCredentialsAreUsedWithoutServedBundles renews the credentials of a cluster that no longer serves bundles. The old
// credentials expire, so the new ones must be in use before that, but not while bundles are read with the old ones.
func TestNewCredentialsAreUsedWithoutServedBundles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old  func(l *liveness, now time.Time)
		used bool
	}{
		"with the CRD went the bundles":      {unserves, true},
		"the old token has ended":            {rejects, true},
		"the old server is there no more":    {dies, true},
		"the old server serves bundles":      {answers, false},
		"it does, and its Lease is not read": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRotation(t)
			old := r.connected(t)
			r.next = old
			r.read(old)
			if c.old != nil {
				r.lease("1")
				r.advance(time.Second, answers, old)
				r.advance(30*time.Second, c.old, old)
			}
			r.next = r.connected(t)
			renewed := r.next
			r.advance(11*time.Second, unserves, renewed)
			if used := r.current == renewed; used != c.used {
				t.Fatalf("the new credentials are in use: %t, and the cluster is %s: %s", used, r.state.Reachability, r.state.Message)
			}
			if failed := r.env.events.pending["edge"].reason == eventRotationFailed; failed == c.used || strings.Contains(r.state.Message, "the new kubeconfig") == c.used {
				t.Errorf("it is recorded that the rotation has failed: %t; message %q", failed, r.state.Message)
			}
			if !c.used {
				return
			}
			for range 20 {
				old.updateLiveness(rejects)
				r.advance(time.Second, unserves, renewed)
			}
			if r.state.Reachability != MonitorMissing {
				t.Errorf("once the old token has ended the cluster is %s", r.state.Reachability)
			}
			r.read(renewed)
			r.lease("2")
			if b := r.env.view.Bundle(keyOf("edge", "web")); r.state.Reachability != Connected || b == nil || b.Stale {
				t.Errorf("with the CRD back the cluster is %s, and its bundle %+v", r.state.Reachability, b)
			}
		})
	}
}

// TestRotationAfterOutageIsNotMonitorStale renews credentials that were rejected for longer than the duration of the Lease. Only
// a monitor that does not renew the Lease from then on is stale.
func TestRotationAfterOutageIsNotMonitorStale(t *testing.T) {
	t.Parallel()
	for fingerprint, c := range map[string]struct {
		after time.Duration
		want  []Reachability
	}{
		"2": {time.Second, []Reachability{Connected, Forbidden, Connected}},
		"1": {minLeaseTimeout + time.Second, []Reachability{Connected, Forbidden, MonitorStale}},
	} {
		r := newRotation(t)
		old := r.connected(t)
		r.next = old
		r.read(old)
		r.lease("1")
		r.advance(time.Second, answers, old)
		r.advance(2*time.Minute, rejects, old)
		r.next = r.connected(t)
		r.read(r.next)
		r.advance(3*time.Second, answers, r.current)
		r.lease(fingerprint)
		r.advance(c.after, answers, r.current)
		if !slices.Equal(r.seen, c.want) {
			t.Errorf("with the Lease %q went through %v, want %v", fingerprint, r.seen, c.want)
		}
	}
}

// TestOutageWithOpenWatchesIsNotMonitorStale continues the watches after an outage that was longer than the duration of the
// Lease. The hub may notice that the API server responds before it sees a renewal of the Lease.
func TestOutageWithOpenWatchesIsNotMonitorStale(t *testing.T) {
	t.Parallel()
	r := newRotation(t)
	r.next = r.connected(t)
	r.read(r.next)
	r.lease("1")
	r.advance(time.Second, answers, r.current)
	r.advance(2*time.Minute, func(*liveness, time.Time) {}, r.current)
	r.advance(3*time.Second, answers, r.current)
	r.lease("2")
	r.advance(time.Second, answers, r.current)
	if want := []Reachability{Connected, Unreachable, Connected}; !slices.Equal(r.seen, want) {
		t.Errorf("went through %v, want %v", r.seen, want)
	}
}

// TestLateLeaseReadIsNotMonitorMissing has an API server that was down for longer than the duration of the Lease. The bundles
// are read before the Lease. Only a Lease that cannot be read for a while longer is missing.
func TestLateLeaseReadIsNotMonitorMissing(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration][]Reachability{
		3 * time.Second: {Connected, Unreachable, Connected},
		time.Minute:     {Connected, Unreachable, MonitorMissing, Connected},
	} {
		r := newRotation(t)
		r.next = r.connected(t)
		r.read(r.next)
		r.lease("1")
		r.advance(time.Second, answers, r.current)
		r.advance(time.Minute, dies, r.current)
		r.advance(time.Second, answers, r.current)
		r.current.updateLiveness(readBundles)
		r.advance(after, answers, r.current)
		r.lease("2")
		r.advance(time.Second, answers, r.current)
		if !slices.Equal(r.seen, want) {
			t.Errorf("with the Lease after %s went through %v, want %v", after, r.seen, want)
		}
	}
}
