package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// bulkOperation is one entry of a single-transaction request.
type bulkOperation struct {
	Action string          `json:"action"`
	URI    string          `json:"uri"`
	Body   json.RawMessage `json:"body"`
}

// bulkBody is the body of a single-transaction request.
type bulkBody struct {
	Operations []bulkOperation `json:"operations"`
}

// bulk answers POST bulk/single-transaction. It applies all operations in order in one transaction, or none; each sees the effects
// of those before it. The answer is JSON, whatever the Accept header.
func (s *Simulator) bulk(q *request) reply {
	q.xml = false
	if q.mediaType() != jsonType {
		return statusPage(http.StatusUnsupportedMediaType)
	}
	entries, err := parseBulk(q.body, s.bulkLimit)
	if err != nil {
		return err.forRequest(q.method, q.versioned()).reply()
	}
	ops := make([]*operation, len(entries))
	for i, a := range entries {
		if ops[i], err = a.operation(q); err != nil {
			return bulkRejection(i, err).forRequest(q.method, q.versioned()).reply()
		}
	}
	return s.commit(q, entries, ops)
}

// commit applies all operations of a bulk request, or none.
func (s *Simulator) commit(q *request, entries []bulkOperation, ops []*operation) reply {
	responses := make([]object, len(ops))
	failed := -1
	err := s.transact(q.schema, func(t *tx) *apiError {
		for i, op := range ops {
			done, err := t.apply(q, op)
			if err != nil {
				failed = i
				return err
			}
			responses[i] = object{
				{"action", entries[i].Action}, {"uri", entries[i].URI}, {"response-status-code", done.status}, {"response-body", nil},
			}
		}
		return s.strictError(q)
	})
	switch {
	case err != nil && failed >= 0:
		return bulkFailure(q, failed, err)
	case err != nil:
		return err.reply()
	}
	return jsonReply(http.StatusCreated, object{{"operation-responses", responses}})
}

// parseBulk decodes the body and checks its required fields.
func parseBulk(body []byte, limit int) ([]bulkOperation, *apiError) {
	var parsed *bulkBody
	if json.Unmarshal(body, &parsed) != nil || parsed == nil {
		return nil, newAPIError(errBadEnvelope, "Input payload does not follow bulk/single-transaction interface")
	}
	switch n := len(parsed.Operations); {
	case n == 0:
		return nil, newAPIError(errFieldMissing, " Payload has no objects to operate on")
	case n > limit:
		return nil, newAPIError(errPayloadLimit, " Allowed limit = %d", limit)
	}
	var missing []string
	for i, a := range parsed.Operations {
		missing = append(missing, a.problems(i)...)
	}
	if len(missing) > 0 {
		return nil, newAPIError(errBadEnvelope, "input payload missing required properties. [%s]", strings.Join(missing, ", "))
	}
	return parsed.Operations, nil
}

// problems returns the errors in an entry, in A&AI's words.
func (a bulkOperation) problems(i int) []string {
	var list []string
	if a.Action != "" && !a.hasValidAction() {
		list = append(list, fmt.Sprintf("Operation %d has invalid action '%s'", i, a.Action))
	}
	for _, f := range []struct{ name, value string }{{"action", a.Action}, {"uri", a.URI}, {"body", string(a.Body)}} {
		if f.value == "" || f.value == "null" && f.name == "body" {
			list = append(list, fmt.Sprintf("Operation %d missing '%s'", i, f.name))
		}
	}
	return list
}

// hasValidAction reports whether the action is put, patch or delete.
func (a bulkOperation) hasValidAction() bool {
	_, known := verbs[strings.ToUpper(a.Action)]
	return known && a.Action == strings.ToLower(a.Action)
}

// split returns verb, path and raw query of an entry. Its uri may have any /aai/vN in front, which is ignored.
func (a bulkOperation) split() (v verb, path, query string) {
	path, query, _ = strings.Cut(a.URI, "?")
	path = trimVersion(path)
	return verbOf(strings.ToUpper(a.Action), path), path, query
}

// operation decodes one entry. Its uri need not be encoded canonically.
func (a bulkOperation) operation(q *request) (*operation, *apiError) {
	v, path, query := a.split()
	parameters, ok := parseQuery(query)
	if !ok || !canonical(path) {
		q.reportf(NonCanonicalEncoding, "bulk operation %s", a.URI)
	}
	raw, err := decodeObject(a.Body)
	if err != nil {
		return nil, err
	}
	return q.prepare(v, path, parameters, raw)
}

// bulkRejection is the error for an entry that failed before anything was written.
func bulkRejection(i int, e *apiError) *apiError {
	if e.crash {
		return containerPage(http.StatusInternalServerError)
	}
	return newAPIError(e.errorSpec, "Error with operation %d: %s", i, e.detail)
}

// bulkFailure is the answer when entry i failed. The status is that of the entry and the code always AAI_3000. The entry's own
// error is quoted by position in its variables, which is why some codes come out in the wrong place.
func bulkFailure(q *request, i int, e *apiError) reply {
	vars := e.variables()
	last := len(vars) - 1
	rep := newAPIError(errInvalidInput,
		"Operation %d with action (%s) on uri (%s) failed with status code (%d), error code (%s) and msg (%s)",
		i, vars[0], vars[1], e.status, vars[last], strings.Join(vars[2:last], ": ")).forRequest(q.method, q.versioned()).reply()
	rep.status = e.status
	return rep
}
