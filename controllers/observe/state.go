package observe

import (
	"cmp"
	"time"
)

// ConfirmAfter is how long a cluster must refuse every attempt to read before the refusal is confirmed. An API server that is
// starting does not know all RBAC rules and CRDs yet.
const ConfirmAfter = 10 * time.Second

// noWatch is the message while no watch is open and the cause is unknown.
const noWatch = "the watch has ended, and no other one has been opened"

// Status says whether what was read of a place is current.
type Status uint8

// The values of Status.
const (
	// Pending means that the place has not been read yet, or has to be read again, and that no reason for that is confirmed.
	Pending Status = iota
	// Ready means that what was read is current.
	Ready
	// Problem means that what was read, if anything, may be stale. Reason says why.
	Problem
)

// String implements fmt.Stringer.
func (s Status) String() string { return [...]string{"Pending", "Ready", "Problem"}[s] }

// Reason says why a place cannot be read. Classify derives it from an error, and Track confirms it. Code that translates it for users
// uses a switch over all reasons, which the exhaustive linter checks: fleet's liveness, connection.describe and kindInformer (describe
// and reasonOf), and the monitor's visibilityIn and describe. A further reason that is no refusal concerns overdue, next and
// liveness.judgeUnreadable, too, which know only one.
type Reason string

// The values of Reason.
const (
	// Forbidden means that the permission to list or to watch is missing (403).
	Forbidden Reason = "Forbidden"
	// Unauthorized means that the credentials are not accepted (401).
	Unauthorized Reason = "Unauthorized"
	// NotServed means that the API server does not serve the resource (404, 405).
	NotServed Reason = "NotServed"
	// NoAnswer means that there is no answer, or no usable one.
	NoAnswer Reason = "NoAnswer"
)

// State is the state of a place: whether what was read of it is current. The zero value is the state of a place that has never been read.
type State struct {
	Status Status
	// Reason is the reason of a Problem; empty otherwise.
	Reason Reason
	// Message tells users why the place is not Ready, as far as that is known; empty when it is Ready. While Status and Reason do not
	// change, a MessageDebouncer decides when another text replaces it.
	Message string
	// Since is when the place got this Status and Reason.
	Since time.Time
	// AsOf is the last time at which what was read is known to have been current; zero while the place is Ready, and if it was never read.
	AsOf time.Time

	// read is true once the place has been read, and open is true while a watch is open that has caught up.
	read, open bool
	// staleSince is when what was read began to be possibly stale: no watch has been open since. It is zero while a watch is
	// open, and before the first attempt.
	staleSince time.Time
	// catchUpAt is when the open watch counts as having delivered everything that happened before it was
	// opened. It is zero when no watch is open, and once that time has passed.
	catchUpAt time.Time
	// unstored is true while everything has been delivered but not stored yet.
	unstored bool
	// refusedSince is since when every attempt has been refused. notServed is true when the reason was NotServed.
	refusedSince time.Time
	notServed    bool
	// failingSince is since when every attempt has failed or been refused, and unansweredSince since when every attempt has failed.
	failingSince, unansweredSince time.Time
	// cause is why the last attempt failed; empty if it did not fail.
	cause     string
	debouncer MessageDebouncer
}

// EventKind is what happened to an attempt to read a place.
type EventKind uint8

// The values of EventKind.
const (
	// Tick means that time has passed.
	Tick EventKind = iota
	// Listed means that all objects have been read and stored.
	Listed
	// Watching means that a watch is open, and that all earlier objects have been delivered. An open watch is no answer yet: client-go
	// returns an empty watch and no error when the connection ends before an answer.
	Watching
	// Ended means that the watch has ended.
	Ended
	// Restarted means that the place is read again from the start because what was read may be stale.
	Restarted
	// Expired means that the place has to be read again from the start (410). This is not a failure.
	Expired
	// Refused means that an attempt was refused. The refusal is confirmed after ConfirmAfter.
	Refused
	// Failed means that an attempt failed in another way, including an answer such as 429 or 500. The failure is confirmed after
	// Rules.Grace.
	Failed
)

