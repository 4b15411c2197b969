package observe

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	noon  = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	rules = Rules{Grace: 20 * time.Second, CatchUp: 500 * time.Millisecond}
)

// Events of tests.
var (
	tick      = Event{}
	listed    = Event{Kind: Listed}
	watching  = Event{Kind: Watching}
	ended     = Event{Kind: Ended}
	expired   = Event{Kind: Expired}
	forbidden = Event{Kind: Refused, Reason: Forbidden, Message: "403"}
	rejected  = Event{Kind: Refused, Reason: Unauthorized, Message: "401"}
	notServed = Event{Kind: Refused, Reason: NotServed, Message: "404"}
	failed    = Event{Kind: Failed, Message: "no route"}
)

// step is an event, the seconds since the event before it, and the label of the state after it.
type step struct {
	after float64
	event Event
	want  string
}

const ready, pending = "Ready", "Pending"

// label returns the reason of a state, or its status if it has none.
func label(s State) string {
	if s.Reason != "" {
		return string(s.Reason)
	}
	return s.Status.String()
}

func TestTrack(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]step{
		"is read":                         {{0, tick, pending}, {1, listed, ready}, {0, watching, ready}, {1, tick, ready}, {3600, tick, ready}},
		"is read, and not watched":        {{0, listed, ready}, {20, tick, "NoAnswer"}},
		"is read by a watch":              {{0, watching, pending}, {0.4, tick, pending}, {0.1, tick, ready}},
		"an empty watch is no answer":     {{0, watching, pending}, {0.1, ended, pending}, {0, watching, pending}, {0.1, ended, pending}, {60, tick, pending}},
		"a watch is resumed":              {{0, watching, pending}, {1, listed, ready}, {300, ended, ready}, {5, watching, ready}, {16, tick, ready}, {3600, tick, ready}},
		"a watch is lost":                 {{0, watching, pending}, {1, listed, ready}, {300, ended, ready}, {19.9, tick, ready}, {0.1, tick, "NoAnswer"}, {9, watching, "NoAnswer"}, {0.5, tick, ready}},
		"resumed watches end at once":     {{0, watching, pending}, {1, listed, ready}, {300, ended, ready}, {15, watching, ready}, {0.1, ended, ready}, {5, tick, "NoAnswer"}},
		"a watch has to be begun again":   {{0, listed, ready}, {0, watching, ready}, {9, expired, ready}, {5, listed, ready}, {19, watching, ready}, {9, tick, ready}},
		"no answer at first":              {{0, failed, pending}, {19, failed, pending}, {1, failed, "NoAnswer"}, {1, listed, ready}},
		"no answer is confirmed by time":  {{0, failed, pending}, {20, tick, "NoAnswer"}},
		"forbidden from the start":        {{0, forbidden, "Forbidden"}, {1, listed, "Forbidden"}, {0, watching, "Forbidden"}, {0.5, tick, ready}},
		"rejected from the start":         {{0, rejected, "Unauthorized"}, {1, failed, "Unauthorized"}, {19, failed, "Unauthorized"}, {1, failed, "NoAnswer"}},
		"not served from the start":       {{0, notServed, pending}, {9, notServed, pending}, {1, notServed, "NotServed"}},
		"forbidden after it was read":     {{0, listed, ready}, {9, ended, ready}, {0, forbidden, ready}, {9, forbidden, ready}, {1, forbidden, "Forbidden"}},
		"one refusal proves nothing":      {{0, watching, pending}, {1, listed, ready}, {9, forbidden, ready}, {12, tick, ready}, {7, tick, ready}, {1, tick, "NoAnswer"}},
		"forbidden says nothing of 404":   {{0, listed, ready}, {0, forbidden, ready}, {9, forbidden, ready}, {1, notServed, ready}, {9, notServed, ready}, {1, notServed, "NotServed"}},
		"a refusal survives a restart":    {{0, forbidden, "Forbidden"}, {9, failed, "Forbidden"}, {19, failed, "Forbidden"}, {0.5, forbidden, "Forbidden"}, {9, failed, "Forbidden"}},
		"may list, and not watch":         {{0, listed, ready}, {0, forbidden, ready}, {5, listed, ready}, {0, forbidden, ready}, {5, listed, ready}, {0, forbidden, "Forbidden"}, {5, listed, "Forbidden"}},
		"another cause is confirmed anew": {{0, listed, ready}, {0, failed, ready}, {20, failed, "NoAnswer"}, {1, forbidden, "NoAnswer"}, {9, forbidden, "NoAnswer"}, {1, forbidden, "Forbidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s State
			now := noon
			for i, step := range steps {
				now = now.Add(time.Duration(step.after * float64(time.Second)))
				if s, _ = Track(s, step.event, now, rules); label(s) != step.want {
					t.Fatalf("step %d: got %s %q, want %s", i, label(s), s.Message, step.want)
				}
			}
		})
	}
}

// AsOf is the last time at which a place that is not current any more was known to be current.
func TestTrackAsOf(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	var s State
	for _, step := range []struct {
		at    int
		event Event
		want  time.Time
	}{
		{0, watching, time.Time{}},
		{1, listed, time.Time{}},
		{100, ended, time.Time{}},
		{120, tick, at(100)},
		{130, failed, at(100)},
		{140, listed, time.Time{}},
		{150, forbidden, time.Time{}},
		{155, listed, time.Time{}},
		{160, forbidden, at(155)},
		{170, listed, at(170)},
		{180, forbidden, at(170)},
	} {
		s, _ = Track(s, step.event, at(step.at), rules)
		if !s.AsOf.Equal(step.want) {
			t.Errorf("after %d seconds: as of %s, want %s", step.at, s.AsOf, step.want)
		}
	}
}

