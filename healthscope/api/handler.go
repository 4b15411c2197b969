package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope/status"
)

// Deadlines of an answer.
const (
	// requestTimeout bounds the time in which an answer is made.
	requestTimeout = 5 * time.Second
	// documentTimeout is the same for answers that wait for etcd or for other clusters. It is below writeTimeout.
	documentTimeout = 20 * time.Second
)

// Limits on what is done at once. What is beyond them is refused with 503; what is beyond that of one caller, with 429.
const (
	maxRequests = 256
	maxStreams  = 256
	// maxStreamsOfOne is how many streams a caller with a token may have open.
	maxStreamsOfOne = 32
)

// retrySeconds is the header Retry-After of what may be answered otherwise a little later.
const retrySeconds = "5"

// Scopes is where the scopes are read from. An error for which
// apierrors.IsNotFound holds means that a scope does not exist; any other error is
// answered with 503, and its message is shown to the caller.
type Scopes interface {
	// Get returns a scope.
	Get(ctx context.Context, namespace, name string) (*corev1alpha2.HealthScope, error)
	// List returns the scopes of a namespace, or of all namespaces when namespace is empty, in any order.
	List(ctx context.Context, namespace string) ([]corev1alpha2.HealthScope, error)
	// Subscribe calls changed for every scope that comes, changes or goes from now on, after Get and List show it, until the
	// returned function is called. changed must not block.
	Subscribe(changed func(namespace, name string)) (cancel func())
}

// Options say what is served, and to whom.
type Options struct {
	// Scopes is where the scopes are read from. Required.
	Scopes Scopes
	// Documents makes the status documents of deployment intent groups, clusters and instances. Required.
	Documents *Documents
	// Deployments changes what is deployed. Without it, that is answered with 501.
	Deployments Deployments
	// Guard finds out who callers are and what they may ask for. Without it, all callers may ask for everything, and change nothing: only a
	// listener on loopback may be served so, and only requests to a host of that kind are answered.
	Guard Guard
	// DefaultNamespace is the namespace of a scope that is asked for by its name alone. Default: "default".
	DefaultNamespace string
	// Ready says what is missing before scopes can be served; nil means nothing. It must not block. Default: always ready.
	Ready func() error
	// Current says why it is not known how scopes are now, with an *OutageError; nil means that Scopes shows them as they are. It must
	// not block. Default: they are always known.
	Current func() error
	// Version is the version of the program, shown in the OpenAPI document. Default: "devel".
	Version string
	// Logger logs failures of the server and who changes what is deployed, and no errors of callers. Default: nothing is logged.
	Logger *slog.Logger
}

// handler answers requests.
type handler struct {
	scopes           Scopes
	documents        *Documents
	deployments      Deployments
	guard            Guard
	defaultNamespace string
	ready, current   func() error
	description      json.RawMessage
	log              *slog.Logger
	// requests and streams hold a token for each that is under way.
	requests, streams chan struct{}
	// callers counts the streams of callers with a token.
	callers counter
}

// route is one path and how it is answered.
type route struct {
	// Operation is what callers may know of it. Its media types are those without a stream.
	Operation

	// repeated is true where the answer looks itself how often each parameter is given.
	repeated bool
	// timeout bounds the time in which the answer is made. The default is requestTimeout.
	timeout time.Duration
	// access checks the names in the request and says what the caller must be allowed to do; nil where all callers may ask.
	access func(r *http.Request, query url.Values) (Access, error)
	// respond makes the answer.
	respond responder
	// watch says which scopes a stream is about; nil where there is none.
	watch func(r *http.Request, query url.Values) (selection, error)
}

// changes reports whether a request changes something.
func (rt route) changes() bool { return rt.Method == http.MethodPost }

// methods are the methods that are allowed.
func (rt route) methods() []string {
	if rt.changes() {
		return []string{http.MethodPost}
	}
	return []string{http.MethodGet, http.MethodHead}
}

// status is the status code of an answer.
func (rt route) status() int {
	if rt.changes() {
		return http.StatusAccepted
	}
	return http.StatusOK
}

// responder makes the answer to a request with a query.
type responder func(ctx context.Context, r *http.Request, query url.Values) (response, error)

// response is an answer in every form its route offers.
type response struct {
	// document is what is encoded as JSON.
	document any
	// text is the answer as text; nil where the route does not offer it.
	text func() string
	// next is the URL of the page after this one; empty where there is none.
	next string
	// cacheable is true for an answer that callers may keep and ask about with If-None-Match.
	cacheable bool
}

// NewHandler returns a handler for the paths that openapi.json describes. It gives Scopes five seconds for each request, and what status documents are made of twenty.
func NewHandler(o Options) http.Handler {
	return newHandler(o).handler()
}

