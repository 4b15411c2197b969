package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// errOverBudget is the error of every request to a cluster that is cut off because it exceeds its budget.
var errOverBudget = errors.New("the cluster takes more of the hub than its budget allows")

const (
	// changesBurst is the time whose changes a cluster may make at once after it made none.
	changesBurst = 10 * time.Second
	// maxThrottling is how long a cluster may exceed its rate of changes. What the hub shows of it gets older meanwhile.
	maxThrottling = 30 * time.Second
)

// Budget limits how much of the hub's memory and time clusters may use. Zero means no limit. The hub's own cluster counts
// in the total, and is never cut off: without it the hub can report nothing.
type Budget struct {
	// Bundles, Resources and Bytes limit what the hub holds of one cluster. Objects that scopes refer to count as resources.
	Bundles, Resources, Bytes int64
	// Changes limits the changes per second of one cluster, once its initial list has been read.
	Changes int64
	// Total limits the bytes that the hub holds of all clusters. When it is exceeded, the cluster that uses most is cut off.
	Total int64
}

// usage is how much of a budget is used.
type usage struct{ bundles, resources, bytes int64 }

func (u usage) plus(o usage) usage {
	return usage{u.bundles + o.bundles, u.resources + o.resources, u.bytes + o.bytes}
}

func (u usage) minus(o usage) usage {
	return usage{u.bundles - o.bundles, u.resources - o.resources, u.bytes - o.bytes}
}

// limit is one of the limits of a cluster's budget, with how much of it is used. text formats an amount.
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

// exceeded returns a message that names the limits that a cluster exceeds; empty when it exceeds none.
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

// quotas are the quotas of all clusters. They share one lock, because their total is limited too.
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
	// local is true for the hub's own cluster. wake notifies the member that its status has changed; it does not block.
	local bool
	wake  func()

	// The fields below are guarded by the lock of quotas.
	used usage
	// staleBytes is the size of the stale bundles that are still shown of a cluster that was cut off. dropStale is true once these must be removed too.
	staleBytes int64
	dropStale  bool
	// exceeded is why the last attempt to read the cluster was ended; empty while the cluster is not cut off.
	exceeded string
	// generation counts these attempts. It changes under the lock only.
	generation atomic.Int64
}

// register adds a cluster, and returns its quota.
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

// unregister removes the cluster.
func (q *quota) unregister() {
	q.quotas.mu.Lock()
	defer q.quotas.mu.Unlock()
	delete(q.quotas.clusters, q)
}

// newMeter returns a meter for an attempt to read the cluster.
func (q *quota) newMeter() *meter {
	q.quotas.mu.Lock()
	defer q.quotas.mu.Unlock()
	m := &meter{quota: q, generation: q.generation.Load()}
	if changes := q.quotas.hard.Changes; changes > 0 && !q.local {
		m.changes = rate.NewLimiter(rate.Limit(changes), int(changes)*int(changesBurst/time.Second))
	}
	return m
}

// endCutOff lets a cluster that was cut off be read again.
func (q *quota) endCutOff() {
	q.quotas.mu.Lock()
	defer q.quotas.mu.Unlock()
	q.exceeded = ""
}

// status returns why the cluster is cut off, and whether its stale bundles must be removed. exceeded is empty while the cluster is not cut off.
func (q *quota) status() (exceeded string, drop bool) {
	q.quotas.mu.Lock()
	defer q.quotas.mu.Unlock()
	return q.exceeded, q.dropStale
}

// staleDropped notes that no bundle from before the cluster was cut off is shown any more.
func (q *quota) staleDropped() {
	q.quotas.mu.Lock()
	defer q.quotas.mu.Unlock()
	q.staleBytes, q.dropStale = 0, false
}

// total returns the bytes that the hub holds of the cluster, stale bundles included.
func (q *quota) total() int64 { return q.used.bytes + q.staleBytes }

// cutOff ends the attempt to read the cluster. The caller has the lock.
func (q *quota) cutOff(exceeded string) {
	q.exceeded = exceeded
	q.generation.Add(1)
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
	var sum int64
	for q := range qs.clusters {
		sum += q.total()
	}
	for sum > qs.hard.Total {
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

// usedRatios returns the ratios of used to hard, by cluster and limit name. The hub's own cluster has none.
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

// meter counts what one attempt to read a cluster uses of its quota. It is nil in a command, which reads without a budget.
type meter struct {
	quota      *quota
	generation int64
	// changes limits the rate of changes; nil means no limit.
	changes *rate.Limiter
	// throttledSince is when a change last did not have to wait. The lock of quotas guards it.
	throttledSince time.Time
}

// err returns an error once nothing more may be read.
func (m *meter) err() error {
	if m.generation != m.quota.generation.Load() {
		return errOverBudget
	}
	return nil
}

// cutOff ends the attempt for a reason that is not one of the limits.
func (m *meter) cutOff(exceeded string) {
	m.quota.quotas.mu.Lock()
	defer m.quota.quotas.mu.Unlock()
	if m.err() == nil && !m.quota.local {
		m.quota.cutOff(exceeded)
	}
}

// awaitChange waits until the cluster may change once more, so that other clusters get processor time, and returns an error
// when ctx ends. It cuts the cluster off when changes have been throttled for longer than maxThrottling.
func (m *meter) awaitChange(ctx context.Context) error {
	if m.changes == nil {
		return nil
	}
	c := m.quota.quotas.clock
	now := c.Now()
	reservation := m.changes.ReserveN(now, 1)
	pause := reservation.DelayFrom(now)
	m.quota.quotas.mu.Lock()
	if pause == 0 || m.throttledSince.IsZero() {
		m.throttledSince = now
	}
	tooLong := now.Sub(m.throttledSince) > maxThrottling
	m.quota.quotas.mu.Unlock()
	if tooLong {
		m.cutOff(fmt.Sprintf("it changes more than %g times a second", m.changes.Limit()))
	}
	if pause == 0 {
		return nil
	}
	err := sleep(ctx, c, pause)
	if err != nil {
		reservation.CancelAt(c.Now())
	}
	return err
}
