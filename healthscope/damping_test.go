package healthscope_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope"
)

// life judges the same objects repeatedly, as a controller does that keeps its last judgement.
type life struct {
	policy healthscope.Policy
	last   healthscope.Judgement
}

// look judges results, and returns the first member in the order of keys.
func (l *life) look(now time.Time, results ...healthscope.Result) healthscope.Member {
	l.policy.WithHistory(results, l.last.Members)
	l.last = healthscope.Judge(results, l.policy, now)
	return l.last.Members[0]
}

// seconds returns a duration of n seconds.
func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// spell is a period in which an object is in one state.
type spell struct {
	state  healthscope.State
	length time.Duration
}

// live judges a Service during spells, at each time at which a controller would judge it, and at one more. It passes every
// judgement to check, and returns the end of the last spell.
func (l *life) live(t *rapid.T, begin time.Time, spells []spell, check func(now time.Time, raw healthscope.State, m healthscope.Member)) time.Time {
	for _, s := range spells {
		raw := result("", "Service", "web", s.state, since(begin), because("Word", "words"))
		end := begin.Add(s.length)
		check(begin, s.state, l.look(begin, raw))
		between := begin.Add(time.Duration(rapid.Int64Range(0, int64(s.length)-1).Draw(t, "between")))
		for looks := 0; ; looks++ {
			next := l.last.NextCheck
			if next.IsZero() || !next.Before(end) {
				break
			}
			if looks > 5 {
				t.Fatalf("looks at %v again and again", next)
			}
			check(next, s.state, l.look(next, raw))
			between = begin // The judgement at that time would be in the past.
		}
		if between.After(begin) {
			check(between, s.state, l.look(between, raw))
		}
		begin = end
	}
	return begin
}

// drawSpells draws alternating spells: those in one of the short states are shorter than limit, and those in the other state
// have any length.
func drawSpells(t *rapid.T, short []healthscope.State, limit time.Duration, other healthscope.State) []spell {
	var spells []spell
	for range rapid.IntRange(1, 8).Draw(t, "turns") {
		spells = append(spells, spell{rapid.SampledFrom(short).Draw(t, "state"), time.Duration(rapid.Int64Range(int64(time.Second), int64(limit)-1).Draw(t, "short"))},
			spell{other, seconds(rapid.IntRange(1, 300).Draw(t, "long"))})
	}
	return spells
}

func TestFailuresShorterThanTheGraceDoNotShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grace := seconds(rapid.IntRange(2, 90).Draw(t, "grace"))
		l := life{policy: healthscope.Policy{FailureGrace: grace, RecoveryHold: seconds(rapid.IntRange(0, 90).Draw(t, "hold"))}}
		spells := append([]spell{{healthscope.Ready, time.Hour}}, drawSpells(t, []healthscope.State{healthscope.Failed}, grace, healthscope.Ready)...)
		l.live(t, noon, spells, func(now time.Time, raw healthscope.State, m healthscope.Member) {
			if m.State != healthscope.Ready || !m.Since.Equal(noon) || m.Counts != healthscope.Ready {
				t.Fatalf("%v after noon, %s: %s since %v", now.Sub(noon), raw, m.State, m.Since)
			}
			if m.Warning != (raw == healthscope.Failed) {
				t.Fatalf("%v after noon, %s: warning is %v", now.Sub(noon), raw, m.Warning)
			}
		})
	})
}

func TestRecoveriesShorterThanTheHoldDoNotShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hold := seconds(rapid.IntRange(2, 90).Draw(t, "hold"))
		grace := seconds(rapid.IntRange(0, 90).Draw(t, "grace"))
		l := life{policy: healthscope.Policy{RecoveryHold: hold, FailureGrace: grace}}
		failed := l.look(noon, result("", "Service", "web", healthscope.Failed, since(ago(time.Hour)), because("Word", "words")))
		spells := drawSpells(t, []healthscope.State{healthscope.Ready, healthscope.Pending}, hold, healthscope.Failed)
		end := l.live(t, noon, spells, func(now time.Time, raw healthscope.State, m healthscope.Member) {
			if m.State != healthscope.Failed || m.Reason != "Word" || !m.Since.Equal(failed.Since) || m.Counts != healthscope.Failed {
				t.Fatalf("%v after noon, %s: %s %s since %v", now.Sub(noon), raw, m.State, m.Reason, m.Since)
			}
		})
		// A state that lasts is shown exactly when the hold ends.
		l.live(t, end, []spell{{healthscope.Ready, 2 * time.Hour}}, func(now time.Time, _ healthscope.State, m healthscope.Member) {
			want := healthscope.Failed
			if now.Sub(end) >= hold {
				want = healthscope.Ready
			}
			if m.State != want {
				t.Fatalf("ready for %v, held for %v: %s", now.Sub(end), hold, m.State)
			}
		})
		if m := l.last.Members[0]; m.State != healthscope.Ready || !m.Since.Equal(end) {
			t.Fatalf("in the end %s since %v", m.State, m.Since)
		}
	})
}

