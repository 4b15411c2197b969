package deploy

import (
	"slices"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// Verb is what a step does.
type Verb string

// The verbs.
const (
	// VerbBegin records that an app in a cluster is begun with: its resources are pending.
	VerbBegin Verb = "begin"
	// VerbApplyBundle makes the ResourceBundleState of an app in a cluster, and VerbDeleteBundle deletes it.
	VerbApplyBundle  Verb = "apply bundle"
	VerbDeleteBundle Verb = "delete bundle"
	// VerbApplyHookBundle makes it for the pre-install hooks, with the mark that says so.
	VerbApplyHookBundle Verb = "apply bundle of hooks"
	// VerbHook applies an object of a hook, and ends when that has done its work. VerbDeleteHook deletes it.
	VerbHook       Verb = "run hook"
	VerbDeleteHook Verb = "delete hook"
	// VerbDefine makes a CRD unless there is one, and ends when its kind is served.
	VerbDefine Verb = "define"
	// VerbApply and VerbDelete apply and delete a resource.
	VerbApply  Verb = "apply"
	VerbDelete Verb = "delete"
	// VerbAwait ends when a dependency holds.
	VerbAwait Verb = "await"
)

// Step is one thing to do.
type Step struct {
	Verb Verb
	// App is whose step it is. Cluster and Resource are empty where the verb is about the app as a whole.
	App, Cluster string
	Resource     Resource
	// Dependency is what VerbAwait waits for.
	Dependency Dependency
}

// Outcome is how a step ended.
type Outcome int

// The outcomes. A step that got no answer has not ended.
const (
	Acknowledged Outcome = iota
	// Refused ends the lane of the step: what comes after it there is not begun.
	Refused
)

// lane is a sequence of steps, of which one at a time is taken.
type lane struct {
	app   string
	steps []Step
	taken bool
	// refused is true when a step was refused.
	refused bool
}

func (l *lane) done() bool { return len(l.steps) == 0 && !l.refused }

// add adds a step for each of some resources.
func (l *lane) add(t Target, verb Verb, resources ...Resource) {
	for _, r := range resources {
		l.steps = append(l.steps, Step{Verb: verb, App: t.App, Cluster: t.Cluster, Resource: r})
	}
}

// resume drops the steps that have ended before a restart.
func (l *lane) resume() *lane {
	for _, s := range slices.Clone(l.steps) {
		if s.Resource.Status == appcontext.ResourceFailed {
			l.refuse(s.Verb)
		}
	}
	l.steps = slices.DeleteFunc(l.steps, Step.ended)
	return l
}

// ended reports whether etcd says that a step has ended in the event that is being handled.
func (s Step) ended() bool {
	switch s.Resource.Status {
	case appcontext.ResourceFailed:
		return true
	case appcontext.ResourceApplied:
		return s.Verb == VerbDefine || s.Verb == VerbApply || s.Verb == VerbHook
	case appcontext.ResourceDeleted:
		return s.Verb == VerbDelete || s.Verb == VerbDeleteHook || s.Verb == VerbHook
	default:
		return false
	}
}

// refuse records that a step was refused: no more steps are taken, but for deletions when one of them was refused.
func (l *lane) refuse(verb Verb) {
	l.refused = true
	l.steps = slices.DeleteFunc(l.steps, func(s Step) bool { return verb != VerbDelete || s.Verb != VerbDelete })
}

// Progress is what is left of the work of an event. Lanes are independent of each other: what is refused in one cluster
// stops neither the others nor other apps, but for those that depend on it.
type Progress struct {
	// awaits are the lanes of dependencies, and targets those of apps in clusters.
	awaits, targets []*lane
	dependencies    map[string][]Dependency
}

// Instantiation returns the steps that bring what a plan wants into clusters, without those that are done.
func (p *Plan) Instantiation() *Progress { return p.bring(Target.instantiation) }

// bring returns the steps that bring apps into their clusters, those of an app in a cluster by steps.
func (p *Plan) bring(steps func(Target) *lane) *Progress {
	work := &Progress{dependencies: map[string][]Dependency{}}
	for _, a := range p.Apps {
		work.dependencies[a.Name] = a.Dependencies
		for _, d := range a.Dependencies {
			work.awaits = append(work.awaits, &lane{app: a.Name, steps: []Step{{Verb: VerbAwait, App: a.Name, Dependency: d}}})
		}
		for _, t := range a.Targets {
			work.targets = append(work.targets, steps(t))
		}
	}
	return work
}

// instantiation returns the steps of an app in a cluster. The bundle is made again after the pre-install hooks, so that what
// it says of them is not taken for the app.
func (t Target) instantiation() *lane {
	l := &lane{app: t.App}
	step := Step{App: t.App, Cluster: t.Cluster}
	if slices.ContainsFunc(slices.Concat(t.Definitions, t.Resources), func(r Resource) bool { return r.Status == "" }) {
		l.steps = append(l.steps, step.as(VerbBegin))
	}
	l.add(t, VerbDefine, t.Definitions...)
	started := slices.ContainsFunc(t.Resources, func(r Resource) bool { return r.Status == appcontext.ResourceApplied })
	if pre := t.Hooks[HookPreInstall]; len(pre) > 0 && !started {
		l.steps = append(l.steps, step.as(VerbApplyHookBundle))
		l.add(t, VerbHook, pre...)
		l.steps = append(l.steps, step.as(VerbDeleteBundle))
	}
	l.steps = append(l.steps, step.as(VerbApplyBundle))
	l.add(t, VerbApply, t.Resources...)
	l.add(t, VerbHook, t.Hooks[HookPostInstall]...)
	return l.resume()
}

// as returns a step with another verb.
func (s Step) as(verb Verb) Step {
	s.Verb = verb
	return s
}

// Termination returns the steps that delete what a plan wants, in reverse order, without those that are done. CRDs stay:
// with them, the custom resources of all applications would go. The bundle goes last, and stays where something else does.
func (p *Plan) Termination() *Progress {
	work := &Progress{}
	for _, a := range p.Apps {
		for _, t := range a.Targets {
			work.targets = append(work.targets, t.termination())
		}
	}
	return work
}

// termination returns the steps of an app in a cluster. A deletion that is refused does not keep the others from being
// deleted; a pre-delete hook that fails does.
func (t Target) termination() *lane {
	l := &lane{app: t.App}
	l.add(t, VerbHook, t.Hooks[HookPreDelete]...)
	for _, r := range slices.Backward(t.Resources) {
		l.add(t, VerbDelete, r)
	}
	l.add(t, VerbHook, t.Hooks[HookPostDelete]...)
	for _, hook := range hooks {
		l.add(t, VerbDeleteHook, t.Hooks[hook]...)
	}
	l.steps = append(l.steps, Step{Verb: VerbDeleteBundle, App: t.App, Cluster: t.Cluster})
	return l.resume()
}

// Take returns the steps that may begin now. Each is returned once; Complete says that it has ended.
func (w *Progress) Take() []Step {
	var steps []Step
	take := func(l *lane) {
		l.taken = true
		steps = append(steps, l.steps[0])
	}
	for _, l := range w.awaits {
		if !l.taken && len(l.steps) > 0 && w.applied(l.steps[0].Dependency.App) {
			take(l)
		}
	}
	for _, l := range w.targets {
		if !l.taken && len(l.steps) > 0 && w.met(l.app) {
			take(l)
		}
	}
	return steps
}

// applied reports whether an app is applied in all its clusters.
func (w *Progress) applied(app string) bool {
	return !slices.ContainsFunc(w.targets, func(l *lane) bool { return l.app == app && !l.done() })
}

// met reports whether all dependencies of an app hold.
func (w *Progress) met(app string) bool {
	return !slices.ContainsFunc(w.awaits, func(l *lane) bool { return l.app == app && !l.done() })
}

// Complete says that a step has ended.
func (w *Progress) Complete(s Step, outcome Outcome) {
	lanes := w.targets
	if s.Verb == VerbAwait {
		lanes = w.awaits
	}
	i := slices.IndexFunc(lanes, func(l *lane) bool { return l.taken && l.steps[0] == s })
	if i < 0 {
		return
	}
	l := lanes[i]
	l.taken, l.steps = false, l.steps[1:]
	if outcome == Refused {
		l.refuse(s.Verb)
	}
}

// Done reports whether every step has been acknowledged.
func (w *Progress) Done() bool {
	return !slices.ContainsFunc(slices.Concat(w.awaits, w.targets), func(l *lane) bool { return !l.done() })
}
