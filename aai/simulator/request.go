package simulator

import (
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// request is an HTTP request on its way through A&AI's filters.
type request struct {
	base       string // path before /vN
	method     string // GET for HEAD, PATCH for a POST that says so
	path       string // percent-encoded, below /aai/vN once the version is known
	schema     int    // schema version
	parameters []parameter
	canonical  bool // the query is canonically encoded
	header     http.Header
	body       []byte
	format     wireFormat
	report     reporter
	offence    string // the first violation reported
	original   string // method, path and query as sent

	// What a fault does to the request.
	forceXML bool
	delay    time.Duration // how long it has been delayed
	stale    time.Duration // how old the inventory is that it reads
}

func newRequest(r *http.Request, base string, body []byte) *request {
	q := &request{
		base:   base,
		method: r.Method,
		path:   r.URL.EscapedPath(),
		header: r.Header,
		body:   body,
		report: ignore,
	}
	q.original = r.Method + " " + r.URL.RequestURI()
	q.parameters, q.canonical = parseQuery(r.URL.RawQuery)
	if q.method == http.MethodHead {
		q.method = http.MethodGet
	}
	return q
}

// versioned returns the path as A&AI quotes it before it works on the graph: "v32/network/...".
func (q *request) versioned() string {
	return "v" + strconv.Itoa(q.schema) + "/" + q.path
}

// transactionID returns the id of the request by the first header of A&AI's list that has one.
func (q *request) transactionID() string {
	for _, name := range []string{"X-ONAP-RequestID", "X-RequestID", "X-TransactionId", "X-ECOMP-RequestID"} {
		if id := q.header.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// sourceOfTruth returns the application that the request is from. X-FromAppId is mandatory, others may override it.
func (q *request) sourceOfTruth() string {
	if source := q.header.Get("X-SourceOfTruth"); source != "" {
		return source
	}
	partner, _, _ := strings.Cut(q.header.Get("X-ONAP-PartnerName"), ".")
	if partner != "" && partner != "AAI" {
		return partner
	}
	return q.header.Get("X-FromAppId")
}

// view is what the request sees of nodes when it does not ask for more.
func (q *request) view() view { return view{base: q.base, schema: q.schema} }

// author is on whose behalf the request writes.
func (q *request) author() author {
	return author{app: q.sourceOfTruth(), transaction: q.transactionID(), schema: q.schema}
}

// mediaType returns the Content-Type without parameters; A&AI takes a missing one and text/plain for JSON.
func (q *request) mediaType() string {
	media, _, _ := strings.Cut(q.header.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	if media == "" || media == "text/plain" {
		return jsonFormat.mediaType()
	}
	return media
}

// answer renders a document; root is its element name in XML, where the name space is the schema version's.
func (q *request) answer(status int, root string, doc object) reply {
	if q.forceXML {
		q.format = xmlFormat
	}
	if q.schema != 0 && q.format == xmlFormat && root != faultElement {
		root += ` xmlns="http://org.onap.aai.inventory/v` + strconv.Itoa(q.schema) + `"`
	}
	body, err := q.format.encode(root, doc)
	if err != nil {
		return statusPage(http.StatusInternalServerError)
	}
	return reply{status: status, header: http.Header{"Content-Type": {q.format.mediaType()}}, body: body}
}

// done is the empty answer of a write.
func (q *request) done(status int) reply {
	return reply{status: status, header: http.Header{"Content-Type": {q.format.mediaType()}}}
}

// faultElement is the root of errors in XML.
const faultElement = "Fault"

// refuse renders an error.
func (q *request) refuse(e *apiError) reply {
	if e.page != 0 {
		return statusPage(e.page)
	}
	return q.answer(e.status(), faultElement, e.body(q.format))
}

// handle passes a request through the filters in A&AI's order and then to what it names.
func (s *Simulator) handle(q *request) reply {
	q.report = s.violations.reporter(q, s.Now())
	if !strings.HasPrefix(q.path, s.base+"/") {
		return q.refuse(fail(codeUnknownFunction, ""))
	}
	for _, filter := range []func(*request) *apiError{
		s.negotiate, s.checkHeaders, s.overrideMethod, s.authorize, s.checkVersion,
	} {
		if err := filter(q); err != nil {
			return q.refuse(err)
		}
	}
	rep := s.route(q)
	if err := s.objection(q); err != nil && rep.status < http.StatusBadRequest {
		return q.refuse(err)
	}
	return rep
}

// objection refuses what strict mode finds fault with, if it is to do more than to keep a log.
func (s *Simulator) objection(q *request) *apiError {
	if !s.reject || q.offence == "" {
		return nil
	}
	return fail(codeInvalidInput, "refused by strict mode: %s", q.offence).at(q.method, q.versioned())
}

// negotiate chooses JSON or XML. A missing Accept header makes A&AI's first filter dereference null, which nothing
// catches; */* means XML unless a format is asked for, and so does any XML type in the list.
func (s *Simulator) negotiate(q *request) *apiError {
	accept := q.header.Values("Accept")
	if len(accept) == 0 {
		q.report(MissingAccept, "no Accept header")
		return containerPage(http.StatusInternalServerError)
	}
	list := strings.Join(accept, ",")
	vague := list == "*/*" || list == "" || strings.Contains(list, "text/plain")
	formatted := slices.ContainsFunc(q.parameters, func(p parameter) bool { return p.name == "format" })
	switch {
	case vague && formatted:
	case vague, acceptsXML(list):
		q.format = xmlFormat
		q.report(XMLAccept, "Accept %q asks for XML", list)
	case !strings.Contains(list, jsonFormat.mediaType()):
		return containerPage(http.StatusNotAcceptable)
	}
	return nil
}

func acceptsXML(list string) bool {
	for media := range strings.SplitSeq(list, ",") {
		media, _, _ = strings.Cut(media, ";")
		if slices.Contains([]string{"application/xml", "application/*", "*/*"}, strings.TrimSpace(media)) {
			return true
		}
	}
	return false
}

func (s *Simulator) checkHeaders(q *request) *apiError {
	if q.header.Get("X-FromAppId") == "" {
		return fail(codeNoAppID, "")
	}
	if q.transactionID() == "" {
		return fail(codeNoTransactionID, "")
	}
	s.violations.identify(q)
	return nil
}

// overrideMethod serves stacks that cannot send PATCH.
func (s *Simulator) overrideMethod(q *request) *apiError {
	if q.method == http.MethodPost && q.header.Get("X-HTTP-Method-Override") == http.MethodPatch {
		q.method = http.MethodPatch
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
		return fail(codeUnauthorized, "")
	}
	return nil
}

func basicAuth(name, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

// echoPath is below the base path.
const echoPath = "/util/echo"

// retiredVersion matches versions that answer 410 whatever is configured.
var retiredVersion = regexp.MustCompile(`^v([1-9]|10)$`)

// checkVersion takes /aai/vN/ off the path. What it leaves has no slash in front.
func (s *Simulator) checkVersion(q *request) *apiError {
	if q.path == s.base+echoPath {
		return nil
	}
	below := strings.TrimPrefix(q.path, s.base+"/")
	name, rest, _ := strings.Cut(below, "/")
	latest := "v" + strconv.Itoa(s.defaultVersion)
	if name == "latest" {
		name = latest
	}
	n, ok := schemaNumber(name)
	switch {
	case retiredVersion.MatchString(name):
		return fail(codeRetiredVersion, "").with(name, latest)
	case !ok:
		return fail(codeNoVersion, "").at(q.method, below).with("null")
	case !slices.Contains(s.versions, n):
		return fail(codeVersionNotServed, "").at(q.method, below).with(name)
	}
	q.schema, q.path = n, rest
	return nil
}
