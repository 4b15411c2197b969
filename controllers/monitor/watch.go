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

// unread is the reason why the objects of a kind cannot be seen.
type unread string

const (
	// unreadableForbidden means that the monitor may not read the kind.
	unreadableForbidden unread = "Forbidden"
	// unreadableNoAnswer means that the kind has not been read yet.
	unreadableNoAnswer unread = "NoAnswer"
)

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
	if w.gone() {
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
	if unreadable(s) != unreadable(before) || (s.Reason == observe.NotServed) != (before.Reason == observe.NotServed) {
		w.wake()
	}
}

// isSettled reports whether the objects have been read once, or cannot be read, at least not within startGrace.
func (w *watch) isSettled() bool {
	s := w.informer.State()
	return s.Status != observe.Pending || s.IsFailing() && w.informer.Clock.Since(s.Since) >= startGrace
}

// unreadable returns why it is not known which objects there are; empty when it is known.
func (w *watch) unreadable() unread { return unreadable(w.informer.State()) }

// unreadable returns why it is not known in a state which objects there are; empty when it is known. A kind that has been
// read stays known while there is no answer, and where there is no such kind, or none to be shown, there are no objects.
func unreadable(s observe.State) unread {
	if s.Status == observe.Pending {
		return unreadableNoAnswer
	}
	switch s.Reason {
	case observe.Forbidden:
		return unreadableForbidden
	case observe.Unauthorized:
		if s.AsOf.IsZero() {
			return unreadableNoAnswer
		}
	case observe.NoAnswer, observe.NotServed:
	}
	return ""
}

// gone reports whether there is no such kind, or none to be shown.
func (w *watch) gone() bool { return w.informer.State().Reason == observe.NotServed }

// shows reports whether the store shows the objects that there are, or were a moment ago.
func (w *watch) shows() bool {
	s := w.informer.State()
	return unreadable(s) == "" && s.Reason != observe.NotServed
}

// appendMembers appends to objects those that a bundle's key selects.
func (w *watch) appendMembers(objects []*packed, c selectorKey) []*packed {
	if c.key != w.source.key || w.gone() {
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