// handler returns what answers requests.
func (h *handler) handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range h.routes() {
		mux.Handle(rt.Path, h.serve(rt))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { h.fail(w, r, noSuchPath(r)) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch size := len(r.URL.RequestURI()); {
		case h.guard == nil && !isLoopback(r.Host):
			h.fail(w, r, statusErrorf(http.StatusMisdirectedRequest, "the request is for host %s; without a token, only requests for localhost or a loopback address are answered", quote(r.Host)))
		case size > maxURLBytes:
			h.fail(w, r, statusErrorf(http.StatusRequestURITooLong, "path and query have %d bytes; at most %d are read", size, maxURLBytes))
		case !isCleanPath(r.URL.EscapedPath()):
			h.fail(w, r, noSuchPath(r))
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

func newHandler(o Options) *handler {
	h := &handler{
		scopes: o.Scopes, documents: o.Documents, deployments: o.Deployments, guard: o.Guard, defaultNamespace: o.DefaultNamespace, ready: o.Ready, current: o.Current, description: openAPIWithVersion(o.Version), log: orDiscard(o.Logger),
		requests: make(chan struct{}, maxRequests), streams: make(chan struct{}, maxStreams),
	}
	if h.defaultNamespace == "" {
		h.defaultNamespace = "default"
	}
	if h.ready == nil {
		h.ready = func() error { return nil }
	}
	if h.current == nil {
		h.current = func() error { return nil }
	}
	return h
}

// orDiscard returns the logger, or one that logs nothing.
func orDiscard(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return logger
}

func noSuchPath(r *http.Request) error {
	return statusErrorf(http.StatusNotFound, "there is nothing at the path %s; /openapi.json describes the paths there are", quote(r.URL.Path))
}

// serve makes a handler of a route.
func (h *handler) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(rt.methods(), r.Method) {
			allowed := strings.Join(rt.methods(), ", ")
			w.Header().Set("Allow", allowed)
			h.fail(w, r, statusErrorf(http.StatusMethodNotAllowed, "method %s is not allowed here; allowed: %s", quote(r.Method), allowed))
			return
		}
		held := false // Only callers that are known take part in the limit, so that other callers do not turn them away.
		acquired := func() bool {
			held = rt.access == nil || acquire(h.requests)
			return held
		}
		done := func() {
			if held && rt.access != nil {
				<-h.requests
			}
			held = false
		}
		defer done()
		ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(rt.timeout, requestTimeout))
		defer cancel()
		made, err := h.respond(ctx, rt, r, acquired)
		switch {
		case err != nil:
			h.fail(w, r, err)
		case made.stream != nil:
			done() // Streams have a limit of their own.
			h.stream(w, r, *made.stream)
		default:
			made.write(w, r, rt.status())
		}
	})
}

// acquire takes a token, unless all are taken, and reports whether it has.
func acquire(tokens chan struct{}) bool {
	select {
	case tokens <- struct{}{}:
		return true
	default:
		return false
	}
}

// encodedResponse is an answer as it is sent, or a stream that is to follow.
type encodedResponse struct {
	contentType string
	body        []byte
	// tag identifies the body; empty for an answer that may not be kept.
	tag string
	// next is the URL of the page after this one; empty where there is none.
	next   string
	stream *stream
}

