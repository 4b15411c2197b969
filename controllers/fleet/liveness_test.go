package fleet

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/controllers/observe"
)

// tick is the interval of a simulation.
const tick = 250 * time.Millisecond

// weather is the condition of a simulated cluster for a time.
type weather struct {
	// dead is true when connections break and new ones are refused. black is true when there are neither responses nor refusals.
	dead, black bool
	// dripping is true when bundles arrive all the time, but the list never ends.
	dripping bool
	// delay is the time until a response.
	delay time.Duration
	// denied and unserved are responses to all requests for bundles. failing is another failure.
	denied, unserved, failing bool
	// deniedLease is the same for the Lease.
	deniedLease bool
	// lostLease is true when the watch of the Lease has ended, and no new one begins.
	lostLease bool
	// silentMonitor is true when the Lease is not renewed, and noLease when it does not exist.
	silentMonitor, noLease bool
	// foreign is true when no bundle is that of a monitor of ours.
	foreign bool
}

// simulation simulates a cluster and the hub's connection to it.
type simulation struct {
	liveness *liveness
	now      time.Time
	weather
	watching, leasing bool
	// asked is the time since which the bundles have been requested.
	asked time.Time
	// probing is the time at which the current probe gets a response or times out. next is the time from which another one may
	// begin.
	probing, next time.Time
	renewals      int
	// proven is the last time at which the known bundles were confirmed as current. owned is the time since which there are
	// bundles of a monitor of ours.
	proven, owned time.Time
	// renewed is the last time at which the hub could see a renewal of the Lease, or at which the cluster was not Connected.
	renewed time.Time
	seen    []Reachability
}

func newSimulation(local bool) *simulation {
	s := &simulation{now: noon, owned: noon, proven: noon, asked: noon, liveness: newLiveness(local, 10*time.Second, noon)}
	s.liveness.synced = true
	return s
}

// run lets time pass.
func (s *simulation) run(d time.Duration, w weather) *simulation {
	s.weather = w
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(tick)
		s.step()
	}
	return s
}

func (s *simulation) step() {
	if s.liveness.own, s.liveness.foreign = !s.foreign, s.foreign; s.foreign {
		s.owned = s.now
	}
	s.streams()
	s.probes()
	if s.watching && s.leasing && !s.black && !s.dead {
		s.lease()
	}
	v := s.liveness.assess(s.now)
	if v.reachability != Connected {
		s.renewed = s.now
	}
	if len(s.seen) == 0 || s.seen[len(s.seen)-1] != v.reachability {
		s.seen = append(s.seen, v.reachability)
	}
	if s.watching && !s.black && !s.dead && (s.foreign || s.liveness.lastContact.Equal(s.now)) {
		s.proven = s.now
	}
}

// bundles and leases report an event of the watch of bundles and of the Lease.
func (s *simulation) bundles(e observe.Event) { bundlesEvent(s.liveness, e, s.now) }
func (s *simulation) leases(e observe.Event)  { leasesEvent(s.liveness, e, s.now) }

// bundlesEvent reports an event of the watch of bundles.
func bundlesEvent(l *liveness, e observe.Event, now time.Time) {
	l.bundles, _ = observe.Track(l.bundles, e, now, bundleRules)
	answeredBy(l, e, now)
}

// leasesEvent reports an event of the watch of the Lease.
func leasesEvent(l *liveness, e observe.Event, now time.Time) {
	l.leases, _ = observe.Track(l.leases, e, now, leaseRules)
	answeredBy(l, e, now)
}

// answeredBy reports that the API server has responded, if the event is a response.
func answeredBy(l *liveness, e observe.Event, now time.Time) {
	if e.Kind == observe.Listed || e.Kind == observe.Refused || e.Kind == observe.Failed {
		l.answered(now)
	}
}

// readAll reports that everything has been read, by a watch that continues.
func readAll(event func(observe.Event)) {
	event(observe.Event{Kind: observe.Watching})
	event(observe.Event{Kind: observe.Listed})
}

