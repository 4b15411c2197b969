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
	// minLimit is the limit of a status, in bytes, of which half is not worth a try.
	minLimit = 32 << 10
	// reportedConflicts is the number of write conflicts after which an event is
	// recorded. One or two are a person who edits a status.
	reportedConflicts = 3
	// conflictQuiet is the least time without a write of another client after which a conflict is over.
	conflictQuiet = time.Minute
)

// writeStates holds for each bundle what the monitor wrote last, and what came of it. All of it
// can be lost: after a restart everything is compared with the cluster again.
type writeStates struct {
	coalescer coalescer

	mu      sync.Mutex
	entries map[types.NamespacedName]*writeState
}

func newWriteStates() *writeStates {
	return &writeStates{coalescer: newCoalescer(), entries: map[types.NamespacedName]*writeState{}}
}

// of returns the state of a bundle. What is known of another bundle of the same name, which is gone, is dropped.
func (s *writeStates) of(b *k8spluginv1alpha1.ResourceBundleState) *writeState {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOfBundle(b)
	e := s.entries[name]
	if e == nil || e.uid != b.UID {
		e = &writeState{uid: b.UID, coalescer: &s.coalescer}
		s.entries[name] = e
	}
	return e
}

// touch notes that an object of a bundle changed.
func (s *writeStates) touch(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[name]; e != nil {
		e.changes.Add(1)
	}
}

// forget drops what is known of a bundle that is gone.
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

// writeState is what the monitor wrote last to one bundle, and what came of it.
type writeState struct {
	// uid is that of the bundle.
	uid types.UID
	// changes counts the changes of the bundle's objects. It is read before the objects are,
	// so that a change in between is not taken for seen.
	changes atomic.Uint64
	// standsDown is true while the bundle is left to another monitor.
	standsDown atomic.Bool
	coalescer  *coalescer

	// Mutex is held while the bundle is looked at, and guards what follows.
	sync.Mutex
	// settled is for what the status was found right; the zero value for nothing.
	settled settled
	// written is the bundle as our last write left it, until the cache has it.
	written *k8spluginv1alpha1.ResourceBundleState
	// size is about how many bytes of status were written last.
	size int
	// limiter admits the writes that allowed allows. It is nil before the first.
	limiter *rate.Limiter
	allowed allowance
	// coalesced is when the changes that are written next have been coalesced; zero while the status is right.
	coalesced time.Time
	// failures is how many writes have failed in a row.
	failures int
	// limit is how many bytes the status may take since the API server has refused a larger one; zero when it has not.
	limit int
	// conflicts is how often in a row another client has undone a write, and lastConflict when the last time was.
	conflicts    int
	lastConflict time.Time
	// coWrote is when another monitor wrote last, by its own clock, and coWriteSeen when that was first noticed.
	coWrote, coWriteSeen time.Time
	// outdated is what is known of a bundle whose monitor does not write what has changed.
	outdated outdated
}

// settled names a bundle whose status is right: its version and generation, and the count of changes of its objects.
type settled struct {
	version    string
	generation int64
	changes    uint64
}

// newest returns the newest known state of the bundle: the cached one, or what
// our own last write left when the cache does not have that yet. Without this
// a cache that lags behind would make the monitor write the same again. sent is
// the status of our last write when the cache has just got what it left, and nil otherwise.
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

// isSettled reports whether the status is known to be right at this
// version of the bundle and this count of changes.
func (e *writeState) isSettled(b *k8spluginv1alpha1.ResourceBundleState, changes uint64) bool {
	return e.settled.version == b.ResourceVersion && e.settled.changes == changes
}

// settle notes that the status of the bundle is right.
func (e *writeState) settle(b *k8spluginv1alpha1.ResourceBundleState, changes uint64) {
	e.settled = settled{version: b.ResourceVersion, generation: b.Generation, changes: changes}
	e.coalesced = time.Time{}
}

// due returns how long to wait before the bundle may be written; not more than zero means now.
func (e *writeState) due(now time.Time) time.Duration {
	e.calm(now)
	if e.coalesced.IsZero() || e.coalesced.After(now.Add(maxCoalesceTime)) { // Or the clock was set back.
		e.coalesced = now.Add(e.coalescer.delay(now))
	}
	next := e.writes().ReserveN(now, 1)
	wait := (next.DelayFrom(now) + time.Microsecond - 1).Truncate(time.Microsecond) // Limiters round down.
	next.CancelAt(now)                                                              // Only a write takes it.
	return max(wait, e.coalesced.Sub(now))
}

// allowance is how often the bundle may be written at present.
func (e *writeState) allowance() allowance {
	return allowanceOf(e.size, e.failures, e.conflicts)
}

// writes returns the limiter of the bundle's writes. Another allowance begins with all of its burst.
func (e *writeState) writes() *rate.Limiter {
	if a := e.allowance(); e.limiter == nil || a != e.allowed {
		e.limiter, e.allowed = a.limiter(), a
	}
	return e.limiter
}

// calm ends a conflict that has been quiet for a while.
func (e *writeState) calm(now time.Time) {
	quiet := max(conflictQuiet, 2*e.allowance().interval)
	if since := now.Sub(e.lastConflict); e.conflicts > 0 && (since > quiet || since < -quiet) {
		e.conflicts = 0
	}
}

// conflict notes that a status differs which is about to be written, and reports
// whether an event is due because another client keeps writing it: the status was right,
// neither its spec nor an object has changed since, and yet the bundle is another one.
func (e *writeState) conflict(b *k8spluginv1alpha1.ResourceBundleState, changes uint64, now time.Time) bool {
	right := e.settled
	if right.version == "" || right.version == b.ResourceVersion || right.generation != b.Generation || right.changes != changes {
		return false
	}
	e.settled = settled{} // It is counted once.
	e.conflicts++
	e.lastConflict = now
	return e.conflicts == reportedConflicts
}

// wrote notes that a write which began then and took so long succeeded, and keeps what it left behind.
func (e *writeState) wrote(b *k8spluginv1alpha1.ResourceBundleState, changes uint64, began time.Time, took time.Duration) {
	e.failures, e.size = 0, sizeOf(&b.Status)
	if e.size <= smallStatus {
		e.coalescer.wrote(took) // A large bundle takes long also where the API server is fast.
	}
	e.attempted(began)
	e.written = b
	e.settle(b, changes)
}

// attempted notes that a write began then, whatever came of it.
func (e *writeState) attempted(began time.Time) { e.writes().AllowN(began, 1) }

// failed notes that a write which began then did not succeed.
func (e *writeState) failed(began time.Time) {
	e.failures++
	e.attempted(began)
}

// tooLarge notes that the API server refused a status that took so many bytes, and reports whether half of it is worth a try.
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

// standDown returns how long a bundle is left to another monitor, and to which one:
// for an hour after that monitor's last write. EMCO's and ONAP's monitors write
// the whole status and drop the fields that they do not know; that is how they
// are distinguished from a person who edits a status, which is reverted at once. A
// monitor that is alive writes again before long; one that was removed does not,
// and its bundles are taken over. Zero means that the bundle is this monitor's.
//
// It counts from when that write was first seen, if that is sooner: a clock that differs from
// the API server's, now or then, makes it no longer than an hour.
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

// writers returns who wrote the status, and when.
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
