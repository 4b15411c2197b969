package simulator

import (
	"crypto/subtle"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	jsonType  = "application/json"
	patchType = "application/merge-patch+json"
	xmlType   = "application/xml"
)

// request is an HTTP request on its way through A&AI's filters.
type request struct {
	method     string // GET for HEAD, PATCH for a POST that says so
	path       string // percent-encoded, below /aai/vN once the version is known
	schema     int    // schema version
	parameters []parameter
	canonical  bool // the query is encoded canonically
	header     http.Header
	body       []byte
	xml        bool          // the answer is XML
	stale      time.Duration // how old the inventory is that it reads

	// Strict mode only.
	strict     bool
	receivedAt time.Time
	original   string // method, path and query as sent
	violations []Violation
}

func newRequest(r *http.Request, body []byte) *request {
	q := &request{method: r.Method, path: r.URL.EscapedPath(), header: r.Header, body: body, original: r.Method + " " + r.URL.RequestURI()}
	q.parameters, q.canonical = parseQuery(r.URL.RawQuery)
	if q.method == http.MethodHead {
		q.method = http.MethodGet
	}
	return q
}

// versioned returns the path as A&AI quotes it before it looks into the inventory: "v32/network/...".
func (q *request) versioned() string { return "v" + strconv.Itoa(q.schema) + "/" + q.path }