func refusedEvent(reason observe.Reason, message string) observe.Event {
	return observe.Event{Kind: observe.Refused, Reason: reason, Message: message}
}

// cut ends the watches, and refuses new ones.
func (s *simulation) cut() {
	if s.watching || s.leasing {
		s.bundles(observe.Event{Kind: observe.Ended})
		s.leases(observe.Event{Kind: observe.Ended})
		s.watching, s.leasing, s.asked = false, false, s.now
	}
	s.liveness.unanswered(s.now, "connection refused")
}

// streams ends and resumes the watches.
func (s *simulation) streams() {
	s.bundles(observe.Event{})
	s.leases(observe.Event{})
	if s.dead {
		s.cut()
	}
	if s.dead || s.black {
		return
	}
	s.readBundles()
	switch {
	case s.deniedLease:
		s.leases(refusedEvent(observe.Forbidden, "no right to see the Lease"))
		s.leasing = false
	case s.lostLease:
		if s.leasing {
			s.leases(observe.Event{Kind: observe.Ended})
		}
		s.leasing = false
	case !s.leasing && s.watching && s.now.Sub(s.asked) >= tick: // After an outage the bundles are read before the Lease.
		readAll(s.leases)
		s.leasing = true
	}
}

// readBundles ends and resumes the watch of bundles.
func (s *simulation) readBundles() {
	fails := true
	switch {
	case s.denied:
		s.bundles(refusedEvent(observe.Forbidden, "no right"))
	case s.unserved:
		s.bundles(refusedEvent(observe.NotServed, "no CRD"))
	case s.failing:
		s.bundles(observe.Event{Kind: observe.Failed, Message: "no storage"})
	case s.dripping:
		s.liveness.answered(s.now)
	default:
		fails = false
	}
	if fails {
		s.watching, s.asked = false, s.now
	} else if !s.watching && s.now.Sub(s.asked) >= s.delay {
		readAll(s.bundles)
		s.watching = true
	}
}

// probes begins and ends probes.
func (s *simulation) probes() {
	switch {
	case !s.probing.IsZero() && !s.now.Before(s.probing):
		var err error
		s.probing, s.next = time.Time{}, s.now.Add(probeInterval)
		switch {
		case s.dead:
			err = errors.New("connection refused")
		case s.black:
			err = errors.New("no answer in time")
		}
		if err != nil {
			s.next = s.now.Add(time.Second)
		}
		s.liveness.probed(s.now, err)
	case s.probing.IsZero() && !s.now.Before(s.next):
		s.probing = s.now.Add(s.delay)
		if s.black {
			s.probing = s.now.Add(12 * time.Second)
		}
	}
}

// lease reports the Lease.
func (s *simulation) lease() {
	switch {
	case s.noLease:
		s.liveness.leaseObserved("", 0, s.now)
	case s.silentMonitor:
		s.liveness.leaseObserved(fmt.Sprint(s.renewals), 15*time.Second, s.now)
	case s.now.Sub(s.liveness.lease.renewed) >= 3*time.Second || !s.liveness.lease.present:
		s.renewals++
		s.renewed = s.now
		s.liveness.leaseObserved(fmt.Sprint(s.renewals), 15*time.Second, s.now)
		s.liveness.answered(s.now)
	}
}

