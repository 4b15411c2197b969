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
	// VerbBegin records that the work of an app in a cluster begins: the status of its resources is unknown until they are applied
	// or deleted. Without that, etcd would hold an outdated status if the program is killed after a request.
	VerbBegin Verb = "begin"
	// VerbApplyBundle applies the ResourceBundleState of an app in a cluster, and VerbDeleteBundle deletes it.
	VerbApplyBundle  Verb = "apply bundle"
	VerbDeleteBundle Verb = "delete bundle"
	// VerbApplyHookBundle applies it for the pre-install hooks, with the label that says so.
	VerbApplyHookBundle Verb = "apply bundle of hooks"
	// VerbHook applies an object of a hook, and ends when the object has done its work. VerbDeleteHook deletes it.
	VerbHook       Verb = "run hook"
	VerbDeleteHook Verb = "delete hook"
	// VerbDefine creates a CRD unless it exists, and ends when its kind is served.
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
	// App is the app of the step. Cluster and Resource are empty where the verb is about the app as a whole.
	App, Cluster string
	Resource     Resource
	// sequence is the sequence that the step belongs to.
	sequence *sequence
	// Dependency is what VerbAwait waits for.
	Dependency Dependency
}

// Outcome is what came of a step.
type Outcome int

// The outcomes.
const (
	// Acknowledged means that the API server has carried out the request.
	Acknowledged Outcome = iota
	// Refused means that the API server, or rsync because of the context, does not allow the request. A retry is refused too, unless
	// something has changed. It blocks the sequence of the step: its later steps do not begin before Retry.
	Refused
	// Unanswered means that there is no definite answer, so the step has not ended and is retried.
	Unanswered
)

// String returns the outcome as a value of the label of metrics.
func (o Outcome) String() string { return [...]string{"acknowledged", "refused", "unanswered"}[o] }

// sequence holds steps of an app, which are taken one at a time.
type sequence struct {
	app        string
	steps      []Step
	inProgress bool
	// refused are the steps that were refused. They are no longer among steps.
	refused []Step
	// pending are the resources that the sequence's VerbBegin sets to Pending. applies is true when the sequence applies them.
	pending []Resource
	applies bool
}

func (seq *sequence) done() bool { return len(seq.steps) == 0 && len(seq.refused) == 0 }

// ready reports whether a step may be taken. After one that was refused none may, but for deletions after a deletion.
func (seq *sequence) ready() bool {
	return !seq.inProgress && len(seq.steps) > 0 && (len(seq.refused) == 0 || seq.refused[0].Verb == VerbDelete && seq.steps[0].Verb == VerbDelete)
}

// add adds a step for each of some resources; one about the app as a whole has the zero Resource.
func (seq *sequence) add(t Target, verb Verb, resources ...Resource) {
	for _, r := range resources {
		seq.steps = append(seq.steps, Step{Verb: verb, App: t.App, Cluster: t.Cluster, Resource: r})
	}
}

// begin inserts a VerbBegin at an index of the steps, unless one was taken before a restart. Resources that are to be applied and
// are already there need none.
func (seq *sequence) begin(t Target, at int) {
	begins := false
	for _, s := range seq.steps[at:] {
		if r := s.Resource; r.Name != "" && r.Status == "" && s.Verb != VerbHook {
			begins = true
			if !seq.applies || !r.UpToDate {
				seq.pending = append(seq.pending, r)
			}
		}
	}
	if begins {
		seq.steps = slices.Insert(seq.steps, at, Step{Verb: VerbBegin, App: t.App, Cluster: t.Cluster})
	}
}

// resume drops the steps that ended before a restart. Steps that were refused before it are tried again.
func (seq *sequence) resume() *sequence {
	for i := range seq.steps {
		seq.steps[i].sequence = seq
	}
	seq.steps = slices.DeleteFunc(seq.steps, Step.ended)
	return seq
}

// ended reports whether a step has ended in the current event, according to etcd.
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

// Progress is the remaining work of an event. Its sequences are independent of each other: a refusal in one cluster stops neither
// other clusters nor other apps, except those that depend on it.
type Progress struct {
	// awaits are the sequences that wait for dependencies, and targets those of apps in clusters.
	awaits, targets []*sequence
}

// Instantiation returns the steps that apply a plan, without those that are done.
func (p *Plan) Instantiation() *Progress { return p.applyProgress(p.Targets()) }

// Update returns the steps that apply a plan to clusters where the previous context is deployed, without those that are done
// and those for resources that are already as desired. It runs no hooks, like EMCO's update.
func (p *Plan) Update() *Progress {
	applied, _ := p.Updated()
	return p.applyProgress(applied)
}

func (p *Plan) applyProgress(targets []Target) *Progress {
	progress := &Progress{}
	for _, a := range p.Apps {
		for _, d := range a.Dependencies {
			seq := &sequence{app: a.Name, steps: []Step{{Verb: VerbAwait, App: a.Name, Dependency: d}}}
			progress.awaits = append(progress.awaits, seq.resume())
		}
	}
	for _, t := range targets {
		progress.targets = append(progress.targets, t.instantiation())
	}
	return progress
}