// transactionID returns the id of the request, from the first header that has one.
func (q *request) transactionID() string {
	for _, name := range []string{"X-ONAP-RequestID", "X-RequestID", "X-TransactionId", "X-ECOMP-RequestID"} {
		if id := q.header.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// mediaType returns the Content-Type without parameters. A&AI takes a missing one and text/plain for JSON.
func (q *request) mediaType() string {
	media, _, _ := strings.Cut(q.header.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	if media == "" || media == "text/plain" {
		return jsonType
	}
	return media
}

// reply is an answer that has not been sent.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func jsonReply(status int, doc object) reply {
	body, err := encode(doc)
	if err != nil {
		return statusPage(http.StatusInternalServerError)
	}
	return reply{status: status, header: http.Header{"Content-Type": {jsonType}}, body: body}
}

// xmlErrorBody is the body of every XML answer.
const xmlErrorBody = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Fault><requestError><serviceException>` +
	`<messageId>SVC3000</messageId><text>Invalid input performing %1 on %2 (msg=%3) (ec=%4)</text><variables>` +
	`<variable>null</variable><variable>null</variable>` +
	`<variable>Invalid input performing %1 on %2:the simulator has no XML, send Accept: application/json</variable>` +
	`<variable>ERR.5.2.3000</variable></variables></serviceException></requestError></Fault>`

// toXML replaces a JSON body by xmlErrorBody.
func (rep *reply) toXML() {
	if rep.header.Get("Content-Type") != jsonType {
		return
	}
	rep.header.Set("Content-Type", xmlType)
	if len(rep.body) > 0 {
		rep.body = []byte(xmlErrorBody)
	}
}

// handle passes a request through the filters, in A&AI's order, and then to the handler of its path.
func (s *Simulator) handle(q *request) reply {
	q.strict, q.receivedAt = s.strict, s.now()
	rep := s.admit(q)
	if err := s.strictError(q); err != nil && rep.status < http.StatusBadRequest {
		rep = err.reply()
	}
	if q.xml {
		rep.toXML()
	}
	s.logViolations(q)
	return rep
}

func (s *Simulator) admit(q *request) reply {
	if !strings.HasPrefix(q.path, basePath+"/") {
		return newAPIError(errUnknownFunction, "").reply()
	}
	for _, filter := range []func(*request) *apiError{s.negotiate, s.checkHeaders, s.authorize, s.checkVersion} {
		if err := filter(q); err != nil {
			return err.reply()
		}
	}
	return s.route(q)
}

// negotiate chooses JSON or XML. A missing Accept header makes A&AI's first filter dereference null, which nothing catches;
// */* means XML unless a format is asked for, and so does any XML type in the list.
func (s *Simulator) negotiate(q *request) *apiError {
	accept := q.header.Values("Accept")
	if len(accept) == 0 {
		q.reportf(MissingAccept, "no Accept header")
		return containerPage(http.StatusInternalServerError)
	}
	list := strings.Join(accept, ",")
	vague := list == "*/*" || list == "" || strings.Contains(list, "text/plain")
	formatted := slices.ContainsFunc(q.parameters, func(p parameter) bool { return p.name == "format" })
	switch {
	case vague && formatted:
	case vague, acceptsXML(list):
		q.xml = true
		q.reportf(XMLAccept, "Accept %q asks for XML", list)
	case !strings.Contains(list, jsonType):
		return containerPage(http.StatusNotAcceptable)
	}
	return nil
}

func acceptsXML(list string) bool {
	for media := range strings.SplitSeq(list, ",") {
		media, _, _ = strings.Cut(media, ";")
		if slices.Contains([]string{xmlType, "application/*", "*/*"}, strings.TrimSpace(media)) {
			return true
		}
	}
	return false
}

func (s *Simulator) checkHeaders(q *request) *apiError {
	switch {
	case q.header.Get("X-FromAppId") == "":
		return newAPIError(errNoAppID, "")
	case q.transactionID() == "":
		return newAPIError(errNoTransactionID, "")
	}
	s.checkTransactionID(q)
	if q.method == http.MethodPost && q.header.Get("X-HTTP-Method-Override") == http.MethodPatch {
		q.method = http.MethodPatch // for clients that cannot send PATCH
	}
	return nil
}

// authorize compares the Authorization header verbatim. Failure is 403, not 401.
func (s *Simulator) authorize(q *request) *apiError {
	given := []byte(q.header.Get("Authorization"))
	match := len(s.credentials) == 0
	for _, wanted := range s.credentials {
		match = subtle.ConstantTimeCompare(given, []byte(wanted)) == 1 || match
	}
	if !match {
		return newAPIError(errUnauthorized, "")
	}
	return nil
}

const (
	echoPath = basePath + "/util/echo"
	bulkPath = "bulk/single-transaction" // below /aai/vN
)

// retiredVersion matches versions that are answered 410, whatever Options.Versions.
var retiredVersion = regexp.MustCompile(`^v([1-9]|10)$`)

// checkVersion removes /aai/vN/ from the path. The rest has no leading slash.
func (s *Simulator) checkVersion(q *request) *apiError {
	if q.path == echoPath {
		return nil
	}
	below := strings.TrimPrefix(q.path, basePath+"/")
	name, rest, _ := strings.Cut(below, "/")
	latest := "v" + strconv.Itoa(s.newest())
	if name == "latest" {
		name = latest
	}
	n, ok := schemaNumber(name)
	switch {
	case retiredVersion.MatchString(name):
		return newAPIError(errRetiredVersion, "").withVariables(name, latest)
	case !ok:
		return newAPIError(errNoVersion, "").forRequest(q.method, below).withVariables("null")
	case !slices.Contains(s.versions, n):
		return newAPIError(errVersionNotServed, "").forRequest(q.method, below).withVariables(name)
	}
	q.schema, q.path = n, rest
	return nil
}

// route passes an admitted request to its handler. A method that a path does not support is 400 AAI_3012, because A&AI rewrites
// every 405.
func (s *Simulator) route(q *request) reply {
	methods, handler := s.handlerFor(q)
	if !slices.Contains(methods, q.method) {
		return newAPIError(errUnknownFunction, "").forRequest(q.method, q.versioned()).reply()
	}
	if !canonical(q.path) || !q.canonical {
		q.reportf(NonCanonicalEncoding, "%s", q.original)
		if q.path != bulkPath {
			return newAPIError(errBadEncoding, "uri=%s", q.versioned()).forRequest(q.method, q.versioned()).reply()
		}
	}
	return handler(q)
}

func (s *Simulator) handlerFor(q *request) (methods []string, handler func(*request) reply) {
	switch {
	case q.path == echoPath:
		return []string{http.MethodGet}, s.echo
	case q.path == bulkPath:
		return []string{http.MethodPost}, s.bulk
	case strings.HasSuffix(q.path, relationshipPath):
		return []string{http.MethodPut, http.MethodDelete}, s.write
	case strings.HasSuffix(q.path, "/"+listSegment), q.method == http.MethodGet && strings.Trim(q.path, "/") != "":
		return []string{http.MethodGet}, s.get
	case strings.Trim(q.path, "/") == "":
		return nil, nil
	}
	return []string{http.MethodPut, http.MethodPatch, http.MethodDelete}, s.write
}

// echo answers the health check. The answer is JSON, whatever the Accept header.
func (s *Simulator) echo(q *request) reply {
	q.xml = false
	return jsonReply(http.StatusOK, object{{"status", "UP"}, {"groups", []string{"liveness", "readiness"}}})
}

// write answers PUT, PATCH and DELETE of nodes and relationships.
func (s *Simulator) write(q *request) reply {
	if !q.hasAcceptedMediaType() {
		return statusPage(http.StatusUnsupportedMediaType)
	}
	op, err := q.operation()
	if err != nil {
		return err.forRequest(q.method, q.versioned()).reply()
	}
	var done writeResult
	err = s.transact(q.schema, func(t *tx) (err *apiError) {
		if done, err = t.apply(q, op); err != nil {
			return err
		}
		return s.strictError(q)
	})
	if err != nil {
		return err.reply()
	}
	rep := reply{status: done.status, header: http.Header{"Content-Type": {jsonType}}}
	if done.vertex != 0 {
		rep.header.Set("vertex-id", strconv.FormatUint(done.vertex, 10))
	}
	return rep
}

// hasAcceptedMediaType reports whether the body has a type that A&AI accepts. DELETE of a node has no body.
func (q *request) hasAcceptedMediaType() bool {
	switch {
	case q.method == http.MethodPatch:
		return q.mediaType() == patchType
	case q.method == http.MethodDelete && !strings.HasSuffix(q.path, relationshipPath):
		return true
	default:
		return q.mediaType() == jsonType
	}
}

// verbs holds the verbs for a node and for a relationship by HTTP method or action of a bulk request.
var verbs = map[string]struct{ node, edge verb }{"PUT": {put, putEdge}, "PATCH": {mergePatch, mergePatch}, "DELETE": {remove, deleteEdge}}

// verbOf returns the verb for a method on the path of a node or of a relationship.
func verbOf(method, path string) verb {
	if strings.HasSuffix(path, relationshipPath) {
		return verbs[method].edge
	}
	return verbs[method].node
}

// operation decodes a single write.
func (q *request) operation() (*operation, *apiError) {
	v := verbOf(q.method, q.path)
	if v == deleteEdge && len(q.body) == 0 {
		return nil, newAPIError(errNoPayload, "You must supply a relationship")
	}
	raw, err := map[string]any{}, (*apiError)(nil)
	if v != remove && (len(q.body) > 0 || v == putEdge) { // A&AI takes an empty body of PUT and PATCH for {}
		raw, err = decodeObject(q.body)
	}
	switch {
	case err != nil && v == mergePatch && !err.crash:
		return nil, newAPIError(errInvalidInput, "could not perform patch operation")
	case err != nil:
		return nil, err
	}
	op, err := q.prepare(v, q.path, q.parameters, raw)
	if err != nil {
		return nil, err
	}
	op.path = strings.TrimSuffix(q.path, relationshipPath)
	return op, nil
}
