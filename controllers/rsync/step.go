package rsync

import (
	"context"
	"fmt"
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
	// readyTimeout is how long an object of an app that others depend on is watched before the app is read again. readyInterval is the
	// time until then when the object cannot be watched.
	readyTimeout  = 30 * time.Second
	readyInterval = 2 * time.Second
	// maxSteps is the maximum number of concurrent steps in a cluster.
	maxSteps = 16
)

// WaitReasonHandle returns the handle below which sidecars hold the reasons why the dependencies of an app are not Ready, by the
// name of the dependency.
func WaitReasonHandle(id, app string) appcontext.Handle {
	return appcontext.ContextHandle(id).Level("app/" + app + "/instruction/dependency")
}

// take takes a step until it has ended. An error means that results cannot be recorded, or that ctx has ended.
func (t *task) take(ctx context.Context, s deploy.Step) (deploy.Outcome, error) {
	switch s.Verb {
	case deploy.VerbBegin:
		return deploy.Acknowledged, t.journal.record(t.plan.Begin(s)...)
	case deploy.VerbAwait:
		return deploy.Acknowledged, t.awaitDependency(ctx, s)
	case deploy.VerbHook:
		if err := t.journal.record(t.plan.Begin(s)...); err != nil {
			return 0, err
		}
		var deadline time.Time
		return t.takeInCluster(ctx, s, func() error { return t.runHook(ctx, s, &deadline) })
	case deploy.VerbRead:
		return t.takeInCluster(ctx, s, func() error { return t.read(ctx, s) })
	default:
		return t.takeInCluster(ctx, s, func() error {
			return t.withCluster(ctx, s.Cluster, func(ctx context.Context, c *cluster) error { return c.take(ctx, t.objects, s) })
		})
	}
}

// takeInCluster takes a step until the cluster has acknowledged or refused it, or ctx ends.
func (t *task) takeInCluster(ctx context.Context, s deploy.Step, attempt func() error) (deploy.Outcome, error) {
	backoff, hadProblem := t.options.Retry, s.Resource.Status == appcontext.ResourceRetrying || s.Resource.Status == appcontext.ResourceFailed
	for {
		err := attempt()
		if err != nil && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		outcome, problem := outcomeOf(err), ""
		if err != nil {
			problem = healthscope.Clean(err.Error())
		}
		t.countAnswer(outcome)
		if err := t.record(s, outcome, problem, hadProblem); err != nil {
			return 0, err
		}
		switch outcome {
		case deploy.Acknowledged:
			return outcome, nil
		case deploy.Refused:
			t.logger.Info("A cluster refused", "context", t.plan.ID, "app", s.App, "cluster", s.Cluster, "step", s.Verb, "resource", s.Resource.Name, "problem", problem)
			return outcome, nil
		case deploy.Unanswered:
			hadProblem = true
			if !t.pause(ctx, backoff.Step()) {
				return 0, ctx.Err()
			}
		}
	}
}