func TestAFailureThatLastsIsShownWhenTheGraceEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grace := seconds(rapid.IntRange(1, 90).Draw(t, "grace"))
		l := life{policy: healthscope.Policy{FailureGrace: grace}}
		before := rapid.SampledFrom([]healthscope.State{healthscope.Ready, healthscope.Pending, healthscope.Unknown}).Draw(t, "before")
		begin := l.live(t, noon, []spell{{before, time.Minute}}, func(time.Time, healthscope.State, healthscope.Member) {})
		l.live(t, begin, []spell{{healthscope.Failed, time.Hour}}, func(now time.Time, _ healthscope.State, m healthscope.Member) {
			if (m.State == healthscope.Failed) != (now.Sub(begin) >= grace) {
				t.Fatalf("failed for %v, grace of %v: %s", now.Sub(begin), grace, m.State)
			}
		})
		if m := l.last.Members[0]; m.State != healthscope.Failed || !m.Since.Equal(begin) {
			t.Fatalf("in the end %s since %v", m.State, m.Since)
		}
	})
}

func TestWithoutDampingEveryStateShowsAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l life
		states := []healthscope.State{healthscope.Ready, healthscope.Pending, healthscope.Unknown, healthscope.Terminating}
		l.live(t, noon, drawSpells(t, states, time.Minute, healthscope.Failed), func(now time.Time, raw healthscope.State, m healthscope.Member) {
			if m.State != raw || m.Since.After(now) {
				t.Fatalf("%s: %s since %v", raw, m.State, m.Since)
			}
		})
	})
}

// TestAWorkloadThatCrashesInALoopStaysFailed has a crash loop that takes pod and workload through every state repeatedly.
func TestAWorkloadThatCrashesInALoopStaysFailed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := life{policy: healthscope.Policy{RecoveryHold: time.Minute, PendingTimeout: time.Hour}}
		owner := of("apps", "Deployment", "web")
		crash := because("CrashLoopBackOff", `container "web": CrashLoopBackOff`)
		now := noon
		l.look(now, deployment("web", healthscope.Pending, since(now)), pod("web-1", healthscope.Failed, owner, since(now), crash))
		var pending time.Time
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			for _, step := range []struct{ workload, pod healthscope.State }{
				{healthscope.Pending, healthscope.Pending}, {healthscope.Ready, healthscope.Ready}, {healthscope.Pending, healthscope.Failed},
			} {
				now = now.Add(seconds(rapid.IntRange(1, 59).Draw(t, "step")))
				at := now
				if step.workload == healthscope.Pending && !pending.IsZero() {
					at = pending
				}
				pending = time.Time{}
				if step.pod == healthscope.Failed { // The workload stays Pending while its pod starts again.
					pending = now
				}
				one := pod("web-1", step.pod, owner, since(now))
				if step.pod == healthscope.Failed {
					crash(&one)
				}
				l.look(now, deployment("web", step.workload, since(at)), one)
				for _, m := range l.last.Members {
					if m.State != healthscope.Failed || m.Reason != "CrashLoopBackOff" || !m.Since.Equal(noon) {
						t.Fatalf("%v after noon, workload %s, pod %s: %s is %s, %s, since %v", now.Sub(noon), step.workload, step.pod, m.Key, m.State, m.Reason, m.Since)
					}
				}
			}
		}
	})
}

