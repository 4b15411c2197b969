package simulator

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"time"
)

// ViolationKind names a thing that A&AI puts up with, or punishes late, and a careful client does not do.
type ViolationKind string

// The violations that strict mode logs.
const (
	// UnknownProperty is a property the schema does not have; A&AI drops it without a word.
	UnknownProperty ViolationKind = "unknown-property"
	// WrongCase is a property spelt with other case or separators, like dataOwner; dropped as well.
	WrongCase ViolationKind = "wrong-case"
	// WrongType is a value of another JSON type than the property's; coerced or dropped.
	WrongType ViolationKind = "wrong-type"
	// WrappedBody is a document inside an object named after its type; A&AI sees an empty document.
	WrappedBody ViolationKind = "wrapped-body"
	// MissingAccept is a request without Accept header.
	MissingAccept ViolationKind = "missing-accept"
	// XMLAccept is an Accept header that makes A&AI answer XML, like */*.
	XMLAccept ViolationKind = "xml-accept"
	// NonCanonicalEncoding is a path or query that is not percent-encoded the way A&AI wants it.
	NonCanonicalEncoding ViolationKind = "non-canonical-encoding"
	// UnchangedPut is a PUT of what is already stored; it costs a resource-version and an event.
	UnchangedPut ViolationKind = "unchanged-put"
	// UnchangedPatch is a PATCH that changes nothing.
	UnchangedPatch ViolationKind = "unchanged-patch"
	// ReusedTransactionID is a transaction id that an other request had before; sending the same request again is none.
	ReusedTransactionID ViolationKind = "reused-transaction-id"
	// DuplicateLabel is a list with the same value twice; A&AI keeps a set.
	DuplicateLabel ViolationKind = "duplicate-label"
)

// Violation is one entry of the log that strict mode keeps.
type Violation struct {
	// Time is when it was noticed, by Options.Clock.
	Time time.Time `json:"time"`
	// Kind says what is wrong.
	Kind ViolationKind `json:"kind"`
	// Request is method, path and query of the request.
	Request string `json:"request"`
	// TransactionID is the request's own id, empty for none.
	TransactionID string `json:"transaction-id,omitempty"`
	// Detail says where.
	Detail string `json:"detail"`
}

// reporter notes a violation.
type reporter func(kind ViolationKind, format string, args ...any)

// ignore is the reporter of faithful mode.
func ignore(ViolationKind, string, ...any) {}

// Bounds of what strict mode remembers.
const (
	maxViolations     = 10_000
	maxTransactionIDs = 100_000
)

// violationLog collects violations in strict mode.
type violationLog struct {
	strict bool

	mu      sync.Mutex // guards the rest
	entries []Violation
	seen    map[string]string // transaction id -> digest of the request that had it
	order   []string          // transaction ids, oldest first
}

// reporter returns what notes violations of one request.
func (l *violationLog) reporter(q *request, now time.Time) reporter {
	if !l.strict {
		return ignore
	}
	return func(kind ViolationKind, format string, args ...any) {
		detail := fmt.Sprintf(format, args...)
		q.offence = cmp.Or(q.offence, string(kind)+": "+detail)
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.entries) == maxViolations {
			return
		}
		l.entries = append(l.entries, Violation{
			Time: now, Kind: kind, Request: q.original, TransactionID: q.transactionID(), Detail: detail,
		})
	}
}

// identify checks that no other request had the transaction id.
func (l *violationLog) identify(q *request) {
	if !l.strict {
		return
	}
	id, content := q.transactionID(), digest(q.original, string(q.body))
	l.mu.Lock()
	before, known := l.seen[id]
	if !known {
		l.remember(id, content)
	}
	l.mu.Unlock()
	if known && before != content {
		q.report(ReusedTransactionID, "transaction id %q belongs to another request", id)
	}
}

func (l *violationLog) remember(id, content string) {
	if l.seen == nil {
		l.seen = map[string]string{}
	}
	l.seen[id] = content
	l.order = append(l.order, id)
	if len(l.order) > maxTransactionIDs {
		delete(l.seen, l.order[0])
		l.order = l.order[1:]
	}
}

// Violations returns what strict mode has logged, oldest first, at most 10,000. Without Options.Strict it is empty.
func (s *Simulator) Violations() []Violation {
	s.violations.mu.Lock()
	defer s.violations.mu.Unlock()
	return append([]Violation{}, slices.Clone(s.violations.entries)...)
}

// digest tells contents apart; it is no protection against intent.
func digest(parts ...string) string {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part)) // a hash never fails
		_, _ = h.Write([]byte{0})
	}
	return strconv.FormatUint(h.Sum64(), 16)
}