func TestLiveness(t *testing.T) {
	t.Parallel()
	type step struct {
		lasts time.Duration
		weather
	}
	well := weather{}
	cases := map[string]struct {
		local bool
		steps []step
		// want are the expected states in their order.
		want []Reachability
		// message is part of the message at the end.
		message string
	}{
		"all is well":                               {steps: []step{{time.Hour, well}}, want: []Reachability{Connected}},
		"all is well without a monitor of ours":     {steps: []step{{time.Hour, weather{foreign: true, noLease: true}}}, want: []Reachability{Connected}},
		"a slow cluster":                            {steps: []step{{time.Hour, weather{delay: 10 * time.Second}}}, want: []Reachability{Connecting, Connected}},
		"a slow cluster without a monitor of ours":  {steps: []step{{time.Hour, weather{delay: 10 * time.Second, foreign: true, noLease: true}}}, want: []Reachability{Connecting, Connected}},
		"an API server that is restarted":           {steps: []step{{time.Minute, well}, {5 * time.Second, weather{dead: true}}, {time.Minute, well}}, want: []Reachability{Connected}},
		"an API server that is killed":              {steps: []step{{time.Minute, well}, {18 * time.Second, weather{dead: true}}}, want: []Reachability{Connected, Unreachable}, message: "does not answer: connection refused"},
		"and comes back":                            {steps: []step{{time.Minute, well}, {time.Hour, weather{dead: true}}, {20 * time.Second, well}}, want: []Reachability{Connected, Unreachable, Connected}},
		"and comes back without its monitor":        {steps: []step{{time.Minute, well}, {time.Hour, weather{dead: true}}, {time.Minute, weather{silentMonitor: true}}}, want: []Reachability{Connected, Unreachable, MonitorStale}},
		"and its monitor takes a while":             {steps: []step{{time.Minute, well}, {time.Hour, weather{dead: true}}, {30 * time.Second, weather{silentMonitor: true}}, {30 * time.Second, well}}, want: []Reachability{Connected, Unreachable, Connected}},
		"a black hole":                              {steps: []step{{time.Minute, well}, {18 * time.Second, weather{black: true}}}, want: []Reachability{Connected, Unreachable}, message: "does not answer"},
		"a black hole before a cluster that idles":  {steps: []step{{time.Minute, weather{foreign: true, noLease: true}}, {30 * time.Second, weather{foreign: true, noLease: true, black: true}}}, want: []Reachability{Connected, Unreachable}},
		"a black hole that closes soon":             {steps: []step{{time.Minute, well}, {10 * time.Second, weather{black: true}}, {time.Minute, well}}, want: []Reachability{Connected}},
		"a first list that does not end":            {steps: []step{{59 * time.Second, weather{dripping: true}}, {10 * time.Minute, weather{dripping: true}}}, want: []Reachability{Connecting, Unreachable}, message: "not all of its bundles have been read within 1m0s"},
		"a first list that ends at last":            {steps: []step{{2 * time.Minute, weather{dripping: true}}, {time.Minute, well}}, want: []Reachability{Connecting, Unreachable, Connected}},
		"a first list that is slow":                 {steps: []step{{59 * time.Second, weather{dripping: true}}, {time.Minute, well}}, want: []Reachability{Connecting, Connected}},
		"nothing is there from the start":           {steps: []step{{25 * time.Second, weather{dead: true}}}, want: []Reachability{Connecting, Unreachable}, message: "connection refused"},
		"a right is lost":                           {steps: []step{{time.Minute, well}, {11 * time.Second, weather{denied: true}}, {5 * time.Second, well}}, want: []Reachability{Connected, Forbidden, Connected}},
		"an API server that does not know yet":      {steps: []step{{time.Minute, well}, {5 * time.Second, weather{dead: true}}, {4 * time.Second, weather{denied: true}}, {time.Minute, well}}, want: []Reachability{Connected}},
		"credentials refused for the Lease first":   {steps: []step{{time.Minute, well}, {3 * time.Second, weather{deniedLease: true}}, {15 * time.Second, weather{deniedLease: true, denied: true}}, {20 * time.Second, well}}, want: []Reachability{Connected, Forbidden, Connected}},
		"a right was never there":                   {steps: []step{{time.Minute, weather{denied: true}}}, want: []Reachability{Connecting, Forbidden}, message: "no right"},
		"no CRD":                                    {steps: []step{{time.Minute, weather{unserved: true}}}, want: []Reachability{Connecting, MonitorMissing}, message: "no CRD"},
		"a conversion webhook fails":                {steps: []step{{time.Minute, well}, {21 * time.Second, weather{failing: true}}, {5 * time.Second, well}}, want: []Reachability{Connected, Unreachable, Connected}},
		"a monitor that ends":                       {steps: []step{{time.Minute, well}, {45 * time.Second, weather{silentMonitor: true}}}, want: []Reachability{Connected, MonitorStale}, message: "40s"},
		"a monitor that has ended, unnoticed":       {steps: []step{{time.Minute, well}, {30 * time.Second, weather{silentMonitor: true}}, {14 * time.Second, weather{silentMonitor: true, failing: true}}}, want: []Reachability{Connected, MonitorStale}},
		"a monitor that ends before a black hole":   {steps: []step{{time.Minute, well}, {25 * time.Second, weather{silentMonitor: true}}, {30 * time.Second, weather{silentMonitor: true, black: true}}}, want: []Reachability{Connected, Unreachable}},
		"a monitor that is restarted":               {steps: []step{{time.Minute, well}, {35 * time.Second, weather{silentMonitor: true}}, {time.Minute, well}}, want: []Reachability{Connected}},
		"a monitor that ends and comes back":        {steps: []step{{time.Minute, well}, {time.Hour, weather{silentMonitor: true}}, {time.Second, well}}, want: []Reachability{Connected, MonitorStale, Connected}},
		"a Lease that is deleted":                   {steps: []step{{time.Minute, well}, {11 * time.Second, weather{noLease: true}}, {4 * time.Second, well}}, want: []Reachability{Connected, MonitorMissing, Connected}},
		"a Lease that is made again":                {steps: []step{{time.Minute, well}, {5 * time.Second, weather{noLease: true}}, {time.Minute, well}}, want: []Reachability{Connected}},
		"a Lease that was never there":              {steps: []step{{time.Minute, weather{noLease: true}}}, want: []Reachability{Connecting, MonitorMissing}, message: "no Lease"},
		"a Lease that may not be seen":              {steps: []step{{time.Minute, weather{deniedLease: true}}}, want: []Reachability{Connecting, MonitorMissing}, message: "no right to see the Lease"},
		"a Lease that is not watched any more":      {steps: []step{{time.Minute, well}, {2 * time.Minute, weather{lostLease: true}}}, want: []Reachability{Connected, MonitorMissing}},
		"a Lease lost shortly before a black hole":  {steps: []step{{time.Minute, well}, {30 * time.Second, weather{lostLease: true}}, {30 * time.Second, weather{lostLease: true, black: true}}}, want: []Reachability{Connected, Unreachable}},
		"a Lease that may not be seen and need not": {steps: []step{{time.Minute, weather{deniedLease: true, foreign: true}}}, want: []Reachability{Connected}},
		"the hub's own cluster is never away":       {local: true, steps: []step{{time.Minute, well}, {time.Hour, weather{dead: true}}, {time.Minute, well}}, want: []Reachability{Connected}},
		"the hub's own monitor does not outlive it": {local: true, steps: []step{{time.Minute, well}, {time.Hour, weather{dead: true}}, {time.Minute, weather{silentMonitor: true}}}, want: []Reachability{Connected, MonitorStale}},
		"the hub's own monitor ends":                {local: true, steps: []step{{time.Minute, well}, {time.Hour, weather{silentMonitor: true}}}, want: []Reachability{Connected, MonitorStale}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSimulation(tc.local)
			for _, step := range tc.steps {
				s.run(step.lasts, step.weather)
			}
			if got, want := fmt.Sprint(s.seen), fmt.Sprint(tc.want); got != want {
				t.Errorf("went through %s, want %s", got, want)
			}
			if !strings.Contains(s.liveness.assessment.message, tc.message) {
				t.Errorf("the message is %q, want %q in it", s.liveness.assessment.message, tc.message)
			}
		})
	}
}

