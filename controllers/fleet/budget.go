package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// errOverBudget is why nothing is read any more of a cluster that takes more than it may.
var errOverBudget = errors.New("the cluster takes more of the hub than its budget allows")

const (
	// changesBurst is how long a cluster may have been quiet for, and then make its changes at once.
	changesBurst = 10 * time.Second
	// maxBehind is how long a cluster may exceed its rate of changes. What the hub shows of it gets older meanwhile.
	maxThrottling = 30 * time.Second
)

// Budget bounds what clusters may take of the hub's memory and time. Zero means no bound. The hub's own cluster counts in
// the sum, and is never cut off: without it the hub can report nothing.
type Budget struct {
	// Bundles, Resources and Bytes bound what is held of one cluster. Objects that scopes refer to count as resources.
	Bundles, Resources, Bytes int64
	// Changes bounds how often one cluster changes in a second, after it was read from the start.
	Changes int64
	// Total bounds the bytes that are held of all clusters. Past it, the cluster of which most is held is cut off.
	Total int64
}

// usage is what is used of a budget.
type usage struct{ bundles, resources, bytes int64 }

func (u usage) plus(o usage) usage {
	return usage{u.bundles + o.bundles, u.resources + o.resources, u.bytes + o.bytes}
}

func (u usage) minus(o usage) usage {
	return usage{u.bundles - o.bundles, u.resources - o.resources, u.bytes - o.bytes}
}

// limit is one of the limits of a budget for one cluster, with what is used of it. text formats an amount.
type limit struct {
	name       string
	used, hard int64
	text       func(int64) string
}

// limits returns the limits of the budget for a cluster.
func (b Budget) limits(used usage) []limit {
	count := func(what string) func(int64) string {
		return func(n int64) string { return fmt.Sprintf("%d %s", n, what) }
	}
	return []limit{
		{"bundles", used.bundles, b.Bundles, count("bundles")},
		{"resources", used.resources, b.Resources, count("resources")},
		{"memory", used.bytes, b.Bytes, mebibytes},
	}
}

// exceeded returns which limits a cluster exceeds, as text; empty when there is none.
func (b Budget) exceeded(used usage) string {
	var exceeded []string
	for _, l := range b.limits(used) {
		if l.hard > 0 && l.used > l.hard {
			exceeded = append(exceeded, l.text(l.used)+", and may hold "+l.text(l.hard))
		}
	}
	if len(exceeded) == 0 {
		return ""
	}
	return "the hub holds of it " + strings.Join(exceeded, "; ")
}

// mebibytes formats a number of bytes.
func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// quotas are the quotas of all clusters. They have one lock, because the sum is limited too.
type quotas struct {
	hard  Budget
	clock clock.Clock

	mu       sync.Mutex
	clusters map[*quota]struct{}
}

// quota counts what is used by one cluster.
type quota struct {
	quotas  *quotas
	cluster string
	// local is true for the hub's own cluster, and wake is called when something is to be done. It does not block.
	local bool
	wake  func()

	// What follows is guarded by the lock of quotas.
	used usage
	// kept is the bytes of what is still shown of a cluster that was cut off, as it was known last. dropping is true once that is to go too.
	staleBytes int64
	dropStale  bool
	// generation counts the attempts to read the cluster, and exceeded says why the last one was ended; empty while it was not.
	generation int
	exceeded   string
}

// open returns the quota of a cluster that comes.
func (qs *quotas) register(cluster string, local bool, wake func()) *quota {
	q := &quota{quotas: qs, cluster: cluster, local: local, wake: wake}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.clusters == nil {
		qs.clusters = map[*quota]struct{}{}
	}
	qs.clusters[q] = struct{}{}
	return q
}

// close removes a cluster.
func (q *quota) unregister() {
	q.quotas.mu.Lock()
	defer q.quotas.mu.Unlock()
	delete(q.quotas.clusters, q)
}

// newMeter returns the meter of an attempt to read the cluster.
func (q *quota) newMeter() *meter {
	q.quotas.mu.Lock()
	defer q.quotas.mu.Unlock()
	m := &meter{quota: q, generation: q.generation}
	if changes := q.quotas.hard.Changes; changes > 0 && !q.local {
		m.changes = rate.NewLimiter(rate.Limit(changes), int(changes)*int(changesBurst/time.Second))
	}
	return m
}

// reopen lets a cluster be read again that has been cut off.
func (q *quota) endCutOff() {
	q.quotas.mu.Lock()
	defer q.quotas.mu.Unlock()
	q.exceeded = ""
}

// status says why the cluster has been cut off, and whether what is still shown of it is to go; exceeded is empty while it has not been.
func (q *quota) status() (exceeded string, drop bool) {
	q.quotas.mu.Lock()
	defer q.quotas.mu.Unlock()
	return q.exceeded, q.dropStale
}

// dropped notes that nothing is shown any more of what was known before the cluster was cut off.
func (q *quota) staleDropped() {
	q.quotas.mu.Lock()
	defer q.quotas.mu.Unlock()
	q.staleBytes, q.dropStale = 0, false
}