// respond makes the answer of a route, or says why there is none, such as that acquired has no room for it. Nothing has been written yet, so that also a panic can be answered with an error.
func (h *handler) respond(ctx context.Context, rt route, r *http.Request, acquired func() bool) (made encodedResponse, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			h.log.ErrorContext(ctx, "Recovered from a panic", "method", r.Method, "path", shorten(r.URL.Path), "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	caller, err := h.authenticate(ctx, rt, r)
	if err != nil {
		return encodedResponse{}, err
	}
	if !acquired() {
		return encodedResponse{}, statusErrorf(http.StatusServiceUnavailable, "%w: %d requests are under way already; try again", ErrBusy, maxRequests)
	}
	asked, err := rt.parse(r)
	if err != nil {
		return encodedResponse{}, err
	}
	if err := h.authorize(ctx, rt, caller, asked.access); err != nil {
		return encodedResponse{}, err
	}
	if asked.contentType == typeStream {
		about, err := rt.watch(r, asked.query)
		return encodedResponse{stream: &stream{
			selection: about,
			caller:    caller,
			snapshot:  func(ctx context.Context) (response, error) { return rt.respond(ctx, r, asked.query) },
			allowed:   func(ctx context.Context) error { return h.checkAccess(ctx, rt, r, asked.access) },
		}}, err
	}
	a, err := rt.respond(ctx, r, asked.query)
	if err != nil {
		return encodedResponse{}, err
	}
	if rt.changes() {
		h.log.InfoContext(ctx, "Accepted a change", "path", shorten(r.URL.Path), "caller", caller.Name)
	}
	return encodeResponse(asked.contentType, a)
}

// parsedRequest is what a request asks for.
type parsedRequest struct {
	query  url.Values
	access Access
	// contentType is the media type of the answer: typeStream for a stream, and empty for an answer without content.
	contentType string
}

// parse reads what a request asks for, and refuses what cannot be answered to any caller.
func (rt route) parse(r *http.Request) (parsedRequest, error) {
	query, err := parseQuery(r.URL.RawQuery, parameterNames(rt.Parameters), rt.repeated)
	if err != nil {
		return parsedRequest{}, err
	}
	a := parsedRequest{query: query}
	if rt.access != nil {
		if a.access, err = rt.access(r, query); err != nil {
			return parsedRequest{}, err
		}
	}
	watching, err := rt.watching(query)
	if err != nil {
		return parsedRequest{}, err
	}
	offers := rt.MediaTypes
	if watching {
		offers = []string{typeStream}
	}
	if len(offers) == 0 {
		return a, nil
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	var ok bool
	if a.contentType, ok = negotiate(accept, offers); !ok {
		return parsedRequest{}, statusErrorf(http.StatusNotAcceptable, "the header Accept is %s; this path can be answered as %s", quote(accept), rt.answeredAs(watching))
	}
	switch { // Either stands for the other.
	case query.Has(parameterDialect):
		a.contentType = typeEMCO
	case a.contentType == typeEMCO:
		query.Set(parameterDialect, status.DialectEMCO)
	}
	return a, nil
}

// watching reports whether a stream is asked for.
func (rt route) watching(query url.Values) (bool, error) {
	if rt.watch == nil || !query.Has(parameterWatch) {
		return false, nil
	}
	value := query.Get(parameterWatch)
	if value != "true" && value != "false" {
		return false, statusErrorf(http.StatusBadRequest, "query parameter %q has the value %s; it must be true or false", parameterWatch, quote(value))
	}
	return value == "true", nil
}

// answeredAs says for people in which media types a path can be answered.
func (rt route) answeredAs(watching bool) string {
	if watching {
		return typeStream + " with watch=true, or without it as " + strings.Join(rt.MediaTypes, " or ")
	}
	return strings.Join(rt.MediaTypes, " or ")
}

// encodeResponse encodes an answer.
func encodeResponse(contentType string, a response) (encodedResponse, error) {
	made := encodedResponse{contentType: contentType, next: a.next}
	var err error
	switch ready, ok := a.document.(encodedDocument); {
	case contentType == "":
	case contentType == typeText:
		made.contentType, made.body = "text/plain; charset=utf-8", []byte(a.text())
	case ok:
		made.body, made.tag = ready.body, ready.tag
	default:
		made.body, err = encode(a.document)
	}
	if a.cacheable && made.tag == "" {
		made.tag = etagOf(made.body)
	}
	return made, err
}

// fail answers with an error. Those that the server is to blame for are logged, unless the caller has gone and so caused them.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err, r.URL)
	if p.Status >= http.StatusInternalServerError && !isExpected(err) && r.Context().Err() == nil {
		h.log.ErrorContext(r.Context(), "Cannot answer a request", "method", r.Method, "path", p.Instance, "status", p.Status, "error", err)
	}
	switch p.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", authenticateChallenge)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if !errors.Is(err, errNotConfigured) {
			w.Header().Set("Retry-After", retrySeconds)
		}
	}
	if isEMCODialect(r) {
		writeResponse(w, r, p.Status, "text/plain; charset=utf-8", []byte(p.Detail+"\n"))
		return
	}
	body, _ := encode(p) // Strings and a number can always be encoded.
	writeResponse(w, r, p.Status, typeProblem, body)
}

// isEMCODialect reports whether a caller asks for what EMCO 22.12 answers, whose errors are text.
func isEMCODialect(r *http.Request) bool {
	return r.URL.Query().Has(parameterDialect) || strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), typeEMCO)
}

// isExpected reports whether an error need not be logged: it is reported elsewhere, or is no failure of the server.
func isExpected(err error) bool {
	_, outage := errors.AsType[*OutageError](err)
	return outage || errors.Is(err, errNotReady) || errors.Is(err, ErrBusy) || errors.Is(err, ErrTooMany) || errors.Is(err, errNotConfigured)
}

// encode encodes a document in one line. Characters that matter in HTML stay readable: the answer says that it is none.
func encode(document any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", document, err)
	}
	return buffer.Bytes(), nil
}

// write sends the answer, or says that the caller has it already.
func (made encodedResponse) write(w http.ResponseWriter, r *http.Request, status int) {
	if made.tag == "" {
		writeResponse(w, r, status, made.contentType, made.body)
		return
	}
	header := w.Header()
	header.Set("ETag", made.tag)
	if made.next != "" {
		header.Set("Link", "<"+made.next+`>; rel="next"`)
	}
	// A caller that keeps the answer must ask whether it still holds; others than the caller may not keep it.
	header.Set("Cache-Control", "private, no-cache")
	header.Set("Vary", "Accept")
	if etagMatches(strings.Join(r.Header.Values("If-None-Match"), ","), made.tag) {
		header.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeResponse(w, r, status, made.contentType, made.body)
}

// writeResponse writes an answer; to HEAD the header only. Unless the header says otherwise, it may not be kept.
func writeResponse(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	header := w.Header()
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-store")
	}
	header.Set("Vary", "Accept")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		// A write fails when the caller has gone, and then there is no one to report it to.
		_, _ = w.Write(body)
	}
}
