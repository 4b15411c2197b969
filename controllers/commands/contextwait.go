package commands

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// contextWait waits until no work is left on contexts.
type contextWait struct {
	store    *appcontext.Store
	progress *progress
}

// waitForContexts waits until no work is left on contexts, and prints the state of the first one, whose event finishes before those of the
// others. If the last event of a context has failed, waitForContexts prints why and returns errNo.
func waitForContexts(ctx context.Context, store *appcontext.Store, ids []string, out, errOut io.Writer) error {
	w := contextWait{store, newProgress(errOut)}
	defer w.progress.clear()
	failed := ""
	for _, id := range ids {
		done, err := w.wait(ctx, id)
		if ctx.Err() != nil {
			return noAnswer(errors.Errorf("the work on context %q is not done: \"healthscope context show\" prints its progress; a controller with rsync.enabled must run", ids[0]))
		}
		if err != nil {
			return err
		}
		if !done && failed == "" {
			failed = id
		}
	}
	w.progress.clear()
	if failed != "" {
		if err := showContext(ctx, store, failed, out); err != nil {
			return err
		}
		return errNo
	}
	s, err := store.Snapshot(ctx, ids[0], "status")
	if err != nil {
		return err
	}
	state, err := s.Status()
	if err == nil {
		_, err = fmt.Fprintf(out, "context %s is %s\n", ids[0], state)
	}
	return err
}

// wait waits until no work is left on a context, and reports whether its last event is done.
func (w *contextWait) wait(ctx context.Context, id string) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	finished := false
	watchErr := w.store.WatchLevels(ctx, id, nil, func() {
		if ctx.Err() != nil {
			return // A change that was received before the watch ended.
		}
		if finished, done, err = w.check(ctx, id); finished || err != nil {
			cancel()
		}
	})
	if finished || err != nil {
		return done, err
	}
	return false, watchErr
}

// check reports whether no work is left on a context, and whether its last event is done.
func (w *contextWait) check(ctx context.Context, id string) (finished, done bool, err error) {
	s, err := w.store.Snapshot(ctx, id, deploy.LifecycleLevels()...)
	if err != nil {
		return false, false, err
	}
	l, err := deploy.ReadLifecycle(s)
	if err != nil {
		return false, false, err
	}
	if l.Active() {
		return false, false, w.showProgress(ctx, id, l.Current)
	}
	n := len(l.Queue)
	return true, n > 0 && l.Queue[n-1].Status == deploy.EventDone, nil
}

// showProgress shows the number of resources of a context by status.
func (w *contextWait) showProgress(ctx context.Context, id string, state appcontext.State) error {
	if !w.progress.live {
		return nil
	}
	s, err := statusSnapshot(ctx, w.store, id)
	if err != nil {
		return err
	}
	counts := map[appcontext.ResourceStatus]int{}
	for _, a := range s.Apps() {
		for _, c := range a.Clusters() {
			for _, r := range c.Resources() {
				if status, err := r.Status(); err == nil {
					counts[status]++
				}
			}
		}
	}
	var parts []string
	for _, status := range []appcontext.ResourceStatus{appcontext.ResourcePending, appcontext.ResourceApplied, appcontext.ResourceRetrying, appcontext.ResourceFailed, appcontext.ResourceDeleted} {
		if counts[status] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
		}
	}
	w.progress.showf("context %s is %s: %s", id, state, strings.Join(parts, ", "))
	return nil
}