// total returns the bytes that are held of the cluster in any way.
func (q *quota) total() int64 { return q.used.bytes + q.staleBytes }

// cutOff ends the attempt to read the cluster. The caller has the lock.
func (q *quota) cutOff(exceeded string) {
	q.exceeded, q.generation = exceeded, q.generation+1
	q.staleBytes, q.used = max(q.staleBytes, q.used.bytes/2), usage{} // What is shown is kept; what it was made from is not.
	q.wake()
}

// enforce cuts off clusters that use too much, now that one uses more. The caller has the lock.
func (qs *quotas) enforce(q *quota) {
	if exceeded := qs.hard.exceeded(q.used); exceeded != "" && !q.local {
		q.cutOff(exceeded)
	}
	if qs.hard.Total == 0 {
		return
	}
	for sum := qs.sum(); sum > qs.hard.Total; {
		victim := qs.victim()
		if victim == nil {
			return
		}
		before := victim.total()
		if victim.exceeded != "" {
			victim.staleBytes, victim.dropStale = 0, true
			victim.wake()
		} else {
			victim.cutOff(fmt.Sprintf("the hub holds %s of all clusters, and may hold %s; of this one it holds most, %s",
				mebibytes(sum), mebibytes(qs.hard.Total), mebibytes(victim.used.bytes)))
		}
		sum += victim.total() - before
	}
}

func (qs *quotas) sum() (bytes int64) {
	for q := range qs.clusters {
		bytes += q.total()
	}
	return bytes
}

// victim returns the quota that must release memory: the cluster with the most stale bytes of those that are cut off, and
// otherwise the largest other cluster; nil when there is none.
func (qs *quotas) victim() *quota {
	var stale, largest *quota
	for q := range qs.clusters {
		switch {
		case q.exceeded != "" && q.staleBytes > 0 && (stale == nil || q.staleBytes > stale.staleBytes):
			stale = q
		case q.exceeded == "" && !q.local && (largest == nil || q.total() > largest.total() || q.total() == largest.total() && q.cluster < largest.cluster):
			largest = q
		}
	}
	if stale != nil {
		return stale
	}
	return largest
}

// usedRatios returns the ratios of used to hard, by cluster and by the names of its limits. The hub's own cluster has none.
func (qs *quotas) usedRatios() map[string]map[string]float64 {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	all := map[string]map[string]float64{}
	for q := range qs.clusters {
		if q.local {
			continue
		}
		all[q.cluster] = map[string]float64{}
		for _, l := range qs.hard.limits(q.used) {
			if l.hard > 0 {
				all[q.cluster][l.name] = float64(l.used) / float64(l.hard)
			}
		}
	}
	return all
}

// meter counts what one attempt to read a cluster uses of its quota. A command, which reads without a budget, has a nil one.
type meter struct {
	quota      *quota
	generation int
	// changes are those that may come; nil when any number may.
	changes *rate.Limiter
	// behind is since when changes have had to wait, guarded by the lock of quotas; zero when the last one did not.
	throttledSince time.Time
}

// err returns an error once nothing more is to be read.
func (m *meter) err() error {
	m.quota.quotas.mu.Lock()
	defer m.quota.quotas.mu.Unlock()
	return m.errLocked()
}

// errLocked is err for callers that have the lock.
func (m *meter) errLocked() error {
	if m.generation != m.quota.generation {
		return errOverBudget
	}
	return nil
}

// cutOff ends the attempt for another reason than a limit.
func (m *meter) cutOff(exceeded string) {
	m.quota.quotas.mu.Lock()
	defer m.quota.quotas.mu.Unlock()
	if m.errLocked() == nil && !m.quota.local {
		m.quota.cutOff(exceeded)
	}
}

// awaitChange waits until the cluster may change once more, so that others have the processor, and returns an error when
// ctx ends. A cluster of which changes have waited for too long is cut off.
func (m *meter) awaitChange(ctx context.Context) error {
	if m.changes == nil {
		return nil
	}
	c := m.quota.quotas.clock
	now := c.Now()
	reservation := m.changes.ReserveN(now, 1)
	pause := reservation.DelayFrom(now)
	if m.isThrottledTooLong(pause > 0, now) {
		m.cutOff(fmt.Sprintf("it changes more than %g times a second", m.changes.Limit()))
	}
	if pause == 0 {
		return nil
	}
	select {
	case <-c.After(pause):
		return nil
	case <-ctx.Done():
		reservation.CancelAt(c.Now())
		return ctx.Err()
	}
}

// isBehind notes whether a change waits, and reports whether changes have waited for too long.
func (m *meter) isThrottledTooLong(waits bool, now time.Time) bool {
	m.quota.quotas.mu.Lock()
	defer m.quota.quotas.mu.Unlock()
	switch {
	case !waits:
		m.throttledSince = time.Time{}
	case m.throttledSince.IsZero():
		m.throttledSince = now
	}
	return waits && now.Sub(m.throttledSince) > maxThrottling
}
