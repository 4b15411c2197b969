package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
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

// handler serves requests. Its Options are complete.
type handler struct {
	Options

	mux *http.ServeMux
	// description is the OpenAPI document, with the version of the program.
	description json.RawMessage
	// requests holds a token for each request in progress, except streams.
	requests chan struct{}
	streams  openStreams
}

// route is a path with its handling.
type route struct {
	// Operation describes the route to callers. Its media types do not include that of streams.
	Operation

	// repeated is true when parameters may occur more than once; respond then checks how often.
	repeated bool
	// timeout is the time limit for making the response. Default: requestTimeout.
	timeout time.Duration
	// read validates the names in a request, and sets what it selects and the access that the caller needs; nil when callers need none.
	read func(*requestInfo) error
	// respond makes the response.
	respond responder
	// streams is true when the scopes that a request selects can be watched.
	streams bool
}

// anonymous reports whether callers need no token.
func (rt route) anonymous() bool { return rt.read == nil }

// changes reports whether a request changes something.
func (rt route) changes() bool { return rt.Method == http.MethodPost }

// responder makes the response to a request.
type responder func(context.Context, *requestInfo) (response, error)

// response is a response in all media types of its route, and then in the one of its request.
type response struct {
	// document is the value to encode as JSON.
	document any
	// text returns the response as text; nil when the route does not offer text.
	text func() string
	// next is the URL of the next page; empty when there is none.
	next string
	// cacheable is true for a response that callers may cache and revalidate with If-None-Match.
	cacheable bool
	// contentType, body and tag are the encoded response with its entity tag. tag is empty for a response that callers must not cache.
	contentType string
	body        []byte
	tag         string
}

// NewHandler returns a handler for the paths in openapi.json. The time limit of a request is five seconds, and for status documents twenty
// seconds.
func NewHandler(o Options) http.Handler { return newHandler(o) }

func newHandler(o Options) *handler {
	h := &handler{Options: o, description: openAPIWithVersion(o.Version), requests: make(chan struct{}, maxRequests)}
	h.DefaultNamespace = cmp.Or(o.DefaultNamespace, "default")
	h.Logger = orDiscard(o.Logger)
	if h.Ready == nil {
		h.Ready = func() error { return nil }
	}
	if h.Current == nil {
		h.Current = func() error { return nil }
	}
	h.mux = http.NewServeMux()
	for _, rt := range h.routes() {
		h.mux.Handle(rt.Path, h.serve(rt))
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { h.fail(w, r, noSuchPath(r)) })
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store") // Unless the response is cacheable.
	w.Header().Set("Vary", "Accept")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch size := len(r.URL.RequestURI()); {
	case h.Guard == nil && !isLoopback(r.Host):
		h.fail(w, r, statusErrorf(http.StatusMisdirectedRequest, "the request is for host %s; without a token, only requests for localhost or a loopback address are answered", quote(r.Host)))
	case size > maxURLBytes:
		h.fail(w, r, statusErrorf(http.StatusRequestURITooLong, "path and query have %d bytes; at most %d are read", size, maxURLBytes))
	case !isCleanPath(r.URL.EscapedPath()):
		h.fail(w, r, noSuchPath(r))
	default:
		h.mux.ServeHTTP(w, r)
	}
}

// orDiscard returns the logger, or one that logs nothing.
func orDiscard(logger *slog.Logger) *slog.Logger {
	return cmp.Or(logger, slog.New(slog.DiscardHandler))
}

func noSuchPath(r *http.Request) error {
	return statusErrorf(http.StatusNotFound, "there is nothing at the path %s; /openapi.json describes the paths there are", quote(r.URL.Path))
}

