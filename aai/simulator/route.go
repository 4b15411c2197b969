package simulator

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	bulkPath         = "bulk/single-transaction"
	examplesPrefix   = "examples/"
	relationshipPath = "/" + listSegment + "/" + relationshipSegment
)

// route sends an admitted request to its handler. A method that a path does not have is 400 AAI_3012, as A&AI rewrites
// every 405.
func (s *Simulator) route(q *request) reply {
	methods, handler := s.handlerFor(q)
	if !slices.Contains(methods, q.method) {
		return q.refuse(fail(codeUnknownFunction, "").at(q.method, q.versioned()))
	}
	if !canonicalPath(q.path) || !q.canonical {
		q.report(NonCanonicalEncoding, "%s", q.original)
		if q.path != bulkPath {
			return q.refuse(fail(codeBadEncoding, "uri=%s", q.versioned()).at(q.method, q.versioned()))
		}
	}
	return handler(q)
}

func (s *Simulator) handlerFor(q *request) ([]string, func(*request) reply) {
	switch {
	case q.path == s.base+echoPath:
		return []string{http.MethodGet}, s.echo
	case q.path == bulkPath:
		return []string{http.MethodPost}, s.bulk
	case strings.HasPrefix(q.path, examplesPrefix):
		return []string{http.MethodGet}, s.example
	case strings.HasSuffix(q.path, relationshipPath):
		return []string{http.MethodPut, http.MethodDelete}, s.write
	case strings.HasSuffix(q.path, "/"+listSegment):
		return []string{http.MethodGet}, s.get
	case strings.Trim(q.path, "/") == "":
		return nil, nil
	}
	return []string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete}, func(q *request) reply {
		if q.method == http.MethodGet {
			return s.get(q)
		}
		return s.write(q)
	}
}

// echo is the health answer, JSON whatever is accepted.
func (s *Simulator) echo(q *request) reply {
	q.format = jsonFormat
	return q.answer(http.StatusOK, "health", object{{"status", "UP"}, {"groups", []string{"liveness", "readiness"}}})
}

// example answers a sample document of a type, which tells a client whether the schema version has it.
func (s *Simulator) example(q *request) reply {
	name := strings.TrimPrefix(q.path, examplesPrefix)
	t := typeNamed(name, q.schema)
	if t == nil {
		return q.refuse(fail(codeInvalidInput, "Unrecognized AAI object %s", name).at(q.method, q.versioned()))
	}
	var doc object
	for i, p := range t.properties {
		sample := "example-" + p.name + "-val-" + strconv.Itoa(10000+i)
		switch p.kind {
		case textKind, versionKind:
			doc = append(doc, field{p.name, sample})
		case textListKind:
			doc = append(doc, field{p.name, []string{sample}})
		case booleanKind:
			doc = append(doc, field{p.name, true})
		case integerKind:
			doc = append(doc, field{p.name, 10000 + i})
		case containerKind, relationsKind:
		}
	}
	return q.answer(http.StatusOK, t.name, doc)
}

// write answers PUT, PATCH and DELETE on nodes and relationships. Nothing stays of a write that fails.
func (s *Simulator) write(q *request) reply {
	if !s.consumes(q) {
		return q.refuse(containerPage(http.StatusUnsupportedMediaType))
	}
	op, err := q.operation()
	if err != nil {
		return q.refuse(err.at(q.method, q.versioned()))
	}
	var done effect
	err = s.transact(q.author(), func(t *tx) *apiError {
		var refused *apiError
		if done, refused = t.apply(op); refused != nil {
			return refused
		}
		return s.objection(q)
	})
	if err != nil {
		return q.refuse(err)
	}
	rep := q.done(done.status)
	if done.vertex != 0 {
		rep.header.Set("vertex-id", strconv.FormatUint(done.vertex, 10))
	}
	return rep
}

// consumes checks the type of a body. DELETE of a node has none.
func (s *Simulator) consumes(q *request) bool {
	switch {
	case q.method == http.MethodPatch:
		return q.mediaType() == "application/merge-patch+json"
	case q.method == http.MethodDelete && !strings.HasSuffix(q.path, relationshipPath):
		return true
	default:
		return q.mediaType() == jsonFormat.mediaType()
	}
}

// operation reads a single write.
func (q *request) operation() (*operation, *apiError) {
	v := map[string]verb{http.MethodPut: put, http.MethodPatch: mergePatch, http.MethodDelete: remove}[q.method]
	if strings.HasSuffix(q.path, relationshipPath) {
		v = map[string]verb{http.MethodPut: putEdge, http.MethodDelete: deleteEdge}[q.method]
	}
	if v == deleteEdge && len(q.body) == 0 {
		return nil, fail(codeNoPayload, "You must supply a relationship")
	}
	raw, err := q.document(v)
	if err != nil {
		return nil, err
	}
	op, err := prepare(v, q.path, q.schema, raw, q.report)
	if err != nil {
		return nil, err
	}
	op.path = strings.TrimSuffix(q.path, relationshipPath)
	for _, p := range q.parameters {
		if p.name == "resource-version" {
			op.version = p.value
		}
	}
	return op, nil
}

// document decodes the body of a single write; A&AI takes an empty one of PUT and PATCH for {}.
func (q *request) document(v verb) (map[string]any, *apiError) {
	if v == remove || (len(q.body) == 0 && v != putEdge) {
		return map[string]any{}, nil
	}
	raw, err := decodeObject(q.body)
	if err != nil && v == mergePatch && !err.crash {
		return nil, fail(codeInvalidInput, "could not perform patch operation")
	}
	return raw, err
}