func TestHistoryDecidesOnGraceAndHold(t *testing.T) {
	policy := healthscope.Policy{FailureGrace: 30 * time.Second, RecoveryHold: 20 * time.Second}
	evicted, hourAgo := because("Evicted", "no disk"), since(ago(time.Hour))
	uid := func(uid string) func(*healthscope.Result) { return func(r *healthscope.Result) { r.UID = uid } }
	web := of("apps", "Deployment", "web")
	cases := map[string]struct {
		before, now []healthscope.Result
		want        []string
		// since is that of the first member; it is not compared when it is zero.
		since time.Time
	}{
		"a recovery is held": {
			before: []healthscope.Result{pod("a", healthscope.Failed, hourAgo, evicted)}, now: []healthscope.Result{pod("a", healthscope.Ready, since(ago(5*time.Second)))},
			want: []string{"Pod/a Failed Evicted: over for less than 20s: Evicted: no disk", "next check in 15s"}, since: ago(time.Hour),
		},
		"a recovery that was held is held with the same words": {
			before: []healthscope.Result{pod("a", healthscope.Failed, hourAgo, because("Evicted", "over for less than 20s: Evicted: no disk"))},
			now:    []healthscope.Result{pod("a", healthscope.Pending, since(ago(5*time.Second)))},
			want:   []string{"Pod/a Failed Evicted: over for less than 20s: Evicted: no disk", "next check in 15s"},
		},
		"a recovery since an unknown time": {
			before: []healthscope.Result{pod("a", healthscope.Failed, evicted)}, now: []healthscope.Result{pod("a", healthscope.Ready)}, want: []string{"Pod/a Ready"},
		},
		"a status of before a restart holds too": {
			before: []healthscope.Result{pod("a", healthscope.Failed, because("Evicted", ""))}, now: []healthscope.Result{pod("a", healthscope.Ready, uid("u"), since(ago(5*time.Second)))},
			want: []string{"Pod/a Failed Evicted: over for less than 20s: Evicted", "next check in 15s"},
		},
		"another object of the same name": {
			before: []healthscope.Result{pod("a", healthscope.Failed, uid("u"), evicted)}, now: []healthscope.Result{pod("a", healthscope.Ready, uid("v"), since(ago(5*time.Second)))},
			want: []string{"Pod/a Ready"},
		},
		"an object that is deleted": {
			before: []healthscope.Result{pod("a", healthscope.Failed, evicted)}, now: []healthscope.Result{pod("a", healthscope.Terminating, since(ago(5*time.Second)))},
			want: []string{"Pod/a Terminating counts Pending"},
		},
		"what was Pending is Ready at once": {
			before: []healthscope.Result{pod("a", healthscope.Pending)}, now: []healthscope.Result{pod("a", healthscope.Ready, since(noon))}, want: []string{"Pod/a Ready"},
		},
		"a young failure of what was Ready is a warning": {
			before: []healthscope.Result{pod("a", healthscope.Ready, hourAgo)}, now: []healthscope.Result{pod("a", healthscope.Failed, since(ago(10*time.Second)), evicted)},
			want: []string{"Pod/a Ready Evicted: no disk", "next check in 20s"}, since: ago(time.Hour),
		},
		"a young failure of what was Pending is Pending, since that began": {
			before: []healthscope.Result{pod("a", healthscope.Pending, hourAgo)}, now: []healthscope.Result{pod("a", healthscope.Failed, since(ago(10*time.Second)), evicted)},
			want: []string{"Pod/a Pending Evicted: no disk", "next check in 20s"}, since: ago(time.Hour),
		},
		"a young failure of a pod is the cause all the same": {
			before: []healthscope.Result{pod("web-1", healthscope.Ready, web), deployment("web", healthscope.Ready)},
			now:    []healthscope.Result{pod("web-1", healthscope.Failed, web, since(noon), evicted), deployment("web", healthscope.Pending, since(noon))},
			want:   []string{"Pod/web-1 Ready owned Evicted: no disk", "Deployment/web Pending | Pod web-1: no disk", "next check in 30s"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy.WithHistory(tc.now, healthscope.Judge(tc.before, healthscope.Policy{}, noon).Members)
			judgement := healthscope.Judge(tc.now, policy, noon)
			compareLines(t, tc.want, report(judgement))
			first := judgement.Members[0]
			if first.History != nil {
				t.Error("a judgement holds on to the one before")
			}
			if !tc.since.IsZero() && !first.Since.Equal(tc.since) {
				t.Errorf("since %v, want %v", first.Since, tc.since)
			}
		})
	}
	t.Run("a policy that does not damp remembers only what may have served", func(t *testing.T) {
		results := []healthscope.Result{pod("a", healthscope.Ready), pod("b", healthscope.Pending), deployment("c", healthscope.Pending, serving)}
		healthscope.DefaultPolicy().WithHistory(results, []healthscope.Member{
			{Result: pod("a", healthscope.Failed)}, {Result: pod("b", healthscope.Failed)}, {Result: deployment("c", healthscope.Pending)},
		})
		for _, r := range results {
			if want := r.Name == "b"; (r.History != nil) != want {
				t.Errorf("%s: remembers %+v", r.Key, r.History)
			}
		}
	})
}

