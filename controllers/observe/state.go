package observe

import (
	"cmp"
	"time"
)

// Doubt is how long a cluster must refuse every attempt to read before the refusal is confirmed: an API server that
// starts knows neither all rights nor all CRDs.
const Doubt = 10 * time.Second

// noWatch is the message while no watch is open and nothing says why.
const noWatch = "the watch has ended, and no other one has been opened"

// Status says in one word whether what is held of a place is current.
type Status uint8

// The values of Status.
const (
	// Pending means that the place has not been read yet, or not again, and that there is no confirmed reason why.
	Pending Status = iota
	// Ready means that what is held is current.
	Ready
	// Problem means that what is held, if anything, may be out of date. Reason says why.
	Problem
)

// String implements fmt.Stringer.
func (s Status) String() string { return [...]string{"Pending", "Ready", "Problem"}[s] }

// Reason says why a place cannot be read. Classify makes it of an error, and Track confirms it. Whoever translates it for
// users does so in a switch over all reasons, which the exhaustive linter checks: fleet's liveness (the Reachability of a
// cluster), its connection's describe (the message), its kindInformer's describe and reasonOf (message and reason of an object), and the
// monitor's sightIn and describe. A reason that is no refusal, as isRefused has it, also needs its place in overdue and next, which
// know one failure, and in liveness.judgeUnreadable.
type Reason string

// The values of Reason.
const (
	// Forbidden means that a right to list or to watch is missing (403).
	Forbidden Reason = "Forbidden"
	// Unauthorized means that the credentials are not accepted (401).
	Unauthorized Reason = "Unauthorized"
	// NotServed means that the API server does not serve the resource (404, 405).
	NotServed Reason = "NotServed"
	// NoAnswer means that there is no answer, or none that can be used.
	NoAnswer Reason = "NoAnswer"
)

// State is whether what is held of a place is current. The zero value is that of a place that has never been read.
type State struct {
	Status Status
	// Reason is that of a Problem; empty otherwise.
	Reason Reason
	// Message says for people why the place is not Ready, as far as that is known; empty when it is. As long as Status and Reason stay, a text
	// that differs only in numbers does not replace it, and another one does so only when it has been the case for a while.
	Message string
	// Since is since when the place has this Status and Reason.
	Since time.Time
	// AsOf is until when what is held is known to have been current; zero while the place is Ready, and when it was never read.
	AsOf time.Time

	// read is true once the place has been read, and open while a watch is open that has caught up.
	read, open bool
	// lost is the time from which what is held may be out of date: no watch has been open since. It is zero while one is
	// open, and before the first attempt.
	lost time.Time
	// caughtUp is the time from which the open watch counts as having delivered everything that happened before it was
	// opened. It is zero when no watch is open, and once that time has passed.
	caughtUp time.Time
	// unstored is true while everything has been delivered, and not stored yet.
	unstored bool
	// refused is since when every attempt has been refused, and absent is true when that was because the resource is not served.
	refused time.Time
	absent  bool
	// failing is since when every attempt has failed or was refused, and silent since when every one has failed.
	failing, silent time.Time
	// cause is why the last attempt failed; empty when it did not.
	cause   string
	wording Wording
}

// EventKind says what has happened to an attempt to read a place.
type EventKind uint8

// The values of EventKind.
const (
	// Tick means that time has passed.
	Tick EventKind = iota
	// Listed means that all there is has been read and stored.
	Listed
	// Watching means that a watch is open, and that all there was before it has been delivered. That it is open is no answer yet: client-go
	// returns an empty watch and no error when the connection ends before there was one.
	Watching
	// Ended means that the watch has ended.
	Ended
	// Restarted means that the place is read again from the start because what is held may be out of date.
	Restarted
	// Expired means that the place has to be read again from the start (410), which is no failure.
	Expired
	// Refused means that an attempt was refused: that is confirmed after Doubt.
	Refused
	// Failed means that an attempt failed in another way, also by an answer such as 429 or 500: that is confirmed after
	// Rules.Grace.
	Failed
)

