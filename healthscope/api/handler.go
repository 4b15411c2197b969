package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// requestTimeout bounds the time in which an answer is made.
const requestTimeout = 5 * time.Second

// allowedMethods is what every route allows.
const allowedMethods = http.MethodGet + ", " + http.MethodHead

// Scopes is where the scopes are read from. An error for which
// apierrors.IsNotFound holds means that a scope does not exist; any other error is
// answered with 503, and its message is shown to the caller.
type Scopes interface {
	// Get returns a scope.
	Get(ctx context.Context, namespace, name string) (*corev1alpha2.HealthScope, error)
	// List returns the scopes of a namespace, or of all namespaces when namespace is empty, in any order.
	List(ctx context.Context, namespace string) ([]corev1alpha2.HealthScope, error)
}

// Options say what is served.
type Options struct {
	// Scopes is where the scopes are read from. Required.
	Scopes Scopes
	// DefaultNamespace is the namespace of a scope that is asked for by its name alone. Default: "default".
	DefaultNamespace string
	// Ready says what is missing before scopes can be served; nil means nothing. It must not block. Default: always ready.
	Ready func() error
	// Version is the version of the program, shown in the OpenAPI document. Default: "devel".
	Version string
	// Logger is told about failures of the server, not about errors of its callers. Default: nothing is logged.
	Logger *slog.Logger
}

// handler answers requests.
type handler struct {
	scopes           Scopes
	defaultNamespace string
	ready            func() error
	description      json.RawMessage
	log              *slog.Logger
}

// route is one path and how it is answered.
type route struct {
	// pattern is the path in the syntax of http.ServeMux, which is that of OpenAPI.
	pattern string
	// parameters are the query parameters it takes.
	parameters []string
	// offers are the media types it can be answered in, the default first.
	offers []string
	// answer makes the answer.
	answer func(ctx context.Context, r *http.Request, query map[string]string) (answer, error)
}

// answer is an answer in every form its route offers.
type answer struct {
	// document is what is encoded as JSON.
	document any
	// text is the answer as text; nil where the route does not offer it.
	text func() string
}

// NewHandler returns a handler for the paths that openapi.json describes. It gives Scopes five seconds for each request.
func NewHandler(o Options) http.Handler {
	h := newHandler(o)
	mux := http.NewServeMux()
	for _, rt := range h.routes() {
		mux.Handle(rt.pattern, h.serve(rt))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { h.fail(w, r, noSuchPath(r)) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch size := len(r.URL.RequestURI()); {
		case size > maxURLBytes:
			h.fail(w, r, failf(http.StatusRequestURITooLong, "path and query have %d bytes; at most %d are read", size, maxURLBytes))
		case !wellFormed(r.URL.EscapedPath()):
			h.fail(w, r, noSuchPath(r))
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

func newHandler(o Options) *handler {
	h := &handler{scopes: o.Scopes, defaultNamespace: o.DefaultNamespace, ready: o.Ready, description: describe(o.Version), log: orDiscard(o.Logger)}
	if h.defaultNamespace == "" {
		h.defaultNamespace = "default"
	}
	if h.ready == nil {
		h.ready = func() error { return nil }
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
	return failf(http.StatusNotFound, "there is nothing at the path %s; /openapi.json describes the paths there are", quote(r.URL.Path))
}

// serve makes a handler of a route.
func (h *handler) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		contentType, body, err := h.compose(ctx, rt, r)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		write(w, r, http.StatusOK, contentType, body)
	})
}

// compose makes the answer of a route, or says why there is none. Nothing has been written yet, so that also a panic can be answered with an error.
func (h *handler) compose(ctx context.Context, rt route, r *http.Request) (contentType string, body []byte, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			h.log.ErrorContext(ctx, "Recovered from a panic", "method", r.Method, "path", shorten(r.URL.Path), "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return "", nil, failf(http.StatusMethodNotAllowed, "method %s is not allowed here; allowed are %s", quote(r.Method), allowedMethods)
	}
	query, err := parseQuery(r.URL.RawQuery, rt.parameters)
	if err != nil {
		return "", nil, err
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	contentType, ok := negotiate(accept, rt.offers)
	if !ok {
		return "", nil, failf(http.StatusNotAcceptable, "the header Accept is %s; this path can be answered as %s", quote(accept), strings.Join(rt.offers, " or "))
	}
	a, err := rt.answer(ctx, r, query)
	if err != nil {
		return "", nil, err
	}
	if contentType == typeText {
		return "text/plain; charset=utf-8", []byte(a.text()), nil
	}
	body, err = encode(a.document)
	return contentType, body, err
}

// fail answers with an error. Those that the server is to blame for are logged, unless the caller has gone and so caused them.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err, r.URL)
	if p.Status >= http.StatusInternalServerError && !errors.Is(err, errNotReady) && r.Context().Err() == nil {
		h.log.ErrorContext(r.Context(), "Cannot answer a request", "method", r.Method, "path", p.Instance, "status", p.Status, "error", err)
	}
	if p.Status == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", allowedMethods)
	}
	body, _ := encode(p) // Strings and a number can always be encoded.
	write(w, r, p.Status, typeProblem, body)
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

// write writes an answer; to HEAD the header only. Health is worth nothing when it is old, so that nobody may keep it.
func write(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		// A write fails when the caller has gone, and then there is nobody to tell.
		_, _ = w.Write(body)
	}
}