// instantiation returns the steps that apply an app to a cluster. The bundle is recreated after the pre-install hooks, so that
// their status is not mistaken for the app's.
func (t Target) instantiation() *sequence {
	seq := &sequence{app: t.App, applies: true}
	seq.add(t, VerbDefine, t.Definitions...)
	started := slices.ContainsFunc(t.Resources, func(r Resource) bool {
		return r.Status == appcontext.ResourceApplied || r.Status == appcontext.ResourceFailed
	})
	if pre := t.Hooks[HookPreInstall]; len(pre) > 0 && !started {
		seq.add(t, VerbApplyHookBundle, Resource{})
		seq.add(t, VerbHook, pre...)
		seq.add(t, VerbDeleteBundle, Resource{})
	}
	if len(t.Resources) == 0 || slices.ContainsFunc(t.Resources, func(r Resource) bool { return r.Status != appcontext.ResourceApplied }) {
		seq.add(t, VerbApplyBundle, Resource{})
	}
	seq.add(t, VerbApply, t.Resources...)
	seq.add(t, VerbHook, t.Hooks[HookPostInstall]...)
	seq.begin(t, 0)
	return seq.resume()
}

// Termination returns the steps that delete the resources of a plan, in its DeletionOrder, without those that are done. CRDs
// stay: deleting them would delete the custom resources of all applications. Resources of other wanted contexts of the
// deployment stay too. The bundle is deleted last, and only where no other wanted context has resources.
func (p *Plan) Termination() *Progress {
	if p.OnlyRead {
		return &Progress{}
	}
	return p.deleteProgress(p.Targets())
}

// Removal returns the steps that delete the resources of a plan that no other wanted context of the deployment has. It runs no
// hooks. The bundle of an app is deleted with its last resource in a cluster.
func (p *Plan) Removal() *Progress { return p.deleteProgress(p.Removed()) }

func (p *Plan) deleteProgress(targets []Target) *Progress {
	progress := &Progress{}
	for _, t := range targets {
		if seq := t.termination(p.DeletionOrder); len(seq.steps) > 0 {
			progress.targets = append(progress.targets, seq)
		}
	}
	return progress
}

// termination returns the steps of an app in a cluster. A refused deletion does not block the others; a failed
// pre-delete hook does.
func (t Target) termination(order configv1alpha1.DeletionOrder) *sequence {
	seq := &sequence{app: t.App}
	resources := slices.Backward(t.Resources)
	if order == configv1alpha1.DeletionListed {
		resources = slices.All(t.Resources)
	}
	deletes := func(verb Verb, resources iter.Seq2[int, Resource]) {
		for _, r := range resources {
			if !slices.Contains(t.retained, r.Name) {
				seq.add(t, verb, r)
			}
		}
	}
	seq.add(t, VerbHook, t.Hooks[HookPreDelete]...)
	deletes(VerbDelete, resources)
	seq.add(t, VerbHook, t.Hooks[HookPostDelete]...)
	for _, hook := range hooks {
		deletes(VerbDeleteHook, slices.All(t.Hooks[hook]))
	}
	if len(t.retained) == 0 {
		seq.add(t, VerbDeleteBundle, Resource{})
	}
	seq.begin(t, len(t.Hooks[HookPreDelete]))
	return seq.resume()
}

// Reading returns the steps that read the objects that a context names. They are independent of each other, so that a missing
// object does not block the others. After a restart, all are read again.
func (p *Plan) Reading() *Progress {
	progress := &Progress{}
	for _, t := range p.Targets() {
		for _, r := range slices.Concat(t.Definitions, t.Resources) {
			seq := &sequence{app: t.App}
			seq.add(t, VerbRead, r)
			progress.targets = append(progress.targets, seq.resume())
		}
	}
	return progress
}

// Take returns the steps that may begin now. It returns each step once; the caller reports its end with Complete.
func (p *Progress) Take() []Step {
	var steps []Step
	take := func(seq *sequence) {
		seq.inProgress = true
		steps = append(steps, seq.steps[0])
	}
	for _, seq := range p.awaits {
		if seq.ready() && !remains(p.targets, seq.steps[0].Dependency.App) {
			take(seq)
		}
	}
	for _, seq := range p.targets {
		if seq.ready() && !remains(p.awaits, seq.app) {
			take(seq)
		}
	}
	return steps
}

// remains reports whether one of some sequences is of an app and not done.
func remains(sequences []*sequence, app string) bool {
	return slices.ContainsFunc(sequences, func(seq *sequence) bool { return seq.app == app && !seq.done() })
}

// Complete records that a step has ended.
func (p *Progress) Complete(s Step, outcome Outcome) {
	seq := s.sequence
	seq.inProgress, seq.steps = false, seq.steps[1:]
	if outcome == Refused {
		s.Resource.Status = appcontext.ResourceFailed
		seq.refused = append(seq.refused, s)
	}
}

// Refused reports whether steps were refused.
func (p *Progress) Refused() bool {
	return slices.ContainsFunc(p.targets, func(seq *sequence) bool { return len(seq.refused) > 0 })
}

// Retry makes Take return the refused steps again, and then the steps after them.
func (p *Progress) Retry() {
	for _, seq := range p.targets {
		if !seq.inProgress {
			seq.steps, seq.refused = slices.Concat(seq.refused, seq.steps), nil
		}
	}
}

// Done reports whether every step has been acknowledged.
func (p *Progress) Done() bool {
	return !slices.ContainsFunc(slices.Concat(p.awaits, p.targets), func(seq *sequence) bool { return !seq.done() })
}
