package monitor

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

const (
	// maxShrinks is how often a status that the API server refuses as too large is made smaller.
	maxShrinks = 4
	// reportedContests is the number of write conflicts after which an event is
	// recorded. One or two are a person who edits a status.
	reportedContests = 3
	// contestQuiet is the least time without a write of another client after which a contest is over.
	contestQuiet = time.Minute
)

// writeStates holds for each bundle what the monitor wrote last, and what came of it. All of it
// can be lost: after a restart everything is compared with the cluster again.
type writeStates struct {
	mu        sync.Mutex
	entries   map[types.NamespacedName]*writeState
	coalescer coalescer
}

// writeState is what the monitor wrote last to one bundle, and what came of it.
type writeState struct {
	// uid is that of the bundle.
	uid types.UID
	// changes counts the changes of the bundle's objects.
	changes uint64
	// settledVersion, settledGeneration and settledChanges are the bundle's
	// resourceVersion and generation and the count of changes for which its
	// status was found right.
	settledVersion    string
	settledGeneration int64
	settledChanges    uint64
	// written is the bundle as our last write left it, until the cache has it.
	written *k8spluginv1alpha1.ResourceBundleState
	// size is about how many bytes of status were written last.
	size int
	// limiter admits the writes that allowed allows. It is nil before the first.
	limiter *rate.Limiter
	allowed allowance
	// coalesced is when the changes that are written next have been coalesced; zero while the status is right.
	coalesced time.Time
	// failures and conflicts are how many writes have failed in a row, and retry
	// is when the next one may be tried after a conflict.
	failures, conflicts int
	retry               time.Time
	// missing is since when the API server does not find the bundle; zero when it does.
	missing time.Time
	// shrinks is how often the bundle has been found too large, and limit what it may take since, in bytes.
	shrinks, limit int
	// contests is how often in a row another client has undone a write, and contested when the last time was.
	contests  int
	contested time.Time
	// undone is the settledVersion that has been counted as undone.
	undone string
	// coWriter is the field manager to which the bundle is left; empty when it is not.
	// coWriterWrote is when its last write was made, by its own clock, and coWriterSeen when that was first noticed.
	coWriter                    string
	coWriterWrote, coWriterSeen time.Time
	// outdated is what is known of a bundle whose coWriter does not write what has changed.
	outdated outdated
}

func newWriteStates() *writeStates {
	return &writeStates{entries: map[types.NamespacedName]*writeState{}, coalescer: newCoalescer()}
}

// touch notes that an object of the bundle changed.
func (s *writeStates) touch(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry(name).changes++
}

// changes is the number of changes so far. It is read before the objects are,
// so that a change in between is not taken for seen.
func (s *writeStates) changes(name types.NamespacedName) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entry(name).changes
}

// newest returns the newest known state of a bundle: the cached one, or what
// our own last write left when the cache does not have that yet. Without this
// a cache that lags behind would make the monitor write the same again. What is
// known of another bundle of the same name, which is gone, is dropped. sent is
// the status of our last write when the cache has just got what it left, and nil otherwise.
func (s *writeStates) newest(cached *k8spluginv1alpha1.ResourceBundleState) (newest *k8spluginv1alpha1.ResourceBundleState, sent *k8spluginv1alpha1.ResourceBundleStateStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOfBundle(cached)
	e := s.entry(name)
	if e.uid != "" && e.uid != cached.UID {
		delete(s.entries, name)
		e = s.entry(name)
	}
	e.uid = cached.UID
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

// settled reports whether the status of a bundle is known to be right at this
// version of the bundle and this count of changes.
func (s *writeStates) settled(b *k8spluginv1alpha1.ResourceBundleState, changes uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(nameOfBundle(b))
	return e.settledVersion == b.ResourceVersion && e.settledChanges == changes
}

// unsettle notes that the status of a bundle is not right, although it has just been written.
func (s *writeStates) unsettle(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entry(name).settledVersion = ""
}

// unsettled returns the bundles whose status is not known to be right.
func (s *writeStates) unsettled() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []types.NamespacedName
	for name, e := range s.entries {
		if e.settledVersion == "" {
			names = append(names, name)
		}
	}
	return names
}

// settle notes that the status of a bundle is right.
func (s *writeStates) settle(b *k8spluginv1alpha1.ResourceBundleState, changes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(nameOfBundle(b))
	e.settle(b, changes)
	e.conflicts = 0
}

func (e *writeState) settle(b *k8spluginv1alpha1.ResourceBundleState, changes uint64) {
	e.settledVersion, e.settledGeneration, e.settledChanges = b.ResourceVersion, b.Generation, changes
	e.coalesced = time.Time{}
}

// due returns how long to wait before the bundle may be written; not more than zero means now.
func (s *writeStates) due(name types.NamespacedName, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(name)
	e.calm(now)
	if e.coalesced.IsZero() || e.coalesced.After(now.Add(maxCoalesceTime)) { // Or the clock was set back.
		e.coalesced = now.Add(s.coalescer.delay(now))
	}
	next := e.writes().ReserveN(now, 1)
	wait := (next.DelayFrom(now) + time.Microsecond - 1).Truncate(time.Microsecond) // Limiters round down.
	next.CancelAt(now)                                                              // Only a write takes it.
	wait = max(wait, e.coalesced.Sub(now))
	if e.conflicts == 0 {
		return wait
	}
	if latest := now.Add(conflictPause(e.allowance(), e.conflicts)); e.retry.After(latest) {
		e.retry = latest // The clock was set back.
	}
	return max(wait, e.retry.Sub(now))
}

