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

// limits bound the time and the size of a server's answers.
type limits struct {
	// timeout is the deadline of a request including its answer; for a watch, until the watch begins.
	timeout time.Duration
	// body, errorBody and event are the maximum sizes in bytes of an answer, of an error, and of an event of a watch.
	body, errorBody, event int64
}

func defaultLimits(timeout time.Duration) limits {
	return limits{timeout: timeout, body: 32 << 20, errorBody: 64 << 10, event: 4 << 20}
}

// limitedTransport sends requests to a server that is not trusted. It follows no redirect, and limits the time and the size of answers.
type limitedTransport struct {
	next   http.RoundTripper
	limits limits
}

// WrappedRoundTripper implements net.RoundTripperWrapper of apimachinery, by which idle connections are closed.
func (t *limitedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *limitedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	errTimeout := fmt.Errorf("no complete answer within %s: %w", t.limits.timeout, context.DeadlineExceeded)
	timer := time.AfterFunc(t.limits.timeout, func() { cancel(errTimeout) })
	done := func() {
		timer.Stop()
		cancel(nil)
	}
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		err = causeOf(ctx, err)
		done()
		return nil, err
	}
	b := &limitedBody{ReadCloser: response.Body, ctx: ctx, done: done}
	b.limiter, err = t.limiterFor(request, response)
	if err != nil {
		_ = b.Close()
		return nil, err
	}
	if _, isWatch := b.limiter.(eventLimiter); isWatch {
		timer.Stop()
	}
	response.Body = b
	return response, nil
}

// causeOf returns why ctx has ended; err while it has not.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// limiterFor returns the limiter of an answer's body, or an error when the body must not be read at all.
func (t *limitedTransport) limiterFor(request *http.Request, response *http.Response) (sizeLimiter, error) {
	status := response.StatusCode
	watch, _ := strconv.ParseBool(request.URL.Query().Get("watch"))
	size := t.limits.body
	switch {
	case status >= 300 && status < 400:
		return nil, errors.Errorf("the server redirects (%d), which is not followed", status)
	case status < 200 || status >= 400:
		size = t.limits.errorBody
	case watch:
		return newEventLimiter(response.Header.Get("Content-Type"), t.limits.event)
	}
	if response.ContentLength > size {
		return nil, tooLarge("answer", size)
	}
	return &bodyLimiter{remaining: size, limit: size}, nil
}

// TooLargeError says that a server's answer, or an event of a watch, exceeds the maximum size.
type TooLargeError struct {
	what  string
	limit int64
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the server's %s has more than %d bytes", e.what, e.limit)
}

func tooLarge(what string, limit int64) error { return &TooLargeError{what, limit} }

// limitedBody is the body of an answer. Reading it fails once it exceeds its limiter.
type limitedBody struct {
	io.ReadCloser

	limiter sizeLimiter
	ctx     context.Context //nolint:containedctx // The context of the request.
	done    func()
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if exceeded := b.limiter.add(p[:n]); exceeded != nil {
		return 0, exceeded
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = causeOf(b.ctx, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *limitedBody) Close() error {
	err := b.ReadCloser.Close()
	b.done()
	return err
}

// sizeLimiter counts what is read, and returns an error when it is too much.
type sizeLimiter interface{ add(read []byte) error }

// bodyLimiter limits the size of a whole answer.
type bodyLimiter struct{ remaining, limit int64 }

func (l *bodyLimiter) add(read []byte) error {
	if l.remaining -= int64(len(read)); l.remaining < 0 {
		return tooLarge("answer", l.limit)
	}
	return nil
}

// eventLimiter limits the size of each event of a watch.
type eventLimiter interface {
	sizeLimiter
	events()
}

// newEventLimiter returns a limiter for events of a media type. A stream that cannot be divided into events cannot be limited, and is an error.
func newEventLimiter(contentType string, limit int64) (eventLimiter, error) {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case err == nil && media == "application/json":
		return &jsonEventLimiter{limit: limit}, nil
	case err == nil && media == "application/vnd.kubernetes.protobuf":
		return &protobufEventLimiter{limit: limit}, nil
	default:
		return nil, errors.Errorf("the server watches in the form %q, which is neither JSON nor Kubernetes' protobuf", sanitized(contentType))
	}
}
