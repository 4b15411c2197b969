package simulator

import (
	"encoding/json"
	"fmt"
)

// Action is a write of somebody else than the client under test. It needs no credentials and no resource-version, meets
// no faults, and is in no journal. Its events have the source-name and the id "actor".
type Action struct {
	// Action is put, patch or delete.
	Action string `json:"action"`
	// URI is the path of a node, or of its relationship-list/relationship, with or without /aai/vN.
	URI string `json:"uri"`
	// Body is the document, the merge patch or the relationship. A deletion of a node needs none.
	Body map[string]any `json:"body,omitempty"`
}

// Act does writes as somebody else, one after the other. It ends at the first that A&AI refuses; those before it stay done.
func (s *Simulator) Act(actions ...Action) error {
	for i, a := range actions {
		if err := s.act(a); err != nil {
			return fmt.Errorf("cannot do action %d, %s %q: %w", i, a.Action, a.URI, err)
		}
	}
	return nil
}

func (s *Simulator) act(a Action) error {
	if _, known := bulkVerbs[a.Action]; !known {
		return fmt.Errorf("action %q is not put, patch or delete", a.Action)
	}
	raw, err := json.Marshal(a.Body)
	if err != nil || a.Body == nil {
		raw = []byte("{}")
	}
	q := &request{base: s.base, schema: s.defaultVersion, report: ignore}
	op, refused := bulkOperation{Action: a.Action, URI: a.URI, Body: raw}.operation(q)
	if refused == nil {
		refused = s.transact(author{app: "actor", transaction: "actor", schema: s.defaultVersion}, func(t *tx) *apiError {
			return t.applyAny(op)
		})
	}
	if refused != nil {
		return fmt.Errorf("%s %s", refused.code, refused.detail)
	}
	return nil
}

// applyAny does an operation whatever resource-version the node has.
func (t *tx) applyAny(op *operation) *apiError {
	if found := t.lookup(op.target); len(found) == 1 && op.target.scope == nodeScope {
		op.version = found[0].version
		if op.doc != nil {
			op.doc.version = found[0].version
		}
	}
	_, err := t.apply(op)
	return err
}
