package inventory

import (
	gosync "sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
)

const (
	// minPause is the time between two passes over a tenant while all is well: changes that come in a burst share a pass.
	minPause = 200 * time.Millisecond
	// maxPause is the longest time between two passes that does not come from the client: it leaves A&AI alone for longer when A&AI asked for that, or refuses the controller as such.
	maxPause = client.MaxPause
)

// passBackoffs hold one passBackoff for each reconciled key. Only one worker reconciles a key at a time. It is safe for concurrent use.
type passBackoffs[K comparable] struct {
	mu  gosync.Mutex // guards the rest
	all map[K]*passBackoff
}

// of returns the backoff of a key, and creates it if needed.
func (p *passBackoffs[K]) of(key K) *passBackoff {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[K]*passBackoff{}
	}
	if p.all[key] == nil {
		p.all[key] = &passBackoff{backoff: newBackoff()}
	}
	return p.all[key]
}

// forget drops the backoff of a key that needs no further passes.
func (p *passBackoffs[K]) forget(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, key)
}

// passBackoff says when the next pass over a tenant may begin. Resources may change all
// the time, and A&AI may be down: neither is a reason to ask it more often.
type passBackoff struct {
	// notBefore is when a change may begin a pass.
	notBefore time.Time
	backoff   wait.Backoff
}

// succeeded records a successful pass.
func (p *passBackoff) succeeded(now time.Time) {
	p.notBefore, p.backoff = now.Add(minPause), newBackoff()
}

// failed records a failed pass and returns when the next one may begin: when the client asks A&AI again, and
// after pauses that grow. Only answers of A&AI make them grow, and not that the client did not ask.
func (p *passBackoff) failed(err error, now time.Time) (retry time.Duration) {
	retry = minPause
	if !aai.NotSent(err) {
		retry = p.backoff.Step()
	}
	var e *aai.Error
	if errors.As(err, &e) {
		retry = max(retry, e.NotBefore.Sub(now))
	}
	p.notBefore = now.Add(retry)
	return retry
}

// logFailed logs that something is not up to date: an error, unless A&AI was not asked, which the error before has said.
func logFailed(logger logr.Logger, err error, message string, retry time.Duration) {
	logger = logger.WithValues("retryAfter", retry.String())
	if aai.NotSent(err) {
		logger.V(1).Info(message, "cause", err.Error())
		return
	}
	logger.Error(err, message)
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: minPause, Factor: 2, Jitter: 0.1, Steps: 20, Cap: maxPause}
}

// isPerResource reports whether the error of a pass is about single resources, while A&AI is well otherwise.
func isPerResource(err error) bool {
	var e *aai.Error
	return errors.As(err, &e) && e.Kind == aai.Retry && e.Op != aai.OpList && e.Op != aai.OpProbe && !e.Outage()
}
