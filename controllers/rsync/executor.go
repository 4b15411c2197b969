package rsync

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
	"github.com/healthscope/healthscope/healthscope/rules"
)

const (
	// conflictRetry is the pause before a retry after a write conflict.
	conflictRetry = 50 * time.Millisecond
	// stepTimeout is how long one attempt of a step may take in a cluster.
	stepTimeout = 30 * time.Second
	// readyInterval is the interval between two checks whether an app that others depend on is Ready.
	readyInterval = 2 * time.Second
	// maxSteps is the maximum number of concurrent steps in a cluster.
	maxSteps = 16
)

// executor takes steps, and records their results.
type executor struct {
	*worker

	plan    *deploy.Plan
	objects *objectCache
	journal *journal

	mu sync.Mutex
	// connectivity is the connectivity in etcd, by app and cluster.
	connectivity map[[2]string]appcontext.Connectivity
}

func newExecutor(w *worker, plan *deploy.Plan, j *journal) *executor {
	e := &executor{worker: w, plan: plan, objects: newObjects(plan), journal: j, connectivity: map[[2]string]appcontext.Connectivity{}}
	for _, a := range plan.Apps {
		for _, t := range a.Targets {
			e.connectivity[[2]string{t.App, t.Cluster}] = t.Connectivity
		}
	}
	return e
}

// take takes a step until it has ended. An error means that results cannot be recorded, or that ctx has ended.
func (e *executor) take(ctx context.Context, s deploy.Step) (deploy.Outcome, error) {
	switch s.Verb {
	case deploy.VerbBegin:
		return deploy.Acknowledged, e.journal.record(e.plan.Begin(s))
	case deploy.VerbAwait:
		return deploy.Acknowledged, e.awaitDependency(ctx, s)
	case deploy.VerbHook:
		if err := e.journal.record(e.plan.Begin(s)); err != nil {
			return 0, err
		}
		var deadline time.Time
		return e.takeInCluster(ctx, s, func(ctx context.Context, s deploy.Step) answer { return e.runHook(ctx, s, &deadline) })
	case deploy.VerbRead:
		return e.takeInCluster(ctx, s, e.read)
	default:
		return e.takeInCluster(ctx, s, e.takeOnce)
	}
}

// takeInCluster takes a step until the cluster has acknowledged or refused it, or ctx ends.
func (e *executor) takeInCluster(ctx context.Context, s deploy.Step, attempt func(context.Context, deploy.Step) answer) (deploy.Outcome, error) {
	backoff, hadProblem := e.options.Retry, s.Resource.Status == appcontext.ResourceRetrying || s.Resource.Status == appcontext.ResourceFailed
	for {
		answer := attempt(ctx, s)
		if answer.kind != acknowledged && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		e.counters.countAnswer(answer)
		if err := e.record(s, answer, hadProblem); err != nil {
			return 0, err
		}
		switch answer.kind {
		case acknowledged:
			return deploy.Acknowledged, nil
		case refused:
			e.logger.Info("A cluster refused", "context", e.plan.ID, "app", s.App, "cluster", s.Cluster, "step", s.Verb, "resource", s.Resource.Name, "problem", answer.problem())
			return deploy.Refused, nil
		case unanswered:
			hadProblem = true
			if !e.pause(ctx, backoff.Step()) {
				return 0, ctx.Err()
			}
		}
	}
}

// takeOnce takes a step once.
func (e *executor) takeOnce(ctx context.Context, s deploy.Step) answer {
	return e.withCluster(ctx, s.Cluster, func(ctx context.Context, c *cluster) error { return c.take(ctx, e.objects, s) })
}

