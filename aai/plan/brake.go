package plan

import (
	"fmt"

	"github.com/healthscope/healthscope/aai"
)

// handful is how many documents of a data-source may always go at a time, whatever their share.
const handful = 20

// Limit bounds how many documents of a data-source are deleted at a time, so that
// a source that is wrong about what there is can be stopped before all is gone.
type Limit struct {
	// Percent is the share of the source's documents that may go at a time. Zero or less, and 100 or more, is no limit.
	Percent int
}

// allowance returns how many documents may go of a source that has so many; less than zero for any number.
func (l Limit) allowance(owned int) int {
	if l.Percent <= 0 || l.Percent >= 100 {
		return -1
	}
	return max(handful, owned*l.Percent/100)
}

// Brake grants the deletions of documents of one data-source up to the limit.
type Brake struct {
	owned   int
	limit   Limit
	granted map[aai.Key]bool
	refused bool
}

// NewBrake returns a brake for a data-source that has so many documents.
func NewBrake(owned int, l Limit) *Brake {
	return &Brake{owned: owned, limit: l, granted: map[aai.Key]bool{}}
}

// Take says whether a document may go. One that was granted stays so.
func (b *Brake) Take(key aai.Key) bool {
	if n := b.limit.allowance(b.owned); n >= 0 && len(b.granted) >= n && !b.granted[key] {
		b.refused = true
		return false
	}
	b.granted[key] = true
	return true
}

// Next returns the brake for the next time, when the source has owned documents. If one was refused, the rest goes by
// the same measure, so that everything goes in the end after as many times as the limit says.
func (b *Brake) Next(owned int) *Brake {
	if b.refused {
		owned = max(owned, b.owned)
	}
	return NewBrake(owned, b.limit)
}

// Refused says whether the brake has refused a document.
func (b *Brake) Refused() bool { return b.refused }

// Kept says why a document stays that the brake has refused.
func (b *Brake) Kept(key aai.Key, source string) *Kept {
	return &Kept{
		Key: key, Source: source, Cause: CauseLimit,
		Message: fmt.Sprintf("no more than %d of the %d resources of cluster %q go at a time", b.limit.allowance(b.owned), b.owned, source),
	}
}
