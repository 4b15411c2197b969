package deploy

import (
	"iter"
	"slices"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// Verb is what a step does.
type Verb string

// The verbs.
const (
	// VerbBegin records that an app in a cluster is begun with: of what is to be applied or deleted nothing is known any more
	// until it is. Without that, etcd would say of something that it is there, or not, when a program is killed after a request.
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
	// VerbRead reads an object that the context names, which need not be its own.
	VerbRead Verb = "read"
	// VerbAwait ends when a dependency holds.
	VerbAwait Verb = "await"
)

// Step is one thing to do.
type Step struct {
	Verb Verb
	// App is whose step it is. Cluster and Resource are empty where the verb is about the app as a whole.
	App, Cluster string
	Resource     Resource
	// sequence is the one of the step.
	sequence *sequence
	// Dependency is what VerbAwait waits for.
	Dependency Dependency
}

// Outcome is how a step ended.
type Outcome int

// The outcomes. A step that got no answer has not ended.
const (
	Acknowledged Outcome = iota
	// Refused holds the sequence of the step: what comes after it there is not begun before Retry.
	Refused
)

// sequence holds steps, of which one at a time is taken.
type sequence struct {
	app   string
	steps []Step
	taken bool
	// refused are the steps that were refused. They are no longer among steps.
	refused []Step
	// pending are the resources that are begun with by the sequence's VerbBegin, and brings is true when they are to be there.
	pending []Resource
	brings  bool
}

func (l *sequence) done() bool { return len(l.steps) == 0 && len(l.refused) == 0 }

// ready reports whether a step may be taken. After one that was refused none may, but for deletions after a deletion.
func (l *sequence) ready() bool {
	return !l.taken && len(l.steps) > 0 && (len(l.refused) == 0 || l.refused[0].Verb == VerbDelete && l.steps[0].Verb == VerbDelete)
}

// add adds a step for each of some resources.
func (l *sequence) add(t Target, verb Verb, resources ...Resource) {
	for _, r := range resources {
		l.steps = append(l.steps, Step{Verb: verb, App: t.App, Cluster: t.Cluster, Resource: r})
	}
}

// begin adds the step that records what is begun with, at a place among the steps, unless it was taken before a restart. What is to be
// there and is needs no record.
func (l *sequence) begin(t Target, at int) {
	begins := false
	for _, s := range l.steps[at:] {
		if r := s.Resource; r.Name != "" && r.Status == "" && s.Verb != VerbHook {
			begins = true
			if !l.brings || !r.There {
				l.pending = append(l.pending, r)
			}
		}
	}
	if begins {
		l.steps = slices.Insert(l.steps, at, Step{Verb: VerbBegin, App: t.App, Cluster: t.Cluster})
	}
}

// resume drops the steps that have ended before a restart. What was refused before it is tried again.
func (l *sequence) resume() *sequence {
	for i := range l.steps {
		l.steps[i].sequence = l
	}
	l.steps = slices.DeleteFunc(l.steps, Step.ended)
	return l
}

// ended reports whether etcd says that a step has ended in the event that is being handled.
func (s Step) ended() bool {
	switch s.Resource.Status {
	case appcontext.ResourceApplied:
		return s.Verb == VerbDefine || s.Verb == VerbApply || s.Verb == VerbHook
	case appcontext.ResourceDeleted:
		return s.Verb == VerbDelete || s.Verb == VerbDeleteHook || s.Verb == VerbHook
	default:
		return false
	}
}

// Progress is what is left of the work of an event. Sequences are independent of each other: what is refused in one cluster
// stops neither the others nor other apps, but for those that depend on it.
type Progress struct {
	// awaits are the sequences of dependencies, and targets those of apps in clusters.
	awaits, targets []*sequence
	dependencies    map[string][]Dependency
}

// Instantiation returns the steps that bring what a plan wants into clusters, without those that are done.
func (p *Plan) Instantiation() *Progress {
	return p.bring(func(t Target) *sequence { return t.instantiation(func(Resource) bool { return false }) })
}

// bring returns the steps that bring apps into their clusters, those of an app in a cluster by steps.
func (p *Plan) bring(steps func(Target) *sequence) *Progress {
	work := &Progress{dependencies: map[string][]Dependency{}}
	for _, a := range p.Apps {
		work.dependencies[a.Name] = a.Dependencies
		for _, d := range a.Dependencies {
			l := &sequence{app: a.Name, steps: []Step{{Verb: VerbAwait, App: a.Name, Dependency: d}}}
			work.awaits = append(work.awaits, l.resume())
		}
		for _, t := range a.Targets {
			work.targets = append(work.targets, steps(t))
		}
	}
	return work
}

// instantiation returns the steps of an app in a cluster, without those for resources that are there. The bundle is made again
// after the pre-install hooks, so that what it says of them is not taken for the app.
func (t Target) instantiation(there func(Resource) bool) *sequence {
	l := &sequence{app: t.App, brings: true}
	step := Step{App: t.App, Cluster: t.Cluster}
	l.add(t, VerbDefine, slices.DeleteFunc(slices.Clone(t.Definitions), there)...)
	started := slices.ContainsFunc(t.Resources, func(r Resource) bool {
		return r.Status == appcontext.ResourceApplied || r.Status == appcontext.ResourceFailed
	})
	if pre := t.Hooks[HookPreInstall]; len(pre) > 0 && !started {
		l.steps = append(l.steps, step.as(VerbApplyHookBundle))
		l.add(t, VerbHook, pre...)
		l.steps = append(l.steps, step.as(VerbDeleteBundle))
	}
	if len(t.Resources) == 0 || slices.ContainsFunc(t.Resources, func(r Resource) bool { return r.Status != appcontext.ResourceApplied }) {
		l.steps = append(l.steps, step.as(VerbApplyBundle))
	}
	l.add(t, VerbApply, slices.DeleteFunc(slices.Clone(t.Resources), there)...)
	l.add(t, VerbHook, t.Hooks[HookPostInstall]...)
	l.begin(t, 0)
	return l.resume()
}

// as returns a step with another verb.
func (s Step) as(verb Verb) Step {
	s.Verb = verb
	return s
}

// Termination returns the steps that delete what a plan wants, in its DeletionOrder, without those that are done. CRDs stay:
// with them, the custom resources of all applications would go. What another context of the deployment has that is to be
// there stays too. The bundle goes last, and stays where something else does.
func (p *Plan) Termination() *Progress {
	if p.OnlyRead {
		return &Progress{}
	}
	return p.remove(func(t Target) Target { return t })
}

// remove returns the steps that delete apps from their clusters.
func (p *Plan) remove(of func(Target) Target) *Progress {
	work := &Progress{}
	for _, a := range p.Apps {
		for _, t := range a.Targets {
			if l := of(t).termination(p.DeletionOrder, p.kept[place{t.App, t.Cluster}]); len(l.steps) > 0 {
				work.targets = append(work.targets, l)
			}
		}
	}
	return work
}

// termination returns the steps of an app in a cluster. A deletion that is refused does not keep the others from being
// deleted; a pre-delete hook that fails does.
func (t Target) termination(order configv1alpha1.DeletionOrder, kept []string) *sequence {
	l := &sequence{app: t.App}
	resources := slices.Backward(t.Resources)
	if order == configv1alpha1.DeletionListed {
		resources = slices.All(t.Resources)
	}
	deletes := func(verb Verb, resources iter.Seq2[int, Resource]) {
		for _, r := range resources {
			if !slices.Contains(kept, r.Name) {
				l.add(t, verb, r)
			}
		}
	}
	l.add(t, VerbHook, t.Hooks[HookPreDelete]...)
	deletes(VerbDelete, resources)
	l.add(t, VerbHook, t.Hooks[HookPostDelete]...)
	for _, hook := range hooks {
		deletes(VerbDeleteHook, slices.All(t.Hooks[hook]))
	}
	if len(kept) == 0 {
		l.steps = append(l.steps, Step{Verb: VerbDeleteBundle, App: t.App, Cluster: t.Cluster})
	}
	l.begin(t, len(t.Hooks[HookPreDelete]))
	return l.resume()
}

// Take returns the steps that may begin now. Each is returned once; Complete says that it has ended.
func (w *Progress) Take() []Step {
	var steps []Step
	take := func(l *sequence) {
		l.taken = true
		steps = append(steps, l.steps[0])
	}
	for _, l := range w.awaits {
		if l.ready() && w.applied(l.steps[0].Dependency.App) {
			take(l)
		}
	}
	for _, l := range w.targets {
		if l.ready() && w.met(l.app) {
			take(l)
		}
	}
	return steps
}

// applied reports whether an app is applied in all its clusters.
func (w *Progress) applied(app string) bool {
	return !slices.ContainsFunc(w.targets, func(l *sequence) bool { return l.app == app && !l.done() })
}

// met reports whether all dependencies of an app hold.
func (w *Progress) met(app string) bool {
	return !slices.ContainsFunc(w.awaits, func(l *sequence) bool { return l.app == app && !l.done() })
}

// Complete says that a step has ended.
func (w *Progress) Complete(s Step, outcome Outcome) {
	l := s.sequence
	l.taken, l.steps = false, l.steps[1:]
	if outcome == Refused {
		s.Resource.Status = appcontext.ResourceFailed
		l.refused = append(l.refused, s)
	}
}

// Refused reports whether steps were refused.
func (w *Progress) Refused() bool {
	return slices.ContainsFunc(w.targets, func(l *sequence) bool { return len(l.refused) > 0 })
}

// Retry has the steps taken again that were refused, and then what comes after them.
func (w *Progress) Retry() {
	for _, l := range w.targets {
		if !l.taken {
			l.steps, l.refused = slices.Concat(l.refused, l.steps), nil
		}
	}
}

// Done reports whether every step has been acknowledged.
func (w *Progress) Done() bool {
	return !slices.ContainsFunc(slices.Concat(w.awaits, w.targets), func(l *sequence) bool { return !l.done() })
}
