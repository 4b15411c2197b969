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

// contextWait waits until nothing is left to do with contexts, for as long as its context lasts.
type contextWait struct {
	store    *appcontext.Store
	progress *progress
}

// waitForContexts waits until nothing is left to do with contexts, and prints the state of the first one: that of the event, which
// comes to an end before the others. The answer is no when the last event of one of them has failed; then it prints why.
func waitForContexts(ctx context.Context, store *appcontext.Store, ids []string, out, errOut io.Writer) error {
	w := contextWait{store, newProgress(errOut)}
	defer w.progress.end()
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
	w.progress.end()
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

// wait waits until nothing is left to do with a context, and reports whether its last event is done.
func (w *contextWait) wait(ctx context.Context, id string) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := false
	broken := w.store.WatchLevels(ctx, id, nil, func() {
		if ctx.Err() != nil {
			return // What it has still received of changes.
		}
		if ended, done, err = w.look(ctx, id); ended || err != nil {
			cancel()
		}
	})
	if ended || err != nil {
		return done, err
	}
	return false, broken
}

// look reports whether nothing is left to do with a context, and whether its last event is done.
func (w *contextWait) look(ctx context.Context, id string) (ended, done bool, err error) {
	s, err := w.store.Snapshot(ctx, id, deploy.LifecycleLevels()...)
	if err != nil {
		return false, false, err
	}
	l, err := deploy.ReadLifecycle(s)
	if err != nil {
		return false, false, err
	}
	if l.Active() {
		return false, false, w.say(ctx, id, l.Current)
	}
	n := len(l.Queue)
	return true, n > 0 && l.Queue[n-1].Status == deploy.EventDone, nil
}

// say shows how many resources of a context have which status.
func (w *contextWait) say(ctx context.Context, id string, state appcontext.State) error {
	if !w.progress.live {
		return nil
	}
	s, err := keptStates(ctx, w.store, id)
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
	var said []string
	for _, status := range []appcontext.ResourceStatus{appcontext.ResourcePending, appcontext.ResourceApplied, appcontext.ResourceRetrying, appcontext.ResourceFailed, appcontext.ResourceDeleted} {
		if counts[status] > 0 {
			said = append(said, fmt.Sprintf("%d %s", counts[status], status))
		}
	}
	w.progress.sayf("context %s is %s: %s", id, state, strings.Join(said, ", "))
	return nil
}