// Event is what has happened to an attempt to read a place.
type Event struct {
	Kind EventKind
	// Reason is that of Refused: Forbidden, Unauthorized or NotServed.
	Reason Reason
	// Message says for people what is wrong, for Refused and Failed.
	Message string
	// Unstored is true for Watching when all there was is still to be stored, which Listed reports.
	Unstored bool
	// Certain is true for NotServed when the first such answer counts for what was never read, as a refused right does.
	Certain bool
}

// Rules are what is tolerated.
type Rules struct {
	// Grace is how long every attempt may fail, or no watch be open, before that is confirmed; zero means indefinitely.
	Grace time.Duration
	// Settle is how long a watch may take to deliver what happened before it was opened.
	Settle time.Duration
}

// Track returns the state after an event, and when a Tick may change it if nothing else happens; the zero time means never.
func Track(s State, e Event, now time.Time, r Rules) (State, time.Time) {
	if s.Since.IsZero() {
		s.Since = now
	}
	s = s.catchUp(now)
	switch e.Kind {
	case Listed:
		s = s.listed(now)
	case Watching:
		s.caughtUp, s.unstored = now.Add(r.Settle), e.Unstored
	case Ended:
		if !s.caughtUp.IsZero() {
			s = s.because("the connection ends before there is an answer", now)
		}
		s = s.interrupted(now)
	case Expired:
		s = s.interrupted(now)
	case Restarted:
		if s = s.interrupted(now); s.Status == Ready {
			s = s.become(Pending, "", "", now)
		}
	case Refused:
		s = s.interrupted(now).attemptRefused(e, now)
	case Failed:
		s = s.interrupted(now).attemptFailed(e, now)
	case Tick:
	}
	s = s.catchUp(now).overdue(now, r.Grace)
	return s, s.next(r.Grace)
}

// IsWatched reports whether a watch is open that has delivered all there was before it.
func (s State) IsWatched() bool { return s.open }

// IsFailing reports whether every attempt has failed since one succeeded last.
func (s State) IsFailing() bool { return !s.failing.IsZero() }

// ConfirmBy returns when an attempt is due that confirms a refusal or takes it back; zero when none is in doubt.
func (s State) ConfirmBy() time.Time {
	if s.refused.IsZero() || s.isRefused() {
		return time.Time{}
	}
	return s.refused.Add(Doubt)
}

// listed notes that all there is has been read and stored. It does not end a refusal, which a watch must do: a reader
// that may list and not watch is refused at each attempt.
func (s State) listed(now time.Time) State {
	s.read, s.unstored, s.failing, s.silent = true, false, time.Time{}, time.Time{}
	if !s.open {
		s.lost = now
	}
	if s.isRefused() {
		s.AsOf = now
		return s
	}
	return s.become(Ready, "", "", now)
}

// catchUp notes that the watch that is open has delivered all, once it has had the time to.
func (s State) catchUp(now time.Time) State {
	if s.unstored || s.caughtUp.IsZero() || now.Before(s.caughtUp) {
		return s
	}
	s.caughtUp = time.Time{}
	s.read, s.open = true, true
	s.lost, s.refused, s.failing, s.silent = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return s.become(Ready, "", "", now)
}

// interrupted notes that no watch is open. One that ends before it has caught up never was one.
func (s State) interrupted(now time.Time) State {
	s.open, s.lost, s.caughtUp, s.unstored = false, first(s.lost, now), time.Time{}, false
	return s
}

// attemptRefused notes that an attempt was refused. What has been read must be refused for some time before that is
// confirmed. The first refusal counts where nothing has been read; that a resource is not served only when it is Certain.
func (s State) attemptRefused(e Event, now time.Time) State {
	s.failing, s.silent = first(s.failing, now), time.Time{}
	if absent := e.Reason == NotServed; absent != s.absent { // That it was forbidden says nothing about whether it is served.
		s.refused, s.absent = time.Time{}, absent
	}
	s.refused = first(s.refused, now)
	s = s.because(e.Message, now)
	confirmed := now.Sub(s.refused) >= Doubt || s.Reason == e.Reason || s.Status == Pending && !s.read && (e.Reason != NotServed || e.Certain)
	if !confirmed {
		return s
	}
	return s.become(Problem, e.Reason, e.Message, now)
}

