package monitor

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

const (
	// writeInterval is the least time between two writes of the same bundle:
	// the first change is written at once, what follows is gathered.
	writeInterval = 250 * time.Millisecond
	// maxWriteInterval bounds the pause between writes that fail.
	maxWriteInterval = 30 * time.Second
)

// interval is the one place that decides how long to wait after a write before
// the same bundle is written again: longer with each failure in a row, because
// a write that cannot succeed must not be tried in a loop.
func interval(failures int) time.Duration {
	pause := writeInterval
	for range failures {
		if pause *= 2; pause >= maxWriteInterval {
			return maxWriteInterval
		}
	}
	return pause
}

// ledger remembers for each bundle what the monitor did to it last. All of it
// can be lost: after a restart everything is compared with the cluster again.
type ledger struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]*entry
}

// entry is what the ledger knows of one bundle.
type entry struct {
	// changes counts the changes of the bundle's objects.
	changes uint64
	// settledVersion and settledChanges are the bundle's resourceVersion and
	// the count of changes for which its status was found right.
	settledVersion string
	settledChanges uint64
	// written is the bundle as our last write left it, until the cache has it.
	written *k8spluginv1alpha1.ResourceBundleState
	// lastWrite is when the last write began, and failures how many have failed in a row.
	lastWrite time.Time
	failures  int
}

func newLedger() *ledger {
	return &ledger{entries: map[types.NamespacedName]*entry{}}
}

// entry returns the entry of a bundle, which is made when there is none. The caller holds mu.
func (l *ledger) entry(name types.NamespacedName) *entry {
	e := l.entries[name]
	if e == nil {
		e = &entry{}
		l.entries[name] = e
	}
	return e
}

// touch notes that an object of the bundle changed.
func (l *ledger) touch(name types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry(name).changes++
}

// changes is the number of changes so far. It is read before the objects are,
// so that a change in between is not taken for seen.
func (l *ledger) changes(name types.NamespacedName) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entry(name).changes
}

// newest returns the newest known state of a bundle: the cached one, or what
// our own last write left when the cache does not have that yet. Without this
// a cache that lags behind would make the monitor write the same again.
func (l *ledger) newest(cached *k8spluginv1alpha1.ResourceBundleState) *k8spluginv1alpha1.ResourceBundleState {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(nameOfBundle(cached))
	if e.written == nil {
		return cached
	}
	if order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, e.written.ResourceVersion); err == nil && order < 0 {
		return e.written
	}
	e.written = nil
	return cached
}

// settled says whether the status of a bundle is known to be right at this
// version of the bundle and this count of changes.
func (l *ledger) settled(b *k8spluginv1alpha1.ResourceBundleState, changes uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(nameOfBundle(b))
	return e.settledVersion == b.ResourceVersion && e.settledChanges == changes
}

// settle notes that the status of a bundle is right.
func (l *ledger) settle(b *k8spluginv1alpha1.ResourceBundleState, changes uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(nameOfBundle(b))
	e.settledVersion, e.settledChanges = b.ResourceVersion, changes
}

// due is how long to wait before the bundle may be written; not more than zero means now.
func (l *ledger) due(name types.NamespacedName, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(name)
	return e.lastWrite.Add(interval(e.failures)).Sub(now)
}

// wrote notes that a write which began then succeeded, and keeps what it left behind.
func (l *ledger) wrote(b *k8spluginv1alpha1.ResourceBundleState, changes uint64, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(nameOfBundle(b))
	e.lastWrite, e.failures = began, 0
	e.written = b
	e.settledVersion, e.settledChanges = b.ResourceVersion, changes
}

// failed notes that a write which began then did not succeed.
func (l *ledger) failed(name types.NamespacedName, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entry(name)
	e.lastWrite = began
	e.failures++
}

// forget drops what is known of a bundle that is gone.
func (l *ledger) forget(name types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, name)
}

func nameOfBundle(b *k8spluginv1alpha1.ResourceBundleState) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
}
