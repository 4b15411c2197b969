package simulator

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ViolationKind names a mistake of a client that A&AI accepts, or rejects late.
type ViolationKind string

// The violations that strict mode logs.
const (
	// UnknownProperty is a property that the schema does not have; A&AI drops it without an error.
	UnknownProperty ViolationKind = "unknown-property"
	// WrongCase is a property spelt with other case or separators, like dataOwner; dropped as well.
	WrongCase ViolationKind = "wrong-case"
	// WrongType is a value of another JSON type than the property's; converted or dropped.
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
	// ReusedTransactionID is a transaction id that another request had before; to send the same request again is none.
	ReusedTransactionID ViolationKind = "reused-transaction-id"
	// DuplicateLabel is a list with the same value twice; A&AI stores a set.
	DuplicateLabel ViolationKind = "duplicate-label"
)

// Violation is one entry of the log of strict mode.
type Violation struct {
	// Time is when the request was handled, by Options.Clock.
	Time time.Time `json:"time"`
	// Kind is the kind of the violation.
	Kind ViolationKind `json:"kind"`
	// Request is method, path and query of the request.
	Request string `json:"request"`
	// TransactionID is the request's own id, empty for none.
	TransactionID string `json:"transaction-id,omitempty"`
	// Detail describes the violation.
	Detail string `json:"detail"`
}

// maxViolations bounds the log.
const maxViolations = 10_000

// reportf records a violation of a request in strict mode.
func (q *request) reportf(kind ViolationKind, format string, args ...any) {
	if q.strict {
		q.violations = append(q.violations, Violation{q.receivedAt, kind, q.original, q.transactionID(), fmt.Sprintf(format, args...)})
	}
}

// logViolations adds the violations of a request to the log.
func (s *Simulator) logViolations(q *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations = append(s.violations, q.violations[:min(len(q.violations), maxViolations-len(s.violations))]...)
}

// Violations returns what strict mode has logged, oldest first, at most 10,000. Without Options.Strict it is empty.
func (s *Simulator) Violations() []Violation {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append([]Violation{}, s.violations...)
}

// strictError returns the error for a request with violations if Options.Reject is set, else nil.
func (s *Simulator) strictError(q *request) *apiError {
	if !s.reject || len(q.violations) == 0 {
		return nil
	}
	first := q.violations[0]
	return newAPIError(errInvalidInput, "refused by strict mode: %s: %s", first.Kind, first.Detail).forRequest(q.method, q.versioned())
}

// checkTransactionID reports a transaction id that another request has used.
func (s *Simulator) checkTransactionID(q *request) {
	if !s.strict {
		return
	}
	id, content := q.transactionID(), digest(q.original, string(q.body))
	s.mu.Lock()
	before, known := s.transactions[id]
	if !known {
		s.transactions[id] = content
	}
	s.mu.Unlock()
	if known && before != content {
		q.reportf(ReusedTransactionID, "transaction id %q belongs to another request", id)
	}
}

// checkType reports a value of the wrong type unless ok is set.
func (q *request) checkType(t *nodeType, p *property, value any, ok bool) {
	if !ok {
		q.reportf(WrongType, "%s.%s got %s", t.name, p.name, jsonKind(value))
	}
}

func (q *request) reportUnknown(t *nodeType, name string, raw map[string]any) {
	_, nested := raw[name].(map[string]any)
	misspelt := slices.IndexFunc(t.properties, func(p property) bool {
		return normalizeName(p.name) == normalizeName(name) && p.name != name
	})
	switch {
	case nested && len(raw) == 1 && name == t.name:
		q.reportf(WrappedBody, "the body is wrapped in %q", name)
	case misspelt >= 0:
		q.reportf(WrongCase, "%s has %q, not %q", t.name, t.properties[misspelt].name, name)
	default:
		q.reportf(UnknownProperty, "%s has no property %q", t.name, name)
	}
}

// normalizeName removes the case and separators of a name, which clients often misspell.
func normalizeName(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// digest returns a hash that distinguishes contents. It is not cryptographic.
func digest(parts ...string) string {
	h := fnv.New64a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part)) // a hash never fails
		_, _ = h.Write([]byte{0})
	}
	return strconv.FormatUint(h.Sum64(), 16)
}
