// Package pruning owns the guard that keeps a controller from repeating writes that the API server prunes: an
// API server drops every field that the CRD does not know, and a CRD of the same name may be another project's.
// Packages app, monitor and scope call it. It must never read or write an object itself.
//
// The writer detects pruning in the response to its own write, or in what a watch then shows. It calls Allow before each
// write, and Pruned or Kept after it. While writes are pruned, one write is allowed in every Interval, so that the
// writer notices when the right CRD is back.
package pruning

import (
	"fmt"
	"sync"
	"time"
)

// Interval is the time between two attempts while writes are pruned.
const Interval = 30 * time.Second

// Guard records whether the API server keeps what a controller writes. It is safe for concurrent use.
type Guard struct {
	subject string

	mu sync.Mutex
	// problem is why writes are pruned; empty while they are not.
	problem string
	// lastAttempt is when the last write was allowed while writes are pruned.
	lastAttempt time.Time
	// conflicts holds the field manager of the other controller, by the object whose status it also writes.
	conflicts map[string]string
}

// NewGuard returns a guard without a problem. subject names the objects whose status is written, such as "HealthScopes".
func NewGuard(subject string) *Guard { return &Guard{subject: subject} }

// Allow returns how long to wait before the next write; zero means that the caller may write now. While writes are
// pruned, it returns zero to one caller in every Interval, which must then write; the others wait and call it again.
// A clock that is set back does not make a caller wait for longer than Interval.
func (g *Guard) Allow(now time.Time) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.problem == "" {
		return 0
	}
	if since := now.Sub(g.lastAttempt); since >= 0 && since < Interval {
		return Interval - since
	}
	g.lastAttempt = now
	return 0
}

// Pruned records that a write was pruned. problem says why in a few words, such as
// "the CRD prunes status.summary". It reports whether the problem is new, so that the caller logs it once.
func (g *Guard) Pruned(now time.Time, problem string) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed = g.problem != problem
	g.problem, g.lastAttempt = problem, now
	return changed
}

// Kept records that the API server kept a write, or that there is nothing left to
// write. It reports whether writes were pruned before; callers that wait may then write at once.
func (g *Guard) Kept() (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed = g.problem != ""
	g.problem = ""
	return changed
}

// Ready returns an error while writes are pruned, or while another controller writes the same status. It serves as a readiness check.
func (g *Guard) Ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.problem == "" {
		return g.conflict()
	}
	return fmt.Errorf("cannot keep the status of %s: %s; it is probably another project's CRD: apply the one in config/crd", g.subject, g.problem)
}