// allowance is how often the bundle may be written at present.
func (e *writeState) allowance() allowance {
	return allowanceOf(e.size, e.failures, e.contests)
}

// writes returns the limiter of the bundle's writes. Another allowance begins with all of its burst.
func (e *writeState) writes() *rate.Limiter {
	if a := e.allowance(); e.limiter == nil || a != e.allowed {
		e.limiter, e.allowed = a.limiter(), a
	}
	return e.limiter
}

// calm ends a contest that has been quiet for a while.
func (e *writeState) calm(now time.Time) {
	quiet := max(contestQuiet, 2*e.allowance().interval)
	if since := now.Sub(e.contested); e.contests > 0 && (since > quiet || since < -quiet) {
		e.contests = 0
	}
}

// contest notes that a status differs which is about to be written, and reports
// whether an event is due because another client keeps writing it: the status was right,
// neither its spec nor an object has changed since, and yet the bundle is another one.
func (s *writeStates) contest(b *k8spluginv1alpha1.ResourceBundleState, changes uint64, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(nameOfBundle(b))
	right := e.settledVersion
	if right == "" || right == e.undone || right == b.ResourceVersion || e.settledGeneration != b.Generation || e.settledChanges != changes {
		return false
	}
	e.contests++
	e.contested, e.undone = now, right
	return e.contests == reportedContests
}

// wrote notes that a write which began then and took so long succeeded, and keeps what it left behind.
func (s *writeStates) wrote(b *k8spluginv1alpha1.ResourceBundleState, changes uint64, began time.Time, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(nameOfBundle(b))
	e.failures, e.conflicts, e.size = 0, 0, sizeOf(&b.Status)
	if e.size <= smallStatus {
		s.coalescer.wrote(took) // A large bundle takes long also where the API server is fast.
	}
	e.writes().AllowN(began, 1)
	e.written = b
	e.missing = time.Time{}
	e.settle(b, changes)
}

// failed notes that a write which began then did not succeed.
func (s *writeStates) failed(name types.NamespacedName, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(name)
	e.failures++
	e.writes().AllowN(began, 1)
}

// missed notes that the API server did not find the bundle when a write began
// then, and returns for how long that has been so.
func (s *writeStates) missed(name types.NamespacedName, began time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(name)
	if e.missing.IsZero() || e.missing.After(began) {
		e.missing = began
	}
	e.failures++
	e.writes().AllowN(began, 1)
	return began.Sub(e.missing)
}

// conflicted notes that another client was faster than a write which began then, and returns how long to wait.
func (s *writeStates) conflicted(name types.NamespacedName, began time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(name)
	e.conflicts++
	pause := conflictPause(e.allowance(), e.conflicts)
	e.retry = began.Add(pause)
	return pause
}

// limit returns how many bytes the status of a bundle may take, unless the API server has refused one of that size.
func (s *writeStates) limit(name types.NamespacedName, limit int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entry(name); e.limit > 0 {
		return min(limit, e.limit)
	}
	return limit
}

// tooLarge notes that the API server refused a status that took so many bytes.
// It reports whether half of it is worth a try, which is so a few times.
func (s *writeStates) tooLarge(name types.NamespacedName, size int, began time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(name)
	if e.shrinks == maxShrinks {
		return false
	}
	e.shrinks++
	if e.limit > 0 {
		size = min(size, e.limit)
	}
	e.limit = size / 2
	e.writes().AllowN(began, 1)
	return true
}

// standsDown notes to which field manager a bundle is left, empty for none, and
// reports whether it was not left to any before.
func (s *writeStates) standsDown(name types.NamespacedName, coWriter string) (begins bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(name)
	begins = e.coWriter == "" && coWriter != ""
	e.coWriter = coWriter
	return begins
}

// noteCoWrite returns when it was first seen that another client wrote a bundle at that time.
func (s *writeStates) noteCoWrite(name types.NamespacedName, wrote, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entry(name)
	if !e.coWriterWrote.Equal(wrote) || e.coWriterSeen.After(now) {
		e.coWriterWrote, e.coWriterSeen = wrote, now
	}
	return e.coWriterSeen
}

// standingDown returns the number of bundles that are left to another monitor.
func (s *writeStates) standingDown() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.entries {
		if e.coWriter != "" {
			n++
		}
	}
	return n
}

// forget drops what is known of a bundle that is gone.
func (s *writeStates) forget(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, name)
}

func nameOfBundle(b *k8spluginv1alpha1.ResourceBundleState) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
}

// entry returns the entry of a bundle, which is made when there is none. The caller holds mu.
func (s *writeStates) entry(name types.NamespacedName) *writeState {
	e := s.entries[name]
	if e == nil {
		e = &writeState{}
		s.entries[name] = e
	}
	return e
}