// TestConnectedIsNeverStaleForLong asserts for all faults of a cluster: after a minute without faults it is Connected. It is
// never Connected for long after the last confirmation that its data is current, also with one fault after another, or without a
// live monitor.
func TestConnectedIsNeverStaleForLong(t *testing.T) {
	t.Parallel()
	var limit = probeInterval + 10*time.Second + probeGrace + bundleRules.Grace
	rapid.Check(t, func(t *rapid.T) {
		s := newSimulation(false)
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			w := weather{
				dead: rapid.IntRange(0, 3).Draw(t, "dead") == 0, black: rapid.IntRange(0, 3).Draw(t, "black") == 0,
				denied: rapid.IntRange(0, 5).Draw(t, "denied") == 0, unserved: rapid.IntRange(0, 5).Draw(t, "unserved") == 0, failing: rapid.IntRange(0, 5).Draw(t, "failing") == 0,
				deniedLease: rapid.IntRange(0, 5).Draw(t, "deniedLease") == 0, lostLease: rapid.IntRange(0, 5).Draw(t, "lostLease") == 0, silentMonitor: rapid.IntRange(0, 3).Draw(t, "silent") == 0, noLease: rapid.IntRange(0, 3).Draw(t, "none") == 0,
				foreign: rapid.IntRange(0, 2).Draw(t, "foreign") == 0, delay: time.Duration(rapid.IntRange(0, 9).Draw(t, "delay")) * time.Second,
			}
			for range rapid.IntRange(1, 240).Draw(t, "ticks") {
				s.run(tick, w)
				if s.liveness.assessment.reachability == Connected {
					if age := s.now.Sub(s.proven); age > limit {
						t.Fatalf("Connected %s after it was proven to be current, in %+v", age, w)
					}
					// A missing Lease is waited for, and so is the response of an API server that may be silent itself.
					if silent := s.now.Sub(later(s.renewed, s.owned)); !w.foreign && silent > minLeaseTimeout+observe.ConfirmAfter+leaseRules.Grace {
						t.Fatalf("Connected though the monitor has been silent for %s", silent)
					}
				}
			}
		}
		s.run(time.Minute, weather{})
		if v := s.liveness.assessment; v.reachability != Connected {
			t.Fatalf("all is well for a minute, and it is %+v", v)
		}
	})
}

