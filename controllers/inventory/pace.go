package inventory

import (
	gosync "sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/healthscope/healthscope/aai"
)

const (
	// minPause is the time between two passes over a tenant while all is well: changes that come in a burst share a pass.
	minPause = 200 * time.Millisecond
	// maxPause is the longest time between two passes that A&AI did not ask for.
	maxPause = time.Minute
	// maxDelay is the longest time that changes wait for trouble with other resources.
	maxDelay = 5 * time.Second
)

// paces are those of several things that are reconciled each by one worker at a time. It is safe for concurrent use.
type paces[K comparable] struct {
	mu  gosync.Mutex // guards the rest
	all map[K]*pace
}

// of returns the pace of one.
func (p *paces[K]) of(key K) *pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[K]*pace{}
	}
	if p.all[key] == nil {
		p.all[key] = &pace{backoff: newBackoff()}
	}
	return p.all[key]
}

// forget drops the pace of one with which there is nothing to do any more.
func (p *paces[K]) forget(key K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, key)
}

// pace says when the next pass over a tenant may begin. Resources may change all
// the time, and A&AI may be down: neither is a reason to ask it more often.
type pace struct {
	// notBefore is when a change may begin a pass.
	notBefore time.Time
	backoff   wait.Backoff
}

// succeeded notes a pass that was good.
func (p *pace) succeeded(now time.Time) {
	p.notBefore, p.backoff = now.Add(minPause), newBackoff()
}

// failed notes a pass that was not good and returns when to try again if nothing
// changes: when A&AI asked for it, else after pauses that grow. Changes wait just
// as long when A&AI as a whole is in trouble, and not for long when single resources are.
func (p *pace) failed(err error, now time.Time) (retry time.Duration) {
	var e *aai.Error
	if errors.As(err, &e) && e.RetryAfter > 0 { // Also while the gate is closed: nothing was asked, so the pauses do not grow.
		retry = max(e.RetryAfter, minPause)
	} else {
		retry = p.backoff.Step()
	}
	p.notBefore = now.Add(retry)
	if ofSingleResources(err) {
		p.notBefore = now.Add(min(retry, maxDelay))
	}
	return retry
}

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: minPause, Factor: 2, Jitter: 0.1, Steps: 20, Cap: maxPause}
}

// ofSingleResources reports whether the error of a pass is about single resources, while A&AI is well otherwise.
func ofSingleResources(err error) bool {
	var e *aai.Error
	return errors.As(err, &e) && e.Kind == aai.Retry && e.Op != aai.OpList && e.Op != aai.OpProbe && !e.Outage()
}