// withCluster waits for a slot of a cluster, and then calls a function with the cluster. The call has a timeout of stepTimeout.
func (e *executor) withCluster(ctx context.Context, name string, call func(context.Context, *cluster) error) answer {
	c, err := e.clusters.get(name)
	if err != nil {
		return answerOf(err)
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return answerOf(ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return answerOf(call(ctx, c))
}

// runHook applies an object of a hook, and waits until its work is done. It holds no slot while it waits. The deadline counts from
// the first successful apply.
func (e *executor) runHook(ctx context.Context, s deploy.Step, deadline *time.Time) answer {
	var target *cluster
	var hook *unstructured.Unstructured
	applied := e.withCluster(ctx, s.Cluster, func(ctx context.Context, c *cluster) error {
		m, err := c.manifest(ctx, e.objects, s.App, s.Resource)
		if err != nil {
			return err
		}
		target, hook = c, m.object()
		return c.apply(ctx, m, hook)
	})
	if applied.kind != acknowledged {
		return applied
	}
	if deadline.IsZero() {
		*deadline = e.options.Clock.Now().Add(e.options.HookTimeout)
	}
	err := target.awaitHook(ctx, hook, *deadline)
	if err != nil && ctx.Err() == nil && !e.options.Clock.Now().Before(*deadline) {
		err = refusalError{errors.Errorf("hook %s %q has not done its work within %s", hook.GetKind(), hook.GetName(), e.options.HookTimeout)}
	}
	return answerOf(err)
}

// record records the answer of a cluster: its connectivity, if that has changed, and the status of the resource.
func (e *executor) record(s deploy.Step, a answer, hadProblem bool) error {
	connectivity := appcontext.ConnectivityAvailable
	if a.kind == unanswered {
		connectivity = appcontext.ConnectivityRetrying
	}
	key := [2]string{s.App, s.Cluster}
	e.mu.Lock()
	before := e.connectivity[key]
	e.connectivity[key] = connectivity
	e.mu.Unlock()
	var writes []appcontext.Write
	if before != connectivity {
		writes = append(writes, e.plan.ConnectivityWrite(s.App, s.Cluster, connectivity))
		if a.kind == unanswered {
			e.logger.Info("A cluster gives no answer; retrying", "context", e.plan.ID, "app", s.App, "cluster", s.Cluster, "problem", a.problem())
		}
	}
	status, problem := statusAfter(s.Verb, a), ""
	if a.kind != acknowledged {
		problem = a.problem()
	}
	switch {
	case a.kind == unanswered && before == connectivity: // It is recorded already.
	case s.Resource.Name != "" && s.Verb != deploy.VerbRead:
		writes = append(writes, e.plan.Result(s, status, problem, hadProblem)...)
	case a.kind == refused:
		writes = append(writes, appcontext.Write{Handle: ProblemHandle(e.plan.ID), Sidecar: true, Value: string(s.Verb) + " of app " + s.App + " in cluster " + s.Cluster + ": " + problem})
	}
	if len(writes) == 0 {
		return nil
	}
	return e.journal.record(writes)
}

// statusAfter returns the status of a resource after an answer.
func statusAfter(verb deploy.Verb, a answer) appcontext.ResourceStatus {
	switch a.kind {
	case refused:
		return appcontext.ResourceFailed
	case unanswered:
		return appcontext.ResourceRetrying
	case acknowledged:
	}
	if verb == deploy.VerbDelete || verb == deploy.VerbDeleteHook {
		return appcontext.ResourceDeleted
	}
	return appcontext.ResourceApplied
}

// awaitDependency waits until a dependency holds. The app that it names has been applied before that. Its objects are read after
// they were applied, so that an outdated health does not count.
func (e *executor) awaitDependency(ctx context.Context, s deploy.Step) error {
	if s.Dependency.Criterion == deploy.CriterionReady {
		if err := e.awaitReady(ctx, s); err != nil {
			return err
		}
	}
	if s.Dependency.Wait > 0 {
		e.pause(ctx, s.Dependency.Wait)
	}
	return ctx.Err()
}

// awaitReady waits until the app that a step depends on is Ready. It records the reason while the app is not Ready.
func (e *executor) awaitReady(ctx context.Context, s deploy.Step) error {
	recorded := ""
	for first := true; ; first = false {
		why := e.notReady(ctx, s.Dependency.App)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if first || why != recorded { // A reason from before a restart may be stored.
			reason := appcontext.Write{Handle: WaitReasonHandle(e.plan.ID, s.App).Level(s.Dependency.App), Sidecar: true}
			if why != "" {
				reason.Value = why
				e.logger.Info("Waiting for an app to be Ready", "context", e.plan.ID, "app", s.Dependency.App, "problem", why)
			}
			if err := e.journal.record([]appcontext.Write{reason}); err != nil {
				return err
			}
			recorded = why
		}
		if why == "" {
			return nil
		}
		if !e.pause(ctx, readyInterval) {
			return ctx.Err()
		}
	}
}

// notReady returns the reason why an app is not Ready in all its clusters; empty when it is.
func (e *executor) notReady(ctx context.Context, app string) string {
	for _, a := range e.plan.Apps {
		if a.Name != app {
			continue
		}
		for _, t := range a.Targets {
			limited, cancel := context.WithTimeout(ctx, stepTimeout)
			reason := ""
			c, err := e.clusters.get(t.Cluster)
			if err == nil {
				reason, err = c.notReady(limited, e.objects, t, e.judge)
			}
			cancel()
			if err != nil {
				reason = err.Error()
			}
			if reason != "" {
				return "cluster " + t.Cluster + ": " + reason
			}
		}
	}
	return ""
}

// judge judges objects of one app in one cluster.
func (e *executor) judge(objects []*unstructured.Unstructured) healthscope.Judgement {
	results := make([]healthscope.Result, 0, len(objects))
	for _, o := range objects {
		results = append(results, rules.Evaluate(o, rules.Options{User: e.options.HealthChecks}))
	}
	return healthscope.Judge(results, e.options.Policy, e.options.Clock.Now())
}