// attemptFailed notes that an attempt failed without being refused.
func (s State) attemptFailed(e Event, now time.Time) State {
	s.failing, s.silent, s.refused = first(s.failing, now), first(s.silent, now), time.Time{}
	return s.because(e.Message, now)
}

// overdue confirms that there is no answer when there has been none for too long. A refusal is not taken back by an API
// server that is restarted.
func (s State) overdue(now time.Time, grace time.Duration) State {
	since := s.overdueSince()
	if grace == 0 || since.IsZero() || now.Sub(since) < grace {
		return s
	}
	return s.become(Problem, NoAnswer, cmp.Or(s.cause, noWatch), now)
}

// overdueSince returns since when an answer is overdue; zero when none is.
func (s State) overdueSince() time.Time {
	switch {
	case s.isRefused():
		return s.silent
	case s.Status == Pending: // Nothing has been read yet, or what has been is known to be out of date.
		return s.failing
	}
	return s.lost
}

// because notes why the last attempt failed.
func (s State) because(cause string, now time.Time) State {
	s.cause = cause
	if s.Status == Pending && (s.Message == "" || s.wording.Changes(s.Message, cause, now)) {
		s.Message, s.wording = cause, Wording{}
	}
	return s
}

// become gives the state another Status, or the same with another text.
func (s State) become(status Status, reason Reason, message string, now time.Time) State {
	switch {
	case s.Status != status || s.Reason != reason:
		if s.Status == Ready {
			s.AsOf = s.lost
		}
		s.Status, s.Reason, s.Message, s.Since, s.wording = status, reason, message, now, Wording{}
	case s.wording.Changes(s.Message, message, now):
		s.Message, s.wording = message, Wording{}
	}
	if status == Ready {
		s.AsOf, s.cause = time.Time{}, ""
	}
	return s
}

// isRefused reports whether the state is a confirmed refusal. A refusal is an answer: it is confirmed after Doubt, and ended by a watch
// that opens. A failure is confirmed after Grace, and ended by any list: see overdue and next.
func (s State) isRefused() bool {
	switch s.Reason {
	case Forbidden, Unauthorized, NotServed:
		return true
	case NoAnswer:
	}
	return false
}

// next returns when a Tick may change the state.
func (s State) next(grace time.Duration) time.Time {
	next := s.caughtUp
	if s.unstored {
		next = time.Time{}
	}
	if since := s.overdueSince(); grace > 0 && !since.IsZero() && s.Reason != NoAnswer {
		if at := since.Add(grace); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// first returns the time that is set, or now.
func first(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return at
}

// gravity orders reasons: one that says more about the cluster is graver. It is zero without a reason.
func (r Reason) gravity() int {
	switch r {
	case Unauthorized:
		return 4
	case Forbidden:
		return 3
	case NotServed:
		return 2
	case NoAnswer:
		return 1
	}
	return 0
}

// All returns the state of several places together: that of the gravest of them, with the earliest AsOf. It is Ready when there is no place.
func All(states ...State) State {
	worst := State{Status: Ready, open: true}
	var asOf time.Time
	open := true
	for i, s := range states {
		open = open && s.open
		if i == 0 || s.graver(worst) {
			worst = s
		}
		if !s.AsOf.IsZero() && (asOf.IsZero() || s.AsOf.Before(asOf)) {
			asOf = s.AsOf
		}
	}
	if worst.Status != Ready {
		worst.AsOf = asOf
	}
	worst.open = open
	return worst
}

// graver reports whether a state hides more than another one, or for longer.
func (s State) graver(o State) bool {
	rank := func(s State) int {
		if s.Status == Ready {
			return -1
		}
		return s.Reason.gravity() // Pending has no reason.
	}
	if a, b := rank(s), rank(o); a != b {
		return a > b
	}
	return s.Since.Before(o.Since)
}