// With a grace of zero, a place that has been read stays Ready through failures, but not through a refusal.
func TestTrackZeroGraceToleratesFailuresIndefinitely(t *testing.T) {
	t.Parallel()
	s, _ := Track(State{}, listed, noon, Rules{})
	s, next := Track(s, failed, noon.Add(time.Hour), Rules{})
	if s.Status != Ready || !next.IsZero() {
		t.Errorf("a place that cannot be reached is %s, and looked at again at %s", label(s), next)
	}
	s, _ = Track(s, forbidden, noon.Add(2*time.Hour), Rules{})
	if s, _ = Track(s, forbidden, noon.Add(3*time.Hour), Rules{}); s.Reason != Forbidden {
		t.Errorf("a place that is forbidden is %s", label(s))
	}
}

// model is a simple model of the state of a place.
type model struct {
	// current is when what was read was last known to be current, opened is when the open watch was opened, and refusals is since when all
	// attempts have been refused.
	current, opened, refusals time.Time
}

// note applies an event.
func (m *model) note(e Event, now time.Time) {
	if !m.opened.IsZero() && now.Sub(m.opened) >= rules.CatchUp {
		m.current, m.refusals = now, time.Time{}
	}
	switch e.Kind {
	case Listed:
		m.current = now
	case Watching:
		m.opened = now
	case Ended, Expired, Restarted:
		m.opened = time.Time{}
	case Failed:
		m.opened, m.refusals = time.Time{}, time.Time{}
	case Refused:
		m.opened, m.refusals = time.Time{}, timeOr(m.refusals, now)
	case Tick:
	}
}

// check asserts that a state, which follows before, agrees with the model.
func (m *model) check(t *rapid.T, before, s State, now time.Time) {
	known := !m.current.IsZero()
	if s.Status == Ready && (!known || m.opened.IsZero() && now.Sub(m.current) >= rules.Grace) {
		t.Fatalf("Ready, and last known to be current at %s", m.current)
	}
	if problem := s.Status == Problem; problem != (s.Reason != "") || problem && s.Message == "" {
		t.Fatalf("%s without a reason or a message: %+v", s.Status, s)
	}
	m.checkAsOf(t, s, now)
	if s.Reason != before.Reason && s.Reason == NotServed && (m.refusals.IsZero() || now.Sub(m.refusals) < ConfirmAfter) {
		t.Fatalf("%s after %s", s.Reason, now.Sub(m.refusals))
	}
}

// checkAsOf asserts that AsOf is set when the model requires it, and only then.
func (m *model) checkAsOf(t *rapid.T, s State, now time.Time) {
	known := !m.current.IsZero()
	shouldHave := s.Status == Problem && known
	if s.AsOf.After(now) || shouldHave && s.AsOf.IsZero() || (s.Status == Ready || !known) && !s.AsOf.IsZero() {
		t.Fatalf("%s as of %s, last known to be current at %s", s.Status, s.AsOf, m.current)
	}
}

// TestTrackAgreesWithModel applies random events to Track and to the model.
func TestTrackAgreesWithModel(t *testing.T) {
	t.Parallel()
	events := []Event{listed, watching, ended, expired, {Kind: Restarted}, forbidden, rejected, notServed, failed, tick}
	rapid.Check(t, func(t *rapid.T) {
		var s State
		var next time.Time
		var m model
		now := noon
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			pause := time.Duration(rapid.SampledFrom([]int{0, 100, 500, 4000, 10_000, 20_000, 100_000}).Draw(t, "pause")) * time.Millisecond
			between := now.Add(pause)
			if !next.IsZero() && next.Before(between) {
				s, _ = Track(s, tick, next, rules)
			} else if quiet, _ := Track(s, tick, between, rules); pause > 0 && !next.Equal(between) && label(quiet) != label(s) {
				t.Fatalf("a tick made it %s, which was not announced", label(quiet))
			}
			now = between
			e := rapid.SampledFrom(events).Draw(t, "event")
			m.note(e, now)
			before := s
			if s, next = Track(s, e, now, rules); !next.IsZero() && !next.After(now) {
				t.Fatalf("the next look, %s, is not after %s", next, now)
			}
			m.check(t, before, s, now)
		}
		s, _ = Track(s, watching, now, rules)
		if s, _ = Track(s, tick, now.Add(rules.CatchUp), rules); s.Status != Ready {
			t.Fatalf("a watch that goes on leaves it %s", label(s))
		}
	})
}

func TestAll(t *testing.T) {
	t.Parallel()
	at := func(events ...Event) State {
		var s State
		for i, e := range events {
			s, _ = Track(s, e, noon.Add(time.Duration(i)*ConfirmAfter), rules)
		}
		return s
	}
	for name, c := range map[string]struct {
		states []State
		want   string
	}{
		"of none":             {nil, ready},
		"all read":            {[]State{at(listed), at(listed)}, ready},
		"one to be read":      {[]State{at(listed), {}}, pending},
		"one forbidden":       {[]State{{}, at(forbidden), at(listed)}, "Forbidden"},
		"the gravest problem": {[]State{at(forbidden), at(rejected), at(listed)}, "Unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Aggregate(c.states...); label(got) != c.want {
				t.Errorf("got %s, want %s", label(got), c.want)
			}
			slices.Reverse(c.states)
			if got := Aggregate(c.states...); label(got) != c.want {
				t.Errorf("the other way round: got %s, want %s", label(got), c.want)
			}
		})
	}
}
