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

// Time limits of responses.
const (
	// requestTimeout is the time limit for making a response.
	requestTimeout = 5 * time.Second
	// documentTimeout is the same for responses that wait for etcd or for other clusters. It is less than writeTimeout.
	documentTimeout = 20 * time.Second
)

// Limits on concurrent requests and streams. The response beyond them is 503; beyond the limit of one caller, it is 429.
const (
	maxRequests = 256
	maxStreams  = 256
	// maxStreamsOfOne is the maximum number of open streams of a caller with a token.
	maxStreamsOfOne = 32
)

// retrySeconds is the header Retry-After of errors that may go away soon.
const retrySeconds = "5"

// Scopes is the source of scopes. An error for which apierrors.IsNotFound holds means that a scope does not exist. For all other errors, the
// response is 503 with the message of the error.
type Scopes interface {
	// Get returns a scope.
	Get(ctx context.Context, namespace, name string) (*corev1alpha2.HealthScope, error)
	// List returns the scopes of a namespace, or of all namespaces when namespace is empty, in any order.
	List(ctx context.Context, namespace string) ([]corev1alpha2.HealthScope, error)
	// Subscribe calls changed for each scope that is created, changed or deleted from now on, after Get and List show it, until the returned
	// function is called. changed must not block.
	Subscribe(changed func(namespace, name string)) (cancel func())
}

// Options are the options of a handler.
type Options struct {
	// Scopes is the source of scopes. Required.
	Scopes Scopes
	// Documents makes the status documents of deployment intent groups, clusters and instances. Required.
	Documents *Documents
	// Deployments changes deployments. Without it, the response to these requests is 501.
	Deployments Deployments
	// Guard authenticates and authorizes callers. Without it, all callers may read everything and change nothing. Only a listener on a loopback
	// address may be served so, and requests to other hosts are rejected.
	Guard Guard
	// DefaultNamespace is the namespace of a scope in a request that does not name a namespace. Default: "default".
	DefaultNamespace string
	// Ready returns why scopes cannot be served yet; nil when they can. It must not block. Default: always ready.
	Ready func() error
	// Current returns an *OutageError when the current state of scopes is not known; nil when Scopes shows the current state. It must not
	// block. Default: always current.
	Current func() error
	// Version is the version of the program, shown in the OpenAPI document. Default: "devel".
	Version string
	// Logger logs failures of the server and changes of deployments with their callers, but no errors that callers cause. Default: no logs.
	Logger *slog.Logger
}

// handler serves requests.
type handler struct {
	scopes           Scopes
	documents        *Documents
	deployments      Deployments
	guard            Guard
	defaultNamespace string
	ready, current   func() error
	description      json.RawMessage
	log              *slog.Logger
	// requests and streams hold a token for each request and stream in progress.
	requests, streams chan struct{}
	// callers counts the streams of callers with a token.
	callers counter
}

// route is a path with its handling.
type route struct {
	// Operation describes the route to callers. Its media types do not include that of streams.
	Operation

	// repeated is true when parameters may occur more than once; respond then checks how often.
	repeated bool
	// timeout is the time limit for making the response. Default: requestTimeout.
	timeout time.Duration
	// access validates the names in the request and returns the access that the caller needs; nil when callers need none.
	access func(r *http.Request, query url.Values) (Access, error)
	// respond makes the response.
	respond responder
	// watch returns the scopes of a stream; nil when the route has no stream.
	watch func(r *http.Request, query url.Values) (selection, error)
}

// changes reports whether a request changes something.
func (rt route) changes() bool { return rt.Method == http.MethodPost }

// methods returns the allowed methods.
func (rt route) methods() []string {
	if rt.changes() {
		return []string{http.MethodPost}
	}
	return []string{http.MethodGet, http.MethodHead}
}

// status returns the status code of a response without an error.
func (rt route) status() int {
	if rt.changes() {
		return http.StatusAccepted
	}
	return http.StatusOK
}

// responder makes the response to a request with a query.
type responder func(ctx context.Context, r *http.Request, query url.Values) (response, error)

