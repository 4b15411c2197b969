package fleet

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// pulse is the liveness of one connection, told of by many. It is safe for concurrent use.
type pulse struct {
	clock clock.PassiveClock
	// beat is called when something may have changed. It does not block.
	beat func()

	mu   sync.Mutex
	life *liveness
	// opened is closed when requests make sense again; nil while they do.
	opened chan struct{}
	// unread are the parts of what is read by several watches that are not current, by resource.
	unread map[string]map[*watched]struct{}
}

func newPulse(local bool, timeout time.Duration, c clock.PassiveClock, beat func()) *pulse {
	return &pulse{
		clock: c, beat: beat, life: newLiveness(local, timeout, c.Now()),
		unread: map[string]map[*watched]struct{}{},
	}
}

// tell notes something.
func (p *pulse) tell(note func(l *liveness, now time.Time)) {
	p.mu.Lock()
	note(p.life, p.clock.Now())
	switch open := p.life.open(); {
	case open && p.opened != nil:
		close(p.opened)
		p.opened = nil
	case !open && p.opened == nil:
		p.opened = make(chan struct{})
	}
	p.mu.Unlock()
	p.beat()
}

// ask reads something.
func (p *pulse) ask(question func(l *liveness, now time.Time)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	question(p.life, p.clock.Now())
}

// awaitOpen waits until it makes sense to ask the API server for anything.
func (p *pulse) awaitOpen(ctx context.Context) error {
	for {
		p.mu.Lock()
		opened := p.opened
		p.mu.Unlock()
		if opened == nil {
			return ctx.Err()
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// failedToRead notes why a request for what is watched failed. It returns false for errors that are no trouble: the reader has to begin anew.
func (p *pulse) failedToRead(w *watched, err error) bool {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || isTooNew(err) {
		p.tell(func(l *liveness, now time.Time) { l.answered(now) })
		return false
	}
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		p.tell(func(l *liveness, now time.Time) {
			l.unanswered(now, shortened(err.Error()))
			p.lose(w, l, now)
		})
		return true
	}
	kind, text := outage, "cannot list and watch "+w.what+": "+shortened(err.Error())
	switch {
	case apierrors.IsUnauthorized(err):
		kind, text = disbelief, errUnauthorized.Error()
	case apierrors.IsForbidden(err):
		kind, text = refusal, "the controller may not list and watch "+w.what+": "+shortened(err.Error())
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		kind, text = absence, "the API server does not serve "+w.what+w.remedy
	}
	p.tell(func(l *liveness, now time.Time) {
		p.lose(w, l, now)
		l.unread(w.state(l), kind, text, now)
	})
	return true
}

// gain notes that one watch is current; what it is a part of is when all its parts are.
func (p *pulse) gain(w *watched) {
	p.tell(func(l *liveness, now time.Time) {
		parts := p.unread[w.resource]
		delete(parts, w)
		if len(parts) > 0 {
			l.answered(now)
		} else if s := w.state(l); !s.current {
			l.resumed(s, now)
		}
	})
}

// gainAll notes that all of the bundles have been read.
func (p *pulse) gainAll() {
	p.tell(func(l *liveness, now time.Time) {
		clear(p.unread[bundlesResource])
		l.resumed(&l.bundles, now)
	})
}

// lose notes that one watch is not current.
func (p *pulse) lose(w *watched, l *liveness, now time.Time) {
	if p.unread[w.resource] == nil {
		p.unread[w.resource] = map[*watched]struct{}{}
	}
	p.unread[w.resource][w] = struct{}{}
	l.interrupted(w.state(l), now)
}

// isTooNew says whether a list failed because the API server has not yet seen what the reader has.
func isTooNew(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// shortened bounds the text of an error.
func shortened(text string) string { return cut(text, maxErrorText) }

// cut bounds a text to so many bytes.
func cut(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most-3], "") + "..."
	}
	return text
}
