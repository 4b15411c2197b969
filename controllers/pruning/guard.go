// Package pruning owns the guard that keeps a controller from writing, again and again, what the API server drops: an
// API server prunes every field that the CRD does not know, and a CRD of the same name may be another project's.
// Packages app, monitor and scope call it. It must never read or write an object itself.
//
// The writer finds out by the answer to its own write, or by what a watch then shows. It asks Allow before each
// write and reports with Pruned or Intact after it. While writes are pruned, one
// is allowed in every Interval, so that it is noticed when the right CRD is back.
package pruning

import (
	"fmt"
	"sync"
	"time"
)

// Interval is the time between two attempts while writes are pruned.
const Interval = 30 * time.Second

// Guard remembers whether what is written stays. It is safe for concurrent use.
type Guard struct {
	subject string

	mu sync.Mutex
	// problem is why writes are in vain; empty while they are not.
	problem string
	// attempted is when the last write was allowed, while they are in vain.
	attempted time.Time
	// conflicts are the objects whose status is also written by others, and by whom.
	conflicts map[string]string
}

// NewGuard returns a guard that has seen no problem yet. subject is whose status is written, such as "HealthScopes".
func NewGuard(subject string) *Guard { return &Guard{subject: subject} }

// Allow says how long to wait before the next write; zero means that it may be
// made now. While writes are pruned it returns zero to one caller in every
// Interval, who must then write; the others wait for as long as it says and ask again.
// A clock that was set back does not make a caller wait for longer than Interval.
func (g *Guard) Allow(now time.Time) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.problem == "" {
		return 0
	}
	if since := now.Sub(g.attempted); since >= 0 && since < Interval {
		return Interval - since
	}
	g.attempted = now
	return 0
}

// Pruned reports that a write was in vain. what says why in a few words, such as
// "the CRD prunes status.summary". It returns true when that is news, which deserves a log line.
func (g *Guard) Pruned(now time.Time, what string) (news bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	news = g.problem != what
	g.problem, g.attempted = what, now
	return news
}

// Intact reports that a write has stayed whole, or that there is nothing left to
// write. It returns true when writes were in vain before; callers that wait may then write at once.
func (g *Guard) Intact() (news bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	news = g.problem != ""
	g.problem = ""
	return news
}

// Ready returns an error for people while writes are in vain, or in conflict with those of others. It is fit for a readiness check.
func (g *Guard) Ready() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.problem == "" {
		return g.conflict()
	}
	return fmt.Errorf("cannot keep the status of %s: %s; it is probably another project's CRD: apply the one in config/crd", g.subject, g.problem)
}