// withCluster waits for a slot of a cluster, and then calls a function with the cluster. The call has a timeout of stepTimeout.
func (t *task) withCluster(ctx context.Context, name string, call func(context.Context, *cluster) error) error {
	c, err := t.clusters.get(name)
	if err != nil {
		return err
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return call(ctx, c)
}

// runHook applies an object of a hook, and waits until its work is done. It holds no slot while it waits. The deadline counts from
// the first successful apply.
func (t *task) runHook(ctx context.Context, s deploy.Step, deadline *time.Time) error {
	var target *cluster
	var hook *unstructured.Unstructured
	err := t.withCluster(ctx, s.Cluster, func(ctx context.Context, c *cluster) error {
		m, err := c.manifest(ctx, t.objects, s.App, s.Resource)
		if err != nil {
			return err
		}
		target, hook = c, m.object()
		return c.apply(ctx, m, hook)
	})
	if err != nil {
		return err
	}
	if deadline.IsZero() {
		*deadline = t.options.Clock.Now().Add(t.options.HookTimeout)
	}
	err = target.awaitHook(ctx, hook, *deadline)
	if err != nil && ctx.Err() == nil && !t.options.Clock.Now().Before(*deadline) {
		return refusalError{errors.Errorf("hook %s %q has not done its work within %s", hook.GetKind(), hook.GetName(), t.options.HookTimeout)}
	}
	return err
}

// read reads an object, and stores it in the context. It uses a transaction of its own, because objects are large. An object that
// etcd rejects is a refusal.
func (t *task) read(ctx context.Context, s deploy.Step) error {
	var data []byte
	err := t.withCluster(ctx, s.Cluster, func(ctx context.Context, c *cluster) (err error) {
		data, err = c.read(ctx, t.plan, s.Resource)
		return err
	})
	if err != nil {
		return err
	}
	err = t.write(ctx, t.plan.ID, t.plan.Read(s, string(data)))
	if err != nil && ctx.Err() == nil && !errors.Is(err, errLockLost) {
		return refusalError{errors.Wrapf(err, "cannot store %q", s.Resource.Name)}
	}
	return err
}

// record records the answer of a cluster: its connectivity, if that has changed, and the status of the resource.
func (t *task) record(s deploy.Step, o deploy.Outcome, problem string, hadProblem bool) error {
	connectivity := appcontext.ConnectivityAvailable
	if o == deploy.Unanswered {
		connectivity = appcontext.ConnectivityRetrying
	}
	key := [2]string{s.App, s.Cluster}
	t.connectivityMu.Lock()
	before := t.connectivity[key]
	t.connectivity[key] = connectivity
	t.connectivityMu.Unlock()
	var writes []appcontext.Write
	if before != connectivity {
		writes = append(writes, t.plan.ConnectivityWrite(s.App, s.Cluster, connectivity))
		if o == deploy.Unanswered {
			t.logger.Info("A cluster gives no answer; retrying", "context", t.plan.ID, "app", s.App, "cluster", s.Cluster, "problem", problem)
		}
	}
	switch {
	case o == deploy.Unanswered && before == connectivity: // It is recorded already.
	case s.Resource.Name != "" && s.Verb != deploy.VerbRead:
		writes = append(writes, t.plan.Result(s, statusAfter(s.Verb, o), problem, hadProblem)...)
	case o == deploy.Refused:
		writes = append(writes, appcontext.Write{Handle: ProblemHandle(t.plan.ID), Sidecar: true, Value: string(s.Verb) + " of app " + s.App + " in cluster " + s.Cluster + ": " + problem})
	}
	if len(writes) == 0 {
		return nil
	}
	return t.journal.record(writes...)
}

// statusAfter returns the status of a resource after an answer.
func statusAfter(verb deploy.Verb, o deploy.Outcome) appcontext.ResourceStatus {
	switch o {
	case deploy.Refused:
		return appcontext.ResourceFailed
	case deploy.Unanswered:
		return appcontext.ResourceRetrying
	case deploy.Acknowledged:
	}
	if verb == deploy.VerbDelete || verb == deploy.VerbDeleteHook {
		return appcontext.ResourceDeleted
	}
	return appcontext.ResourceApplied
}

// awaitDependency waits until a dependency holds. The app that it names has been applied before that. Its objects are read after
// they were applied, so that an outdated health does not count.
func (t *task) awaitDependency(ctx context.Context, s deploy.Step) error {
	if s.Dependency.Criterion == deploy.CriterionReady {
		if err := t.awaitReady(ctx, s); err != nil {
			return err
		}
	}
	if s.Dependency.Wait > 0 {
		t.pause(ctx, s.Dependency.Wait)
	}
	return ctx.Err()
}

// awaitReady waits until the app that a step depends on is Ready. It records the reason while the app is not Ready.
func (t *task) awaitReady(ctx context.Context, s deploy.Step) error {
	recorded := ""
	for first := true; ; first = false {
		why := t.notReady(ctx, s.Dependency.App)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if first || why.reason != recorded { // A reason from before a restart may be stored.
			reason := appcontext.Write{Handle: WaitReasonHandle(t.plan.ID, s.App).Level(s.Dependency.App), Sidecar: true}
			if why.reason != "" {
				reason.Value = why.reason
				t.logger.Info("Waiting for an app to be Ready", "context", t.plan.ID, "app", s.Dependency.App, "problem", why.reason)
			}
			if err := t.journal.record(reason); err != nil {
				return err
			}
			recorded = why.reason
		}
		if why.reason == "" {
			return nil
		}
		if err := t.awaitChange(ctx, why); err != nil && !t.pause(ctx, readyInterval) {
			return ctx.Err()
		}
	}
}

// unready is why an app is not Ready.
type unready struct {
	// reason is empty when the app is Ready.
	reason string
	// object is one that is not Ready, in a cluster, as it was read; nil when the objects could not be read.
	object  *unstructured.Unstructured
	cluster *cluster
}

// awaitChange waits until the object has another state or reason, so that all objects are read again only then. It waits at most
// readyTimeout. An error means that the object may have changed, or cannot be watched: the hub may not have the right to watch its kind.
func (t *task) awaitChange(ctx context.Context, u unready) error {
	if u.object == nil {
		return errors.New("there is no object to watch")
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	before := rules.Evaluate(u.object, rules.Options{User: t.options.HealthChecks})
	return u.cluster.await(ctx, u.object, func(object any) (bool, error) {
		o, ok := object.(*unstructured.Unstructured)
		if !ok {
			return false, errors.Errorf("cannot read %T", object)
		}
		now := rules.Evaluate(o, rules.Options{User: t.options.HealthChecks})
		return now.State != before.State || now.Reason != before.Reason, nil
	})
}

// notReady returns why an app is not Ready in all its clusters.
func (t *task) notReady(ctx context.Context, app string) unready {
	for _, target := range t.plan.Targets() {
		if target.App != app {
			continue
		}
		why, err := t.notReadyIn(ctx, target)
		if err != nil {
			why.reason = err.Error()
		}
		if why.reason != "" {
			why.reason = "cluster " + target.Cluster + ": " + why.reason
			return why
		}
	}
	return unready{}
}

// notReadyIn reads and judges the objects of an app in a cluster, and returns why the app is not Ready there. Each object is read with
// a timeout of its own, so that a slow cluster with many objects is judged too.
func (t *task) notReadyIn(ctx context.Context, target deploy.Target) (unready, error) {
	var in *cluster
	var results []healthscope.Result
	objects := map[healthscope.Key]*unstructured.Unstructured{}
	for _, r := range target.Resources {
		var have *unstructured.Unstructured
		err := t.withCluster(ctx, target.Cluster, func(ctx context.Context, c *cluster) error {
			m, err := c.manifest(ctx, t.objects, target.App, r)
			if err != nil {
				return err
			}
			in, have = c, m.object()
			return c.client.Get(ctx, m.ObjectKey, have)
		})
		if err != nil {
			return unready{}, err
		}
		result := rules.Evaluate(have, rules.Options{User: t.options.HealthChecks})
		results, objects[result.Key] = append(results, result), have
	}
	for _, m := range healthscope.Judge(results, t.options.Policy, t.options.Clock.Now()).Members {
		if m.Counts != healthscope.Ready {
			return unready{fmt.Sprintf("%s/%s is %s: %s", m.Kind, m.Name, m.State, m.Reason), objects[m.Key], in}, nil
		}
	}
	return unready{}, nil
}
