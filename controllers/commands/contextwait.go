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

// waitForContexts waits until no work is left on contexts, and prints the state of the first one, whose event finishes before those of the
// others. If the last event of a context has failed, waitForContexts prints why and returns errNo.
func waitForContexts(ctx context.Context, store *appcontext.Store, ids []string, out, errOut io.Writer) error {
	p := newProgress(errOut)
	defer p.clear()
	failed := ""
	for _, id := range ids {
		done, err := waitForContext(ctx, store, id, p)
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
	p.clear()
	if failed != "" {
		if err := showContext(ctx, store, []string{failed}, out); err != nil {
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

// waitForContext watches a context until no work is left on it, and reports whether its last event is done.
func waitForContext(ctx context.Context, store *appcontext.Store, id string, p *progress) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	finished := false
	watchErr := store.WatchLevels(ctx, id, nil, func() {
		if ctx.Err() != nil {
			return // A change that was received before the watch ended.
		}
		l, readErr := readLifecycle(ctx, store, id)
		switch n := len(l.Queue); {
		case readErr != nil:
			err = readErr
		case l.Active():
			err = showProgress(ctx, store, id, l.Current, p)
		default:
			finished, done = true, n > 0 && l.Queue[n-1].Status == deploy.EventDone
		}
		if finished || err != nil {
			cancel()
		}
	})
	if finished || err != nil {
		return done, err
	}
	return false, watchErr
}

func readLifecycle(ctx context.Context, store *appcontext.Store, id string) (deploy.Lifecycle, error) {
	s, err := store.Snapshot(ctx, id, deploy.LifecycleLevels()...)
	if err != nil {
		return deploy.Lifecycle{}, err
	}
	return deploy.ReadLifecycle(s)
}

// showProgress shows the number of resources of a context by status.
func showProgress(ctx context.Context, store *appcontext.Store, id string, state appcontext.State, p *progress) error {
	if !p.live {
		return nil
	}
	s, err := statusSnapshot(ctx, store, id)
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
	p.showf("context %s is %s: %s", id, state, strings.Join(parts, ", "))
	return nil
}
