package monitor

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/controllers/observe"
)

// watchRules are what is tolerated of the watch of a kind: without an answer the kind stays known as it was read last, indefinitely.
var watchRules = observe.Rules{Settle: 500 * time.Millisecond}

// maxRefusedPause bounds the pause between attempts to read a kind that is refused: a right is granted, or a kind installed, once, if at all.
const maxRefusedPause = 10 * time.Minute

// startGrace is how long the start waits for a kind whose first attempts fail.
const startGrace = 30 * time.Second

// sight says what is known of the objects of a kind.
type sight string

const (
	// shown means that the store has the objects that there are, or were a moment ago.
	shown sight = ""
	// gone means that there is no such kind, or none to be shown.
	gone sight = "Gone"
	// forbidden means that the monitor may not read the kind.
	forbidden sight = "Forbidden"
	// unread means that the kind has not been read yet.
	unread sight = "NoAnswer"
)

// sightIn returns what is known in a state. A kind that has been read stays known while there is no answer.
func sightIn(s observe.State) sight {
	if s.Status == observe.Pending {
		return unread
	}
	switch s.Reason {
	case observe.NotServed:
		return gone
	case observe.Forbidden:
		return forbidden
	case observe.Unauthorized:
		if s.AsOf.IsZero() {
			return unread
		}
	case observe.NoAnswer:
	}
	return shown
}

// isUnreadable reports whether it is not known which objects there are.
func (s sight) isUnreadable() bool { return s == forbidden || s == unread }

// watch follows one source for as long as it runs and keeps its objects in store.
type watch struct {
	source   source
	store    *store
	informer *observe.Informer
	logger   logr.Logger
	// wake is called when bundles have to be looked at again although no object has changed.
	wake func()
	// cancel ends reading; nil before begin.
	cancel context.CancelFunc
	// reported is the state that changed was called with last.
	reported observe.State
}

func newWatch(s source, c clock.WithDelayedExecution, logger logr.Logger) *watch {
	logger = logger.WithValues("kind", s.kind.String())
	if s.key != "" {
		logger = logger.WithValues("label", s.key)
	}
	if s.namespace != "" {
		logger = logger.WithValues("namespace", s.namespace)
	}
	w := &watch{
		source: s, store: newStore(s.kind, s.key), logger: logger, wake: func() {},
	}
	w.informer = observe.NewInformer(watchRules, observe.InformerOptions{
		TrackedOptions: observe.TrackedOptions{Clock: c, MaxRefused: maxRefusedPause, Describe: w.describe},
		Open:           w.open, Store: w.store, Changed: w.changed,
	})
	return w
}

// open returns how the source is listed and watched.
func (w *watch) open(context.Context) (cache.ListerWatcher, error) {
	if w.sight() == gone {
		_ = w.store.Replace(nil, "") // They are not shown while the kind is gone.
	}
	return w.source.open()
}

// describe returns what is wrong with an attempt that has failed, and logs it when the one before had not.
func (w *watch) describe(reason observe.Reason, err error) string {
	if w.informer.State().IsFailing() {
		w.logger.V(1).Info("Still cannot read kind", "reason", err.Error())
		return err.Error()
	}
	switch reason {
	case observe.NoAnswer, observe.Unauthorized:
		w.logger.Info("Cannot read kind, trying again", "reason", err.Error())
	case observe.Forbidden, observe.NotServed: // Method changed logs them once they are confirmed.
	}
	return err.Error()
}

// changed acts on another state of the informer.
func (w *watch) changed(s observe.State) {
	before := w.reported
	w.reported = s
	switch {
	case s.Status == observe.Ready && before.Status == observe.Problem:
		w.logger.Info("Kind can be read again")
	case s.Message == string(errElsewhere):
		w.logger.V(1).Info("Kind is not read here", "reason", s.Message)
	case s.Status == observe.Problem && s.Reason != before.Reason:
		w.logger.Info("Cannot read kind, bundles are filled without it; it is tried again at growing intervals, and when the kinds of the cluster change", "reason", s.Message)
	}
	if sightIn(s) != sightIn(before) {
		w.wake()
	}
}

// isSettled reports whether the objects have been read once, or cannot be read, at least not within startGrace.
func (w *watch) isSettled() bool {
	s := w.informer.State()
	return s.Status != observe.Pending || s.IsFailing() && w.informer.Clock.Since(s.Since) >= startGrace
}

// sight returns what is known of the objects.
func (w *watch) sight() sight { return sightIn(w.informer.State()) }

// appendMembers appends to objects those that a bundle's key selects.
func (w *watch) appendMembers(objects []*packed, c selectorKey) []*packed {
	if c.key != w.source.key || w.sight() == gone {
		return objects
	}
	return w.store.appendMembers(objects, c)
}

// retry lets a watch that was refused try again now: the cluster's kinds have changed.
func (w *watch) retry() {
	if s := w.informer.State(); s.Reason != "" || !s.ConfirmBy().IsZero() {
		w.informer.Reread(false)
	}
}
