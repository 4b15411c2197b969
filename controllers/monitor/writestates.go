package monitor

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

const (
	// minLimit is the smallest size limit of a status, in bytes, that is still halved.
	minLimit = 32 << 10
	// reportedConflicts is the number of write conflicts after which an event is recorded. One or two may be a user who edits a status.
	reportedConflicts = 3
	// conflictQuiet is the minimum time without a write of another client after which a conflict is over.
	conflictQuiet = time.Minute
)

// writeStates holds the state of the last write of each bundle. It need not
// survive a restart: everything is compared with the cluster again then.
type writeStates struct {
	// lone admits the changes that are not part of a burst.
	lone *rate.Limiter

	mu      sync.Mutex
	entries map[types.NamespacedName]*writeState
}

func newWriteStates() *writeStates {
	return &writeStates{lone: newLoneChanges(), entries: map[types.NamespacedName]*writeState{}}
}

// of returns the state of a bundle. It drops the state of a deleted bundle of the same name.
func (s *writeStates) of(b *k8spluginv1alpha1.ResourceBundleState) *writeState {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOfBundle(b)
	e := s.entries[name]
	if e == nil || e.uid != b.UID {
		e = &writeState{uid: b.UID, lone: s.lone}
		s.entries[name] = e
	}
	return e
}

// touch records that an object of a bundle has changed.
func (s *writeStates) touch(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[name]; e != nil {
		e.changes.Add(1)
	}
}

// forget drops the state of a deleted bundle.
func (s *writeStates) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, name)
}

// standingDown returns the number of bundles that are left to another monitor.
func (s *writeStates) standingDown() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.entries {
		if e.standsDown.Load() {
			n++
		}
	}
	return n
}

// writeState is the state of the last write of one bundle.
type writeState struct {
	// uid is the UID of the bundle.
	uid types.UID
	// changes counts the changes of the bundle's objects. It must be read before the objects, so that a change in between is not missed.
	changes atomic.Uint64
	// standsDown is true while the bundle is left to another monitor.
	standsDown atomic.Bool
	lone       *rate.Limiter

	// Mutex is held while the bundle is reconciled, and guards the following fields.
	sync.Mutex
	// settled is the version for which the status was found up to date; the zero value stands for none.
	settled settled
	// written is the bundle as of the last write, until the cache has that version.
	written *k8spluginv1alpha1.ResourceBundleState
	// size is the approximate size of the status that was written last, in bytes.
	size int
	// limiter limits the writes to the allowance allowed. It is nil before the first write.
	limiter *rate.Limiter
	allowed allowance
	// coalesced is when the coalescing of changes for the next write ends; zero while the status is up to date.
	coalesced time.Time
	// failures counts the consecutive failed writes.
	failures int
	// limit is the size limit of the status in bytes after the API server has rejected a larger one; zero if it has not.
	limit int
	// conflicts counts how often in a row another client has reverted a write, and lastConflict is when it did last.
	conflicts    int
	lastConflict time.Time
	// coWrote is when another monitor wrote last, by its own clock, and coWriteSeen when that was first noticed.
	coWrote, coWriteSeen time.Time
	// outdated tracks whether the other monitor leaves the bundle out of date.
	outdated outdated
}

// settled identifies a bundle whose status is up to date: its version and generation, and the count of changes of its objects.
type settled struct {
	version    string
	generation int64
	changes    uint64
}

// newest returns the newest known version of the bundle: the cached one or, if the cache lags behind the last write, the written one.
// Otherwise a lagging cache would make the monitor write the same status again. sent is the status of the last write if the cached version
// is the result of that write, and nil otherwise.
func (e *writeState) newest(cached *k8spluginv1alpha1.ResourceBundleState) (newest *k8spluginv1alpha1.ResourceBundleState, sent *k8spluginv1alpha1.ResourceBundleStateStatus) {
	if e.written == nil {
		return cached, nil
	}
	order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, e.written.ResourceVersion)
	switch {
	case err == nil && order < 0:
		return e.written, nil
	case err == nil && order == 0:
		sent = &e.written.Status
	}
	e.written = nil
	return cached, sent
}

// isSettled reports whether the status is known to be up to date at this version of the bundle and this count of changes.
func (e *writeState) isSettled(b *k8spluginv1alpha1.ResourceBundleState, changes uint64) bool {
	return e.settled.version == b.ResourceVersion && e.settled.changes == changes
}

// settle records that the status of the bundle is up to date.
func (e *writeState) settle(b *k8spluginv1alpha1.ResourceBundleState, changes uint64) {
	e.settled = settled{version: b.ResourceVersion, generation: b.Generation, changes: changes}
	e.coalesced = time.Time{}
}