// serve returns the HTTP handler of a route.
func (h *handler) serve(rt route) http.Handler {
	methods, success := []string{http.MethodGet, http.MethodHead}, http.StatusOK
	if rt.changes() {
		methods, success = []string{http.MethodPost}, http.StatusAccepted
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(methods, r.Method) {
			allowed := strings.Join(methods, ", ")
			w.Header().Set("Allow", allowed)
			h.fail(w, r, statusErrorf(http.StatusMethodNotAllowed, "method %s is not allowed here; allowed: %s", quote(r.Method), allowed))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(rt.timeout, requestTimeout))
		defer cancel()
		q := &requestInfo{Request: r, route: &rt}
		defer h.release(q)
		made, err := h.respond(ctx, q)
		switch {
		case err != nil:
			h.fail(w, r, err)
		case q.contentType == typeStream:
			h.release(q) // Streams have a limit of their own.
			h.stream(w, r, q)
		default:
			made.write(w, r, success)
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

// release ends the count of a request that was admitted.
func (h *handler) release(q *requestInfo) {
	if q.admitted {
		q.admitted = false
		<-h.requests
	}
}

// respond makes the response to a request; for a stream, nothing but the request is read. It writes nothing, so that the response to a panic
// can be an error.
func (h *handler) respond(ctx context.Context, q *requestInfo) (made response, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			h.Logger.ErrorContext(ctx, "Recovered from a panic", "method", q.Method, "path", shorten(q.URL.Path), "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	if !q.route.anonymous() {
		if err := h.authenticate(ctx, q); err != nil {
			return response{}, err
		}
		if q.admitted = acquire(h.requests); !q.admitted { // After authentication, so that other callers cannot use up the limit.
			return response{}, statusErrorf(http.StatusServiceUnavailable, "%w: %d requests are under way already; try again", ErrBusy, maxRequests)
		}
	}
	if err := q.parse(); err != nil {
		return response{}, err
	}
	if err := h.authorize(ctx, q); err != nil {
		return response{}, err
	}
	if q.contentType == typeStream {
		return response{}, q.checkStream()
	}
	if made, err = q.route.respond(ctx, q); err != nil {
		return response{}, err
	}
	if q.route.changes() {
		h.Logger.InfoContext(ctx, "Accepted a change", "path", shorten(q.URL.Path), "caller", q.caller.Name)
	}
	return made.encode(q.contentType)
}

// encode encodes a response as a media type; without one, it has no content.
func (a response) encode(contentType string) (response, error) {
	a.contentType = contentType
	var err error
	switch {
	case contentType == "" || a.body != nil:
	case contentType == typeText:
		a.contentType, a.body = "text/plain; charset=utf-8", []byte(a.text())
	default:
		a.body, err = encode(a.document)
	}
	if a.cacheable && a.tag == "" {
		a.tag = etagOf(a.body)
	}
	return a, err
}

// fail writes the response to an error. It logs errors that the server causes, but not those that follow from a caller that has gone away.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err, r.URL)
	if p.Status >= http.StatusInternalServerError && !isExpected(err) && r.Context().Err() == nil {
		h.Logger.ErrorContext(r.Context(), "Cannot answer a request", "method", r.Method, "path", p.Instance, "status", p.Status, "error", err)
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
	return outage || errors.Is(err, errNotReady) || errors.Is(err, ErrBusy) || errors.Is(err, errNotConfigured)
}

// etagOf returns the entity tag of a body (RFC 9110 section 8.8.3): two bodies with the same tag are the same.
func etagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
}

// etagMatches reports whether a header If-None-Match names a tag. It uses the weak comparison, as RFC 9110 section 13.1.2 requires.
func etagMatches(header, tag string) bool {
	return slices.ContainsFunc(strings.Split(header, ","), func(element string) bool {
		element = strings.TrimSpace(element)
		return element == "*" || strings.TrimPrefix(element, "W/") == tag
	})
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
func (a response) write(w http.ResponseWriter, r *http.Request, status int) {
	if a.tag == "" {
		writeResponse(w, r, status, a.contentType, a.body)
		return
	}
	header := w.Header()
	header.Set("ETag", a.tag)
	if a.next != "" {
		header.Set("Link", "<"+a.next+`>; rel="next"`)
	}
	// A caller must revalidate a cached response, and shared caches must not store it.
	header.Set("Cache-Control", "private, no-cache")
	if etagMatches(strings.Join(r.Header.Values("If-None-Match"), ","), a.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeResponse(w, r, status, a.contentType, a.body)
}

// writeResponse writes a response; for HEAD only the header.
func writeResponse(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	header := w.Header()
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		// A write fails when the caller has gone away, so that the error cannot be reported to it.
		_, _ = w.Write(body)
	}
}
