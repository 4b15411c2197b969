package rsync

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/healthscope/api"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// Groups deploys deployment intent groups for callers that do not know contexts. It finds the context of the group for a request,
// and adds the event to its queue.
type Groups struct {
	// Store is the etcd with the contexts.
	Store *appcontext.Store
}

var _ api.Deployments = Groups{}

// Instantiate implements api.Deployments.
func (g Groups) Instantiate(ctx context.Context, group appcontext.DeploymentRef) error {
	c, err := g.readContexts(ctx, group)
	if err != nil {
		return err
	}
	id := c.newest
	if c.deployed {
		id = c.current
	}
	return Enqueue(ctx, g.Store, id, deploy.EventInstantiate, "", time.Now())
}

// Terminate implements api.Deployments.
func (g Groups) Terminate(ctx context.Context, group appcontext.DeploymentRef) error {
	c, err := g.readContexts(ctx, group)
	if err != nil {
		return err
	}
	return Enqueue(ctx, g.Store, c.current, deploy.EventTerminate, "", time.Now())
}

// Stop implements api.Deployments.
func (g Groups) Stop(ctx context.Context, group appcontext.DeploymentRef) error {
	c, err := g.readContexts(ctx, group)
	if err != nil {
		return err
	}
	return Stop(ctx, g.Store, c.last, time.Now())
}

// Update implements api.Deployments.
func (g Groups) Update(ctx context.Context, group appcontext.DeploymentRef) (api.Revision, error) {
	c, err := g.readDeployed(ctx, group)
	if err != nil {
		return 0, err
	}
	if c.newest == c.current {
		return 0, errors.Errorf("the newest context of deployment intent group %q, %q, is in force already: make another one with \"healthscope context apply\"", group, c.newest)
	}
	action, err := enqueue(ctx, g.Store, c.newest, deploy.EventUpdate, c.current, time.Now())
	return api.Revision(action.Revision), err
}

// Rollback implements api.Deployments.
func (g Groups) Rollback(ctx context.Context, group appcontext.DeploymentRef, to api.Revision) error {
	c, err := g.readDeployed(ctx, group)
	if err != nil {
		return err
	}
	for _, a := range slices.Backward(c.actions) {
		if a.Revision == int64(to) && (a.State == appcontext.ActionInstantiated || a.State == appcontext.ActionUpdated) {
			return Enqueue(ctx, g.Store, a.ContextID, deploy.EventUpdate, c.current, time.Now())
		}
	}
	return notFoundError(fmt.Sprintf("deployment intent group %q has no revision %d", group, to))
}

// notFoundError is an appcontext.ErrNotFound with its own message.
type notFoundError string

func (e notFoundError) Error() string { return string(e) }

// Is reports whether target is appcontext.ErrNotFound.
func (notFoundError) Is(target error) bool { return target == appcontext.ErrNotFound }

// groupContexts holds the contexts of a deployment intent group that requests refer to.
type groupContexts struct {
	// current is the context that is to be deployed if deployed is true, and otherwise the same as last.
	current  string
	deployed bool
	// last is the context of the last action, and newest is the context that was created last.
	last, newest string
	// actions are the recorded actions of users.
	actions []appcontext.Action
}

// readContexts finds the contexts of a group.
func (g Groups) readContexts(ctx context.Context, group appcontext.DeploymentRef) (groupContexts, error) {
	view, err := g.Store.View(ctx, group, "")
	if err != nil {
		return groupContexts{}, err
	}
	if len(view.Contexts) == 0 {
		return groupContexts{}, notFoundError(fmt.Sprintf("there is no context of deployment intent group %q: make one with \"healthscope context apply\"", group))
	}
	c := groupContexts{current: view.ContextID, last: view.ContextID, newest: view.Contexts[len(view.Contexts)-1], actions: view.Info.Actions}
	// An update that was stopped before it began may be the last action. The context that it was to replace is still deployed then.
	for _, id := range candidates(view) {
		l, _, err := readLifecycle(ctx, g.Store, id)
		if err != nil && !errors.Is(err, appcontext.ErrNotFound) {
			return groupContexts{}, err
		}
		if l.Wanted() {
			c.current, c.deployed = id, true
			break
		}
	}
	return c, nil
}

// candidates returns the contexts of a group that may be deployed. The context of the last action is the first.
func candidates(view appcontext.View) []string {
	ids := []string{view.ContextID}
	for _, a := range slices.Backward(view.Info.Actions) {
		if slices.Contains(view.Contexts, a.ContextID) && !slices.Contains(ids, a.ContextID) {
			ids = append(ids, a.ContextID)
		}
	}
	return ids
}

// readDeployed finds the contexts of a group. It fails if none is to be deployed.
func (g Groups) readDeployed(ctx context.Context, group appcontext.DeploymentRef) (groupContexts, error) {
	c, err := g.readContexts(ctx, group)
	if err == nil && !c.deployed {
		err = errors.Errorf("deployment intent group %q is not instantiated", group)
	}
	return c, err
}