func TestWithoutAHoldTheWayBackIsImmediate(t *testing.T) {
	for _, begin := range []time.Time{ago(time.Second), noon, noon.Add(time.Hour)} {
		l := life{policy: healthscope.Policy{FailureGrace: time.Minute}}
		l.look(noon, pod("a", healthscope.Failed, since(ago(time.Hour))))
		if m := l.look(noon, pod("a", healthscope.Ready, since(begin))); m.State != healthscope.Ready || !l.last.NextCheck.IsZero() {
			t.Errorf("ready since %v: %s, next check at %v", begin, m.State, l.last.NextCheck)
		}
	}
}

func TestATimeToComeIsNoLaterThanNow(t *testing.T) {
	limits := healthscope.Policy{PendingTimeout: seconds(50), NotPresentGrace: seconds(40), NoStatusGrace: seconds(30), FailureGrace: seconds(20), RecoveryHold: seconds(10)}
	rapid.Check(t, func(t *rapid.T) {
		// Each object occurs once. Of several results, the one that counts depends on their times.
		results := rapid.SliceOfNDistinct(drawResult(true), 1, 8, func(r healthscope.Result) healthscope.Key { return r.Key }).Draw(t, "results")
		now := make([]healthscope.Result, len(results))
		for i := range results {
			results[i].ProgressDeadline = 0
			now[i] = results[i]
			results[i].Since, now[i].Since = noon.Add(seconds(rapid.IntRange(1, 7200).Draw(t, "ahead"))), noon
		}
		ahead, level := healthscope.Judge(results, limits, noon), healthscope.Judge(now, limits, noon)
		if !ahead.NextCheck.Equal(level.NextCheck) {
			t.Fatalf("next check at %v, want %v", ahead.NextCheck, level.NextCheck)
		}
		if next := ahead.NextCheck; !next.IsZero() && (!next.After(noon) || next.After(noon.Add(limits.PendingTimeout))) {
			t.Fatalf("next check at %v", next)
		}
		if a, b := healthscope.Summarize(ahead.Members), healthscope.Summarize(level.Members); a != b {
			t.Fatalf("ahead %+v, now %+v", a, b)
		}
	})
}

// TestRolloutThatGetsOnDoesNotTimeOut judges rollouts of 20 replicas every 40 seconds.
func TestRolloutThatGetsOnDoesNotTimeOut(t *testing.T) {
	for name, tc := range map[string]struct {
		ready func(step int32) int32
		want  healthscope.State
	}{
		"it gets on":               {func(step int32) int32 { return step }, healthscope.Pending},
		"it is stuck":              {func(step int32) int32 { return min(step, 3) }, healthscope.Failed},
		"a replica comes and goes": {func(step int32) int32 { return step % 2 }, healthscope.Failed},
	} {
		l := life{policy: healthscope.DefaultPolicy()}
		var last healthscope.Member
		for step := range int32(20) {
			ready := tc.ready(step)
			r := result("apps", "StatefulSet", "db", healthscope.Pending, since(noon), because(healthscope.ReasonReplicasNotReady, ""))
			r.Progress = &healthscope.Progress{Generation: 1, Ready: ready, Available: ready, Updated: ready}
			last = l.look(noon.Add(seconds(40*int(step))), r)
		}
		if last.State != tc.want {
			t.Errorf("%s: %s, want %s", name, last.State, tc.want)
		}
	}
}

func TestProgressIsEqualAtTheSameMoment(t *testing.T) {
	one := healthscope.Progress{Generation: 1, Ready: 1, At: noon}
	for name, tc := range map[string]struct {
		other healthscope.Progress
		want  bool
	}{
		"the same in another time zone": {healthscope.Progress{Generation: 1, Ready: 1, At: noon.In(time.FixedZone("", 3600))}, true},
		"another moment":                {healthscope.Progress{Generation: 1, Ready: 1, At: noon.Add(1)}, false},
		"another number":                {healthscope.Progress{Generation: 1, Ready: 2, At: noon}, false},
	} {
		if got := one.Equal(tc.other); got != tc.want {
			t.Errorf("%s: equal is %t", name, got)
		}
	}
}
