package commands

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// contextWait waits until nothing is left to do with contexts, for as long as its context lasts.
type contextWait struct {
	store *appcontext.Store
	// ids are the contexts. The first is that of the event, which comes to an end first.
	ids      []string
	progress *progress
}

// waitForContexts waits until nothing is left to do with contexts, and prints the state of the first one. The answer is no when the
// last event of one of them has failed; then it prints why.
func waitForContexts(ctx context.Context, store *appcontext.Store, ids []string, out, errOut io.Writer) error {
	w := contextWait{store, ids, newProgress(errOut)}
	defer w.progress.end()
	failed, err := w.wait(ctx)
	if ctx.Err() != nil {
		return noAnswer(errors.Errorf("the work on context %q has not ended in time: \"healthscope context show\" tells how far it is; a controller with rsync.enabled must run", ids[0]))
	}
	if err != nil {
		return err
	}
	w.progress.end()
	if failed != "" {
		if err := showContext(ctx, store, failed, out); err != nil {
			return err
		}
		return errNo
	}
	s, err := store.ReadLevels(ctx, ids[0], "status")
	if err != nil {
		return err
	}
	state, err := s.Status()
	if err == nil {
		_, err = fmt.Fprintf(out, "context %s is %s\n", ids[0], state)
	}
	return err
}

// wait returns the first context of which the last event has failed; empty when none has.
func (w *contextWait) wait(ctx context.Context) (failed string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	changed := make(chan struct{}, 1)
	for _, id := range w.ids {
		group.Go(func() error {
			return w.store.WatchLevels(ctx, id, nil, func() {
				select {
				case changed <- struct{}{}:
				default: // What has changed before is not read yet.
				}
			})
		})
	}
	group.Go(func() error {
		for done := false; !done; {
			select {
			case <-changed:
			case <-ctx.Done():
				return ctx.Err()
			}
			var err error
			if done, failed, err = w.look(ctx); err != nil {
				return err
			}
		}
		return errWaited
	})
	err = group.Wait()
	cancel()
	if errors.Is(err, errWaited) {
		err = nil
	}
	return failed, err
}

// errWaited ends the watches.
var errWaited = errors.New("nothing is left to do")

// look reports whether nothing is left to do, and which context has failed.
func (w *contextWait) look(ctx context.Context) (done bool, failed string, err error) {
	for _, id := range w.ids {
		s, err := w.store.ReadLevels(ctx, id, deploy.LifecycleLevels()...)
		if err != nil {
			return false, "", err
		}
		l, err := deploy.ReadLifecycle(s)
		if err != nil {
			return false, "", err
		}
		if l.Active() {
			return false, "", w.say(ctx, id, l.Current)
		}
		if n := len(l.Queue); failed == "" && (n == 0 || l.Queue[n-1].Status != deploy.EventDone) {
			failed = id
		}
	}
	return true, failed, nil
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
