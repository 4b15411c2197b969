package monitor

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

const (
	// writeInterval is the interval in which a small bundle gains one more write.
	writeInterval = 250 * time.Millisecond
	// writeBurst is the number of writes of a small bundle that may follow each other without a delay. One event leads to several
	// changes some milliseconds apart: of a pod, then of its ReplicaSet, then of its Deployment.
	writeBurst = 3
	// smallStatus is the maximum status size in bytes of a small bundle. The interval of a large one is a writeInterval per started smallStatus bytes.
	smallStatus = 128 << 10
	// maxSizeInterval bounds the interval of large bundles, maxFailureInterval that after failed writes, and maxConflictInterval that of a
	// bundle that another client writes too.
	maxSizeInterval, maxFailureInterval, maxConflictInterval = 4 * time.Second, 30 * time.Second, 10 * time.Minute
	// maxDoublings is enough to reach each of these bounds from writeInterval.
	maxDoublings = 12
	// entrySize is the approximate size in bytes of an entry of status.resources.
	entrySize = 400
	// minLimit is the smallest size limit of a status, in bytes, that is still halved.
	minLimit = 32 << 10
	// reportedConflicts is the number of write conflicts after which an event is recorded. One or two may be a user who edits a status.
	reportedConflicts = 3
	// conflictQuiet is the minimum time without a write of another client after which a conflict is over.
	conflictQuiet = time.Minute
	// coalesceTime is how long a bundle coalesces changes in a burst.
	coalesceTime = 250 * time.Millisecond
	// burstSize is how many bundles may begin to differ at once without being a burst, and burstInterval the minimum time between two
	// that begin to differ later without being one.
	burstSize, burstInterval = 5, 20 * time.Millisecond
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
	return &writeStates{lone: rate.NewLimiter(rate.Every(burstInterval), burstSize), entries: map[types.NamespacedName]*writeState{}}
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
	// size is the approximate size of the status that was written last, in bytes. limit is the size limit of the status after the API server
	// has rejected a larger one; zero if it has not.
	size, limit int
	// next is when the next write may be made if the burst is used up. longest is how long a bundle may have to wait at most since its last
	// write, and pause how long it must wait after the next one, if that is longer than usual.
	next           time.Time
	longest, pause time.Duration
	// coalesced is when the coalescing of changes for the next write ends; zero while the status is up to date.
	coalesced time.Time
	// failures counts the consecutive failed writes.
	failures int
	// conflicts counts how often in a row another client has reverted a write, and lastConflict is when it did last.
	conflicts    int
	lastConflict time.Time
	coWriter     coWriter
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

// paceOf returns how often a bundle with a status of a size in bytes may be written: burst times without a delay, and once more after each interval.
func paceOf(size int) (interval time.Duration, burst int) {
	if size <= smallStatus {
		return writeInterval, writeBurst
	}
	pieces := (size + smallStatus - 1) / smallStatus
	return min(time.Duration(pieces)*writeInterval, maxSizeInterval), 1
}

// slack returns how long before next the bundle may be written, because its burst is not used up.
func (e *writeState) slack() time.Duration {
	interval, burst := paceOf(e.size)
	return time.Duration(burst-1) * interval
}

// due returns how long to wait before the bundle may be written. Zero or less means now.
func (e *writeState) due(now time.Time) time.Duration {
	if e.coalesced.IsZero() || e.coalesced.After(now.Add(coalesceTime)) { // Or the clock was set back.
		e.coalesced = now.Add(coalescing(e.lone, now))
	}
	wait := e.next.Add(-e.slack()).Sub(now)
	if wait > e.longest { // The clock was set back.
		wait = e.longest
		e.next = now.Add(wait + e.slack())
	}
	return max(wait, e.coalesced.Sub(now))
}

// coalescing records that one more bundle differs, and returns how long it coalesces changes: not at all for a lone change, which is
// written at once. In a burst, such as when a node fails, a hundred bundles change, and most of them again a moment later. Writing each
// first change would delay the API server's notifications of the second.
func coalescing(lone *rate.Limiter, now time.Time) time.Duration {
	if lone.AllowN(now, 1) {
		return 0
	}
	// Drop partial tokens: the burst ends only when bundles differ less often.
	lone.SetBurstAt(now, 0)
	lone.SetBurstAt(now, burstSize)
	return coalesceTime
}

// attempted records that a write began at began, whatever its result.
func (e *writeState) attempted(began time.Time) {
	interval, _ := paceOf(e.size)
	ahead := min(max(e.next.Sub(began), 0), e.slack()) + interval
	if e.pause > interval {
		ahead = e.slack() + e.pause
	}
	e.next, e.longest, e.pause = began.Add(ahead), max(interval, e.pause), 0
}

// doubled returns the interval of writes after n failures or conflicts in a row, each of which doubles it, up to longest.
func (e *writeState) doubled(n int, longest time.Duration) time.Duration {
	interval, _ := paceOf(e.size)
	return min(interval<<min(n, maxDoublings), longest)
}

// wrote records a successful write that began at began, and keeps the written bundle.
func (e *writeState) wrote(b *k8spluginv1alpha1.ResourceBundleState, changes uint64, began time.Time) {
	e.failures, e.size = 0, sizeOf(&b.Status)
	e.attempted(began)
	e.written = b
	e.settle(b, changes)
}

// failed records that a write that began at began failed.
func (e *writeState) failed(began time.Time) {
	e.failures++
	e.pause = max(e.pause, e.doubled(e.failures, maxFailureInterval))
	e.attempted(began)
}

// conflict records a write conflict if another client has changed the status: the status was up to date, and the bundle has changed since
// although neither its spec nor an object has. It reports whether to record an event, because the client keeps changing the status.
func (e *writeState) conflict(b *k8spluginv1alpha1.ResourceBundleState, changes uint64, now time.Time) bool {
	last := e.settled
	if last.version == "" || last.version == b.ResourceVersion || last.generation != b.Generation || last.changes != changes {
		return false
	}
	e.settled = settled{} // Count each conflict once.
	if now.Sub(e.lastConflict).Abs() > max(conflictQuiet, 2*e.doubled(e.conflicts, maxConflictInterval)) {
		e.conflicts = 0
	}
	e.conflicts++
	e.lastConflict = now
	e.pause = e.doubled(e.conflicts, maxConflictInterval)
	return e.conflicts == reportedConflicts
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

// sizeOf returns the approximate size of a status in bytes.
func sizeOf(status *k8spluginv1alpha1.ResourceBundleStateStatus) int {
	size := len(status.Resources) * entrySize
	for _, list := range status.Lists() {
		size += len(*list)
	}
	return size
}
