package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// bulkLimit is how many operations one bulk request may hold by default (aai.bulkconsumer.payloadlimit).
const bulkLimit = 30

// bulkOperation is one entry of a single-transaction request.
type bulkOperation struct {
	Action string          `json:"action"`
	URI    string          `json:"uri"`
	Body   json.RawMessage `json:"body"`
}

// bulk answers POST bulk/single-transaction: all operations in order in one transaction, each seeing those before it,
// or none of them.
func (s *Simulator) bulk(q *request) reply {
	q.format = jsonFormat
	if q.mediaType() != jsonFormat.mediaType() {
		return q.refuse(containerPage(http.StatusUnsupportedMediaType))
	}
	asked, err := parseBulk(q.body, s.bulkLimit)
	if err != nil {
		return q.refuse(err.at(q.method, q.versioned()))
	}
	ops := make([]*operation, len(asked))
	for i, a := range asked {
		if ops[i], err = a.operation(q); err != nil {
			return q.refuse(bulkRejection(i, err).at(q.method, q.versioned()))
		}
	}
	return s.commit(q, asked, ops)
}

// commit applies the operations of a bulk request, or none.
func (s *Simulator) commit(q *request, asked []bulkOperation, ops []*operation) reply {
	responses := make([]object, len(ops))
	failed := -1
	err := s.transact(q.author(), func(t *tx) *apiError {
		for i, op := range ops {
			done, err := t.apply(op)
			if err != nil {
				failed = i
				return err
			}
			responses[i] = object{
				{"action", asked[i].Action}, {"uri", asked[i].URI}, {"response-status-code", done.status}, {"response-body", nil},
			}
		}
		return s.objection(q)
	})
	switch {
	case err != nil && failed >= 0:
		return bulkFailure(q, failed, err)
	case err != nil:
		return q.refuse(err)
	}
	return q.answer(http.StatusCreated, "operation-responses", object{{"operation-responses", responses}})
}

// parseBulk reads the envelope and checks what it must have.
func parseBulk(body []byte, limit int) ([]bulkOperation, *apiError) {
	var envelope *struct {
		Operations []bulkOperation `json:"operations"`
	}
	if json.Unmarshal(body, &envelope) != nil || envelope == nil {
		return nil, fail(codeBadEnvelope, "Input payload does not follow bulk/single-transaction interface")
	}
	switch n := len(envelope.Operations); {
	case n == 0:
		return nil, fail(codeFieldMissing, " Payload has no objects to operate on")
	case n > limit:
		return nil, fail(codePayloadLimit, " Allowed limit = %d", limit)
	}
	var missing []string
	for i, a := range envelope.Operations {
		missing = append(missing, a.problems(i)...)
	}
	if len(missing) > 0 {
		return nil, fail(codeBadEnvelope, "input payload missing required properties. [%s]", strings.Join(missing, ", "))
	}
	return envelope.Operations, nil
}

// problems lists what an entry lacks, in A&AI's words.
func (a bulkOperation) problems(i int) []string {
	var list []string
	if _, known := bulkVerbs[a.Action]; a.Action != "" && !known {
		list = append(list, fmt.Sprintf("Operation %d has invalid action '%s'", i, a.Action))
	}
	for _, f := range []struct{ name, value string }{{"action", a.Action}, {"uri", a.URI}, {"body", string(a.Body)}} {
		if f.value == "" || f.value == "null" && f.name == "body" {
			list = append(list, fmt.Sprintf("Operation %d missing '%s'", i, f.name))
		}
	}
	return list
}

// bulkVerbs are the actions on nodes and, when the URI names one, on relationships.
var bulkVerbs = map[string]struct{ node, relationship verb }{
	"put":    {put, putEdge},
	"patch":  {mergePatch, mergePatch},
	"delete": {remove, deleteEdge},
}

// operation reads one entry. Its uri may carry any /aai/vN, which is ignored, and need not be canonically encoded.
func (a bulkOperation) operation(q *request) (*operation, *apiError) {
	path, query, _ := strings.Cut(a.URI, "?")
	path = trimVersion(q.base, path)
	parameters, canonical := parseQuery(query)
	if !canonical || !canonicalPath(path) {
		q.report(NonCanonicalEncoding, "bulk operation %s", a.URI)
	}
	v := bulkVerbs[a.Action].node
	if strings.HasSuffix(path, relationshipPath) {
		v = bulkVerbs[a.Action].relationship
	}
	raw, err := decodeObject(a.Body)
	if err != nil {
		return nil, err
	}
	op, err := prepare(v, path, q.schema, raw, q.report)
	if err != nil {
		return nil, err
	}
	for _, p := range parameters {
		if p.name == "resource-version" {
			op.version = p.value
		}
	}
	return op, nil
}

// bulkRejection is the error for an entry that failed before anything was written.
func bulkRejection(i int, e *apiError) *apiError {
	if e.crash {
		return containerPage(http.StatusInternalServerError)
	}
	return fail(e.code, "Error with operation %d: %s", i, e.detail)
}

// bulkFailure is the answer when entry i failed: the status is that entry's, the code always AAI_3000, and the entry's
// own error is quoted by position in its variables, which is why some codes come out in the wrong place.
func bulkFailure(q *request, i int, e *apiError) reply {
	vars := e.variables()
	last := len(vars) - 1
	quoted := fail(codeInvalidInput,
		"Operation %d with action (%s) on uri (%s) failed with status code (%d), error code (%s) and msg (%s)",
		i, vars[0], vars[1], e.status(), vars[last], strings.Join(vars[2:last], ": ")).at(q.method, q.versioned())
	rep := q.refuse(quoted)
	rep.status = e.status()
	return rep
}