// due returns how long to wait before the bundle may be written. Zero or less means now.
func (e *writeState) due(now time.Time) time.Duration {
	e.expireConflict(now)
	if e.coalesced.IsZero() || e.coalesced.After(now.Add(coalesceTime)) { // Or the clock was set back.
		e.coalesced = now.Add(coalescing(e.lone, now))
	}
	next := e.writes().ReserveN(now, 1)
	wait := (next.DelayFrom(now) + time.Microsecond - 1).Truncate(time.Microsecond) // Limiters round down.
	next.CancelAt(now)                                                              // Only a write uses up the reservation.
	return max(wait, e.coalesced.Sub(now))
}

// allowance returns how often the bundle may be written at present.
func (e *writeState) allowance() allowance {
	return allowanceOf(e.size, e.failures, e.conflicts)
}

// writes returns the limiter of the bundle's writes. A new allowance begins with its full burst.
func (e *writeState) writes() *rate.Limiter {
	if a := e.allowance(); e.limiter == nil || a != e.allowed {
		e.limiter, e.allowed = rate.NewLimiter(rate.Every(a.interval), a.burst), a
	}
	return e.limiter
}

// expireConflict ends a conflict if no other client has written for a while.
func (e *writeState) expireConflict(now time.Time) {
	quiet := max(conflictQuiet, 2*e.allowance().interval)
	if since := now.Sub(e.lastConflict); e.conflicts > 0 && (since > quiet || since < -quiet) {
		e.conflicts = 0
	}
}

// conflict records a write conflict if another client has changed the status: the status was up to date, and the bundle has changed since
// although neither its spec nor an object has. It reports whether to record an event, because the client keeps changing the status.
func (e *writeState) conflict(b *k8spluginv1alpha1.ResourceBundleState, changes uint64, now time.Time) bool {
	last := e.settled
	if last.version == "" || last.version == b.ResourceVersion || last.generation != b.Generation || last.changes != changes {
		return false
	}
	e.settled = settled{} // Count each conflict once.
	e.conflicts++
	e.lastConflict = now
	return e.conflicts == reportedConflicts
}

// wrote records a successful write that began at began, and keeps the written bundle.
func (e *writeState) wrote(b *k8spluginv1alpha1.ResourceBundleState, changes uint64, began time.Time) {
	e.failures, e.size = 0, sizeOf(&b.Status)
	e.attempted(began)
	e.written = b
	e.settle(b, changes)
}

// attempted records that a write began at began, whatever its result.
func (e *writeState) attempted(began time.Time) { e.writes().AllowN(began, 1) }

// failed records that a write that began at began failed.
func (e *writeState) failed(began time.Time) {
	e.failures++
	e.attempted(began)
}

// tooLarge records that the API server rejected a status of the given size in bytes, and reports whether to retry with half of it.
func (e *writeState) tooLarge(size int, began time.Time) bool {
	if e.limit > 0 {
		size = min(size, e.limit)
	}
	if size <= minLimit {
		return false
	}
	e.limit = size / 2
	e.attempted(began)
	return true
}

func nameOfBundle(b *k8spluginv1alpha1.ResourceBundleState) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
}

// standDownPeriod is how long a bundle is left alone after another monitor wrote it.
const standDownPeriod = time.Hour

// standDown returns how long a bundle is left to another monitor, and the name of that monitor. A bundle is left for an hour after the
// other monitor's last write. EMCO's and ONAP's monitors write the whole status and drop unknown fields, which distinguishes them from a
// user who edits a status; such an edit is reverted at once. A running monitor writes again before long. A removed monitor does not, and
// its bundles are taken over. Zero means that this monitor owns the bundle.
//
// The hour begins when the write was first seen, if that is earlier than its timestamp, so that clock
// skew with the API server does not extend it.
func (e *writeState) standDown(b *k8spluginv1alpha1.ResourceBundleState, now time.Time) (wait time.Duration, writer string) {
	if b.Status.Summary != nil {
		return 0, ""
	}
	var last time.Time
	for _, entry := range b.ManagedFields {
		if entry.Subresource != "status" || entry.Manager == string(fieldOwner) || entry.Time == nil {
			continue
		}
		if entry.Time.After(last) {
			last, writer = entry.Time.Time, entry.Manager
		}
	}
	if !e.coWrote.Equal(last) || e.coWriteSeen.After(now) {
		e.coWrote, e.coWriteSeen = last, now
	}
	if last.After(e.coWriteSeen) {
		last = e.coWriteSeen
	}
	if wait = last.Add(standDownPeriod).Sub(now); writer == "" || wait <= 0 {
		return 0, ""
	}
	return wait, writer
}

// writers returns the managed fields entries of the status, with only manager, operation and time.
func writers(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Subresource == "status" {
			kept = append(kept, metav1.ManagedFieldsEntry{
				Manager: entry.Manager, Operation: entry.Operation, Time: entry.Time, Subresource: entry.Subresource,
			})
		}
	}
	return kept
}
