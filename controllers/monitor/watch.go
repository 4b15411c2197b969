package monitor

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/controllers/observe"
)

// watchRules has no Grace: without an answer of the API server, the objects of a kind stay as they were read last, indefinitely.
var watchRules = observe.Rules{CatchUp: 500 * time.Millisecond}

// maxRefusedPause bounds the pause between attempts to read a kind that is refused. A permission is rarely granted, or a kind installed, later.
const maxRefusedPause = 10 * time.Minute

// startGrace is how long the monitor waits on start for a kind whose first attempts fail.
const startGrace = 30 * time.Second

// visibility says what is known of the objects of a kind.
type visibility string

const (
	// visible means that the store has the objects of the kind, as of the last answer of the API server.
	visible visibility = ""
	// gone means that the cluster does not serve the kind, or that its objects cannot be reported.
	gone visibility = "Gone"
	// forbidden means that the monitor may not read the kind.
	forbidden visibility = "Forbidden"
	// neverSynced means that the kind has not been read yet.
	neverSynced visibility = "NoAnswer"
)

// visibilityIn returns the visibility in a state. A kind that has been read stays visible while the API server does not answer.
func visibilityIn(s observe.State) visibility {
	if s.Status == observe.Pending {
		return neverSynced
	}
	switch s.Reason {
	case observe.NotServed:
		return gone
	case observe.Forbidden:
		return forbidden
	case observe.Unauthorized:
		if s.AsOf.IsZero() {
			return neverSynced
		}
	case observe.NoAnswer:
	}
	return visible
}

// isUnreadable reports whether the objects of the kind are unknown.
func (s visibility) isUnreadable() bool { return s == forbidden || s == neverSynced }

// watch lists and watches one source, and keeps its objects in a store.
type watch struct {
	source   source
	store    *store
	informer *observe.Informer
	logger   logr.Logger
	// wake is called when bundles must be reconciled although no object has changed.
	wake func()
	// cancel stops the watch; nil before startWatch.
	cancel context.CancelFunc
	// reported is the state of the last call of changed.
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
		TrackedOptions: observe.TrackedOptions{Clock: c, MaxRetryInterval: maxRefusedPause, Describe: w.describe},
		Open:           w.open, Store: w.store, Changed: w.changed,
	})
	return w
}

// open returns the ListerWatcher of the source.
func (w *watch) open(context.Context) (cache.ListerWatcher, error) {
	if w.visibility() == gone {
		_ = w.store.Replace(nil, "") // Drop the objects, which are not shown while the kind is gone.
	}
	return w.source.open()
}

// describe returns the message of a failed attempt, and logs it if the previous attempt did not fail.
func (w *watch) describe(reason observe.Reason, err error) string {
	if w.informer.State().IsFailing() {
		w.logger.V(1).Info("Still cannot read kind", "reason", err.Error())
		return err.Error()
	}
	switch reason {
	case observe.NoAnswer, observe.Unauthorized:
		w.logger.Info("Cannot read kind, trying again", "reason", err.Error())
	case observe.Forbidden, observe.NotServed: // The method changed logs these once they are confirmed.
	}
	return err.Error()
}

// changed handles a new state of the informer.
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
	if visibilityIn(s) != visibilityIn(before) {
		w.wake()
	}
}

// isSettled reports whether the objects have been read once, or cannot be read, at least not within startGrace.
func (w *watch) isSettled() bool {
	s := w.informer.State()
	return s.Status != observe.Pending || s.IsFailing() && w.informer.Clock.Since(s.Since) >= startGrace
}

// visibility returns what is known of the objects.
func (w *watch) visibility() visibility { return visibilityIn(w.informer.State()) }

// appendMembers appends to objects those that a bundle's key selects.
func (w *watch) appendMembers(objects []*packed, c selectorKey) []*packed {
	if !w.source.includes(c) || w.visibility() == gone {
		return objects
	}
	return w.store.appendMembers(objects, c)
}

// retry makes a watch that was refused read again now, because the cluster's kinds have changed.
func (w *watch) retry() {
	if s := w.informer.State(); s.Reason != "" || !s.ConfirmBy().IsZero() {
		w.informer.Relist(false)
	}
}