func TestRejectedCredentialsAreForbiddenDespiteOpenWatch(t *testing.T) {
	t.Parallel()
	rejected := refusedEvent(observe.Unauthorized, "401")
	for name, bundles := range map[string]func(l *liveness, second int, now time.Time){
		"the watch of bundles goes on": func(*liveness, int, time.Time) {},
		"it ends and is let in again": func(l *liveness, _ int, now time.Time) {
			bundlesEvent(l, observe.Event{Kind: observe.Ended}, now)
			readAll(func(e observe.Event) { bundlesEvent(l, e, now) })
		},
		"it ends": func(l *liveness, second int, now time.Time) {
			if second > 5 {
				bundlesEvent(l, rejected, now)
			}
		},
		"it cannot be opened": func(l *liveness, second int, now time.Time) {
			if second > 5 {
				bundlesEvent(l, observe.Event{Kind: observe.Failed, Message: "no storage"}, now)
			}
		},
		"only probes tell": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Unix(1000, 0)
			l := newLiveness(false, 10*time.Second, now)
			l.own, l.synced = true, true
			readAll(func(e observe.Event) { bundlesEvent(l, e, now) })
			l.leaseObserved("1", 15*time.Second, now)
			readAll(func(e observe.Event) { leasesEvent(l, e, now) })
			now = now.Add(time.Second)
			if v := l.assess(now); v.reachability != Connected {
				t.Fatalf("it is %s to begin with: %s", v.reachability, v.message)
			}
			refused := now
			for second := range 60 {
				now = refused.Add(time.Duration(second) * time.Second)
				bundlesEvent(l, observe.Event{}, now)
				if bundles == nil {
					l.probed(now, errUnauthorized)
				} else {
					leasesEvent(l, rejected, now)
					bundles(l, second, now)
				}
				want := Connected
				if second >= int(observe.ConfirmAfter/time.Second) {
					want = Forbidden
				}
				if v := l.assess(now); v.reachability != want {
					t.Fatalf("after %d seconds it is %s (%s), want %s", second, v.reachability, v.message, want)
				}
			}
			if seen := l.lastSeen(Forbidden); seen.After(refused.Add(6 * time.Second)) {
				t.Errorf("it was last seen %s after its credentials were rejected", seen.Sub(refused))
			}
		})
	}
}
