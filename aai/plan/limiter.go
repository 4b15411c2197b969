package plan

import (
	"fmt"
	"math"

	"github.com/healthscope/healthscope/aai"
)

// minAllowance is the number of documents of a data-source that may always be deleted at a time, even if they exceed the percentage.
const minAllowance = 20

// Limit bounds how many documents of a data-source are deleted at a time. It gives an operator
// time to stop a source with wrong data before all of its documents are deleted.
type Limit struct {
	// Percent is the percentage of the source's documents that may be deleted at a time. Zero or less, and 100 or more, mean no limit.
	Percent int
}

// allowance returns how many documents of a source that has owned documents may be deleted at a time.
func (l Limit) allowance(owned int) int {
	if l.Percent <= 0 || l.Percent >= 100 {
		return math.MaxInt
	}
	return max(minAllowance, owned*l.Percent/100)
}

// DeletionLimiter grants the deletions of documents of one data-source up to the limit.
type DeletionLimiter struct {
	owned   int
	limit   Limit
	granted map[aai.Key]bool
	refused bool
}

// NewDeletionLimiter returns a limiter for a data-source that has owned documents.
func NewDeletionLimiter(owned int, l Limit) *DeletionLimiter {
	return &DeletionLimiter{owned: owned, limit: l, granted: map[aai.Key]bool{}}
}

// Allow reports whether a document may be deleted. A document that was granted once is always granted.
func (d *DeletionLimiter) Allow(key aai.Key) bool {
	if len(d.granted) >= d.limit.allowance(d.owned) && !d.granted[key] {
		d.refused = true
		return false
	}
	d.granted[key] = true
	return true
}

// Next returns the limiter for the next round, in which the source has owned documents. If this limiter refused a document,
// the next allowance is not smaller, so that all documents are deleted after the number of rounds that the limit implies.
func (d *DeletionLimiter) Next(owned int) *DeletionLimiter {
	if d.refused {
		owned = max(owned, d.owned)
	}
	return NewDeletionLimiter(owned, d.limit)
}

// Refused reports whether the limiter has refused a document.
func (d *DeletionLimiter) Refused() bool { return d.refused }

// Skipped returns the explanation for a document that the limiter has refused.
func (d *DeletionLimiter) Skipped(key aai.Key, source string) *Skipped {
	return &Skipped{
		Key: key, Source: source, Cause: CauseLimit,
		Message: fmt.Sprintf("no more than %d of the %d resources of cluster %q go at a time", d.limit.allowance(d.owned), d.owned, source),
	}
}
