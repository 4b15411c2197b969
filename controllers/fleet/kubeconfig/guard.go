package kubeconfig

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// limits bound what a server may answer.
type limits struct {
	// timeout is the deadline of a request, its answer included; of a watch, until it begins.
	timeout time.Duration
	// body, failure and event are the sizes in bytes of an answer, of an error, and of an event of a watch.
	body, failure, event int64
}

func defaultLimits(timeout time.Duration) limits {
	return limits{timeout: timeout, body: 32 << 20, failure: 64 << 10, event: 4 << 20}
}

// guard sends requests to a server that is not trusted.
type guard struct {
	next   http.RoundTripper
	limits limits
}

// WrappedRoundTripper implements net.RoundTripperWrapper of apimachinery, by which idle connections are closed.
func (g *guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	late := fmt.Errorf("no complete answer within %s: %w", g.limits.timeout, context.DeadlineExceeded)
	timer := time.AfterFunc(g.limits.timeout, func() { cancel(late) })
	done := func() {
		timer.Stop()
		cancel(nil)
	}
	response, err := g.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		err = causeOf(ctx, err)
		done()
		return nil, err
	}
	b := &body{ReadCloser: response.Body, ctx: ctx, done: done}
	b.bound, err = g.boundOf(request, response)
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	if _, events := b.bound.(eventBound); events {
		timer.Stop()
	}
	response.Body = b
	return response, nil
}

// causeOf returns why ctx has ended if it has, or else err.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// boundOf returns what bounds the body of an answer, or why it is not to be read at all.
func (g *guard) boundOf(request *http.Request, response *http.Response) (bound, error) {
	status := response.StatusCode
	watch, _ := strconv.ParseBool(request.URL.Query().Get("watch"))
	size := g.limits.body
	switch {
	case status >= 300 && status < 400:
		return nil, errors.Errorf("the server redirects (%d), which is not followed", status)
	case status < 200 || status >= 400:
		size = g.limits.failure
	case watch:
		return eventBoundOf(response.Header.Get("Content-Type"), g.limits.event)
	}
	if response.ContentLength > size {
		return nil, tooLarge("answer", size)
	}
	return &total{left: size, limit: size}, nil
}

// TooLargeError says that a server's answer, or an event of a watch, has more bytes than are read.
type TooLargeError struct {
	what  string
	limit int64
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the server's %s has more than %d bytes", e.what, e.limit)
}

func tooLarge(what string, limit int64) error { return &TooLargeError{what, limit} }

// body is the body of an answer, as far as it keeps within a bound.
type body struct {
	io.ReadCloser

	bound bound
	ctx   context.Context //nolint:containedctx // It is that of the request that this answers.
	done  func()
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if exceeded := b.bound.add(p[:n]); exceeded != nil {
		return 0, exceeded
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = causeOf(b.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.done()
	return err
}

// bound takes what is read, and returns an error when it is too much.
type bound interface{ add(read []byte) error }

// total bounds a whole answer.
type total struct{ left, limit int64 }

func (t *total) add(read []byte) error {
	if t.left -= int64(len(read)); t.left < 0 {
		return tooLarge("answer", t.limit)
	}
	return nil
}

// eventBound bounds each event of a watch.
type eventBound interface {
	bound
	events()
}

// eventBoundOf returns the bound for events of a media type. What cannot be divided into events cannot be bounded.
func eventBoundOf(contentType string, limit int64) (eventBound, error) {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && media == "application/json":
		return &jsonEvents{limit: limit}, nil
	case err == nil && media == "application/vnd.kubernetes.protobuf":
		return &protobufEvents{limit: limit}, nil
	default:
		return nil, errors.Errorf("the server watches in the form %q, which is neither JSON nor Kubernetes' protobuf", shown(contentType))
	}
}