// Event is an outcome of an attempt to read a place.
type Event struct {
	Kind EventKind
	// Reason is the reason of Refused: Forbidden, Unauthorized or NotServed.
	Reason Reason
	// Message tells users what is wrong, for Refused and Failed.
	Message string
	// Unstored is true for Watching when the delivered objects have not been stored yet. Listed reports when they are.
	Unstored bool
	// Confirmed is true for NotServed when the first such answer is enough for a place that was never read, as it is for Forbidden.
	Confirmed bool
}

// Rules configure how long Track tolerates failures.
type Rules struct {
	// Grace is how long every attempt may fail, or no watch may be open, before NoAnswer is confirmed. Zero means indefinitely.
	Grace time.Duration
	// CatchUp is how long a watch may take to deliver what happened before it was opened.
	CatchUp time.Duration
}

// Track returns the state after an event, and when a Tick may change it if no other event comes before. The zero time means never.
func Track(s State, e Event, now time.Time, r Rules) (State, time.Time) {
	if s.Since.IsZero() {
		s.Since = now
	}
	s = s.catchUp(now)
	switch e.Kind {
	case Listed:
		s = s.listed(now)
	case Watching:
		s.catchUpAt, s.unstored = now.Add(r.CatchUp), e.Unstored
	case Ended:
		if !s.catchUpAt.IsZero() {
			s = s.withCause("the connection ends before there is an answer", now)
		}
		s = s.interrupted(now)
	case Expired:
		s = s.interrupted(now)
	case Restarted:
		if s = s.interrupted(now); s.Status == Ready || s.Reason == NoAnswer { // Another place may answer.
			s.failingSince, s.unansweredSince = time.Time{}, time.Time{}
			s = s.withStatus(Pending, "", "", now)
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

// IsWatched reports whether a watch is open that has delivered everything that happened before it was opened.
func (s State) IsWatched() bool { return s.open }

// IsFailing reports whether every attempt has failed or been refused since the last success.
func (s State) IsFailing() bool { return !s.failingSince.IsZero() }

// ConfirmBy returns when an attempt is due that confirms or withdraws a refusal; zero if there is no unconfirmed refusal.
func (s State) ConfirmBy() time.Time {
	if s.refusedSince.IsZero() || s.isRefused() {
		return time.Time{}
	}
	return s.refusedSince.Add(ConfirmAfter)
}

// listed records that all objects have been read and stored. It does not end a refusal; only a watch does, because a client
// that may list but not watch is refused on each attempt.
func (s State) listed(now time.Time) State {
	s.read, s.unstored, s.failingSince, s.unansweredSince = true, false, time.Time{}, time.Time{}
	if !s.open {
		s.staleSince = now
	}
	if s.isRefused() {
		s.AsOf = now
		return s
	}
	return s.withStatus(Ready, "", "", now)
}

// catchUp records that the open watch has caught up once catchUpAt has passed.
func (s State) catchUp(now time.Time) State {
	if s.unstored || s.catchUpAt.IsZero() || now.Before(s.catchUpAt) {
		return s
	}
	s.catchUpAt = time.Time{}
	s.read, s.open = true, true
	s.staleSince, s.refusedSince, s.failingSince, s.unansweredSince = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return s.withStatus(Ready, "", "", now)
}

// interrupted records that no watch is open. A watch that ends before it has caught up does not count as one.
func (s State) interrupted(now time.Time) State {
	s.open, s.staleSince, s.catchUpAt, s.unstored = false, timeOr(s.staleSince, now), time.Time{}, false
	return s
}

// attemptRefused records that an attempt was refused. That is confirmed after ConfirmAfter. If nothing has been read, the first refusal
// is enough, but for NotServed only if the event is Confirmed.
func (s State) attemptRefused(e Event, now time.Time) State {
	s.failingSince, s.unansweredSince = timeOr(s.failingSince, now), time.Time{}
	if notServed := e.Reason == NotServed; notServed != s.notServed { // A refused permission says nothing about whether the resource is served.
		s.refusedSince, s.notServed = time.Time{}, notServed
	}
	s.refusedSince = timeOr(s.refusedSince, now)
	s = s.withCause(e.Message, now)
	if now.Sub(s.refusedSince) >= ConfirmAfter || s.Reason == e.Reason || s.Status == Pending && !s.read && (e.Reason != NotServed || e.Confirmed) {
		s = s.withStatus(Problem, e.Reason, e.Message, now)
	}
	return s
}

// attemptFailed records that an attempt failed without being refused.
func (s State) attemptFailed(e Event, now time.Time) State {
	s.failingSince, s.unansweredSince, s.refusedSince = timeOr(s.failingSince, now), timeOr(s.unansweredSince, now), time.Time{}
	return s.withCause(e.Message, now)
}

// overdue confirms NoAnswer when there has been no answer for the grace period. A short failure, such as a restart of the API
// server, does not withdraw a refusal.
func (s State) overdue(now time.Time, grace time.Duration) State {
	since := s.overdueSince()
	if grace == 0 || since.IsZero() || now.Sub(since) < grace {
		return s
	}
	return s.withStatus(Problem, NoAnswer, cmp.Or(s.cause, noWatch), now)
}

// overdueSince returns since when an answer has been missing; zero if none is.
func (s State) overdueSince() time.Time {
	switch {
	case s.isRefused():
		return s.unansweredSince
	case s.Status == Pending: // Nothing has been read yet, or what was read is known to be stale.
		return s.failingSince
	}
	return s.staleSince
}

// withCause records why the last attempt failed.
func (s State) withCause(cause string, now time.Time) State {
	s.cause = cause
	if s.Status == Pending {
		s = s.withMessage(cause, now)
	}
	return s
}

// withStatus sets the Status, or replaces the Message if the Status and Reason do not change.
func (s State) withStatus(status Status, reason Reason, message string, now time.Time) State {
	if s.Status != status || s.Reason != reason {
		if s.Status == Ready {
			s.AsOf = s.staleSince
		}
		s.Status, s.Reason, s.Message, s.Since = status, reason, "", now
	}
	s = s.withMessage(message, now)
	if status == Ready {
		s.AsOf, s.cause = time.Time{}, ""
	}
	return s
}

// withMessage sets the Message, unless it is another one than that which has been reported for a while.
func (s State) withMessage(message string, now time.Time) State {
	if s.Message == "" || s.debouncer.Changes(s.Message, message, now) {
		s.Message, s.debouncer = message, MessageDebouncer{}
	}
	return s
}

// isRefused reports whether the state is a confirmed refusal. A refusal is an answer: it is confirmed after ConfirmAfter, and ends when a
// watch has caught up. A failure is confirmed after Grace, and ends with any list.
func (s State) isRefused() bool {
	switch s.Reason {
	case Forbidden, Unauthorized, NotServed:
		return true
	case NoAnswer:
	}
	return false
}

// next returns when a Tick may change the state; zero means never.
func (s State) next(grace time.Duration) time.Time {
	var next time.Time
	if !s.unstored {
		next = s.catchUpAt
	}
	if since := s.overdueSince(); grace > 0 && !since.IsZero() && s.Reason != NoAnswer {
		if at := since.Add(grace); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// timeOr returns at, or now if at is zero.
func timeOr(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return at
}

// severity orders states: a reason that says more about the cluster has a higher severity. Pending, which has no reason, has zero.
func (s State) severity() int {
	switch s.Reason {
	case Unauthorized:
		return 4
	case Forbidden:
		return 3
	case NotServed:
		return 2
	case NoAnswer:
		return 1
	}
	if s.Status == Ready {
		return -1
	}
	return 0
}

// Aggregate returns the combined state of several places: the most severe state, with the earliest AsOf. It is Ready if there are no places.
func Aggregate(states ...State) State {
	worst := State{Status: Ready}
	var asOf time.Time
	open := true
	for i, s := range states {
		open = open && s.open
		if i == 0 || s.moreSevere(worst) {
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

// moreSevere reports whether a state has a higher severity than another one, or has had the same for longer.
func (s State) moreSevere(o State) bool {
	if a, b := s.severity(), o.severity(); a != b {
		return a > b
	}
	return s.Since.Before(o.Since)
}