// response is a response in all media types of its route.
type response struct {
	// document is the value to encode as JSON.
	document any
	// text returns the response as text; nil when the route does not offer text.
	text func() string
	// next is the URL of the next page; empty when there is none.
	next string
	// cacheable is true for a response that callers may cache and revalidate with If-None-Match.
	cacheable bool
}

// NewHandler returns a handler for the paths in openapi.json. The time limit of a request is five seconds, and for status documents twenty
// seconds.
func NewHandler(o Options) http.Handler {
	return newHandler(o).handler()
}

// handler returns the HTTP handler.
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

// serve returns the HTTP handler of a route.
func (h *handler) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(rt.methods(), r.Method) {
			allowed := strings.Join(rt.methods(), ", ")
			w.Header().Set("Allow", allowed)
			h.fail(w, r, statusErrorf(http.StatusMethodNotAllowed, "method %s is not allowed here; allowed: %s", quote(r.Method), allowed))
			return
		}
		held := false // The limit applies after authentication, so that unauthenticated callers cannot use it up.
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

// acquire takes a token unless all are taken, and reports whether it has taken one.
func acquire(tokens chan struct{}) bool {
	select {
	case tokens <- struct{}{}:
		return true
	default:
		return false
	}
}

// encodedResponse is an encoded response, or a stream to begin.
type encodedResponse struct {
	contentType string
	body        []byte
	// tag is the entity tag of the body; empty for a response that callers must not cache.
	tag string
	// next is the URL of the next page; empty when there is none.
	next   string
	stream *stream
}

// respond makes the response of a route. It returns an ErrBusy error when acquired returns false. It writes nothing, so that the response to a
// panic can be an error.
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

// parsedRequest is a parsed and validated request.
type parsedRequest struct {
	query  url.Values
	access Access
	// contentType is the media type of the response: typeStream for a stream, and empty for a response without content.
	contentType string
}

// parse parses a request. It returns an error for a request that is invalid for all callers.
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
	switch { // The parameter and the media type have the same meaning.
	case query.Has(parameterDialect):
		a.contentType = typeEMCO
	case a.contentType == typeEMCO:
		query.Set(parameterDialect, status.DialectEMCO)
	}
	return a, nil
}

// watching reports whether a query asks for a stream.
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

// answeredAs returns the media types of a path, for people.
func (rt route) answeredAs(watching bool) string {
	if watching {
		return typeStream + " with watch=true, or without it as " + strings.Join(rt.MediaTypes, " or ")
	}
	return strings.Join(rt.MediaTypes, " or ")
}

// encodeResponse encodes a response.
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

// fail writes the response to an error. It logs errors that the server causes, but not those that follow from a caller that has gone away.
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

// isEMCODialect reports whether a request asks for the responses of EMCO 22.12, whose errors are text.
func isEMCODialect(r *http.Request) bool {
	return r.URL.Query().Has(parameterDialect) || strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), typeEMCO)
}

// isExpected reports whether an error need not be logged: it is reported elsewhere, or is not a failure of the server.
func isExpected(err error) bool {
	_, outage := errors.AsType[*OutageError](err)
	return outage || errors.Is(err, errNotReady) || errors.Is(err, ErrBusy) || errors.Is(err, ErrTooMany) || errors.Is(err, errNotConfigured)
}

// encode encodes a document as one line. It does not escape characters for HTML, because the content type is not HTML.
func encode(document any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", document, err)
	}
	return buffer.Bytes(), nil
}

// write writes the response, or 304 when the caller has it already.
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
	// A caller must revalidate a cached response, and shared caches must not store it.
	header.Set("Cache-Control", "private, no-cache")
	header.Set("Vary", "Accept")
	if etagMatches(strings.Join(r.Header.Values("If-None-Match"), ","), made.tag) {
		header.Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeResponse(w, r, status, made.contentType, made.body)
}

// writeResponse writes a response; for HEAD only the header. It must not be cached, unless the header is already set.
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
		// A write fails when the caller has gone away, so that the error cannot be reported to it.
		_, _ = w.Write(body)
	}
}
