package healthscope

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Member is a Result after Judge has seen it.
type Member struct {
	Result
	// Owned is true when the object's controller is among the same results. An owned object is listed and explains its owner, but does not count.
	Owned bool
	// Counts is the state the member counts as: Ready, Pending, Failed or Unknown.
	Counts State
	// Cause names what is behind the state, such as a pod that crashes: "Pod <name>: <why>". It is empty when the member itself says it all.
	Cause string
}

// Verdict is the judgement on a set of results.
type Verdict struct {
	// Members has one entry for each object, sorted by key.
	Members []Member
	// NextCheck is when a member's state will change if nothing else does. The zero value means never.
	NextCheck time.Time
}

// Judge adds owners, time and policy to the raw results of one bundle, or of
// one object that is not in a bundle.
//
// A pod, ReplicaSet or Job whose controller is among the results is owned.
// Objects of other kinds count by themselves whoever made them: the operator
// that made a Deployment does not speak for its health.
//
// A workload that is not Ready is Failed when none of its pods is ready and one
// of them is Failed; otherwise it keeps its state, and its worst pod is the
// cause. A Job is an exception: it has its own word for failure, and pods that
// fail before it does are its normal way of trying again.
//
// Pending turns to Failed after the workload's own progress deadline, or else
// the policy's, unless all that is wanted is serving, and except for a Job, which
// may run as long as it takes. An object's pods have its deadline. NotPresent
// counts as Pending for a while, and as Failed after.
//
// The order of the results makes no difference. Of several results for one
// object the worst one counts.
func Judge(results []Result, policy Policy, now time.Time) Verdict {
	j := judgement{policy: policy, now: now}
	j.collect(results)
	for i := range j.members {
		j.applyTime(&j.members[i], j.deadline(i))
	}
	for i := range j.members {
		if len(j.pods[i]) > 0 {
			j.applyPods(i)
		}
	}
	for i := range j.members {
		j.members[i].Counts = j.countsAs(&j.members[i])
	}
	return Verdict{Members: j.members, NextCheck: j.next}
}

// Until returns how long it is from now to a verdict's next check, at least a
// millisecond, so that a moment that has just passed is not taken for never. It is zero when there is none.
func Until(nextCheck, now time.Time) time.Duration {
	if nextCheck.IsZero() {
		return 0
	}
	return max(nextCheck.Sub(now), time.Millisecond)
}

// judgement is the working state of Judge.
type judgement struct {
	policy  Policy
	now     time.Time
	members []Member
	// root is, for each member, the index of the topmost owner among the members; its own index when it is not owned.
	root []int
	// pods are, for each root, the pods below it.
	pods map[int][]int
	next time.Time
}

// collect sorts the results, drops repeated ones and links owners.
func (j *judgement) collect(results []Result) {
	sorted := slices.Clone(results)
	slices.SortFunc(sorted, compareResults)
	sorted = slices.CompactFunc(sorted, func(a, b Result) bool { return a.Key == b.Key })
	index := make(map[Key]int, len(sorted))
	j.members = make([]Member, len(sorted))
	for i, r := range sorted {
		j.members[i] = Member{Result: r}
		index[r.Key] = i
	}
	parent := make([]int, len(sorted))
	for i, r := range sorted {
		parent[i] = i
		if r.Owner == nil || !ownable(r.Key) {
			continue
		}
		key := Key{Cluster: r.Cluster, Group: r.Owner.Group, Kind: r.Owner.Kind, Namespace: r.Namespace, Name: r.Owner.Name}
		if p, ok := index[key]; ok && p != i {
			parent[i] = p
		}
	}
	j.root = make([]int, len(sorted))
	j.pods = map[int][]int{}
	for i := range sorted {
		j.root[i] = top(parent, i)
		if j.root[i] == i {
			continue
		}
		j.members[i].Owned = true
		if isPod(sorted[i].Key) {
			j.pods[j.root[i]] = append(j.pods[j.root[i]], i)
		}
	}
}

// compareResults sorts results by key, and those for one object by how much
// they tell: the worse state first, then the one that knows its owner, then the one
// that knows for longest. The rest makes the order complete.
func compareResults(a, b Result) int {
	if c := a.Compare(b.Key); c != 0 {
		return c
	}
	return cmp.Or(CompareStates(a.State, b.State), trueFirst(a.Owner != nil, b.Owner != nil), trueFirst(!a.Since.IsZero(), !b.Since.IsZero()),
		a.Since.Compare(b.Since), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message), cmp.Compare(rest(a), rest(b)))
}

// trueFirst sorts true before false.
func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// rest puts those fields of a result by which it is not sorted otherwise into one word.
func rest(r Result) string {
	var owner Owner
	if r.Owner != nil {
		owner = *r.Owner
	}
	var replicas Replicas
	if r.Replicas != nil {
		replicas = *r.Replicas
	}
	return fmt.Sprintf("%q%q%v%v%v%v%q%q%v%v%v", r.Version, r.UID, r.Progressing, r.Serving, r.Suspended, r.Warning, owner, r.Labels, replicas, r.Replicas == nil, r.ProgressDeadline)
}

// ownable says whether an object of a kind can be owned.
func ownable(k Key) bool {
	return isPod(k) || isJob(k) || k.Kind == "ReplicaSet" && (k.Group == "apps" || k.Group == "extensions")
}

// top follows owners upwards. Objects that own each other in a circle have no top: each is its own.
func top(parent []int, i int) int {
	at := i
	for range parent {
		if parent[at] == at {
			return at
		}
		at = parent[at]
	}
	return i
}

// deadline returns how long member i may be Pending; zero means for ever. A Job
// says itself when it has taken too long.
func (j *judgement) deadline(i int) time.Duration {
	if isJob(j.members[i].Key) {
		return 0
	}
	return cmp.Or(j.members[i].ProgressDeadline, j.members[j.root[i]].ProgressDeadline, j.policy.PendingTimeout)
}

// applyTime turns Pending that lasts too long into Failed, and Failed that is too young into Pending.
func (j *judgement) applyTime(m *Member, deadline time.Duration) {
	if m.Since.IsZero() {
		return
	}
	switch {
	case m.State == Pending && !m.Serving && deadline > 0:
		at := m.Since.Add(deadline)
		if j.later(at) {
			return
		}
		m.Message = fmt.Sprintf("Pending for more than %s: %s", deadline, cmp.Or(m.Message, string(m.Reason), "no reason given"))
		m.State, m.Reason, m.Since = Failed, ReasonPendingTimeout, at
	case m.State == Failed && j.policy.FailureGrace > 0:
		if j.later(m.Since.Add(j.policy.FailureGrace)) {
			m.State = Pending
		}
	}
}

// later says whether t is still to come, and if so remembers it as a time to look again.
func (j *judgement) later(t time.Time) bool {
	if !t.After(j.now) {
		return false
	}
	if j.next.IsZero() || t.Before(j.next) {
		j.next = t
	}
	return true
}

// applyPods gives a workload the worst of its pods as cause, and its failure when no pod is left that works.
func (j *judgement) applyPods(root int) {
	w := &j.members[root]
	if w.State == Ready || w.State == Terminating {
		return
	}
	pod, ready := j.worstPod(root)
	if pod == nil {
		return
	}
	w.Cause = causeOf(pod.Result)
	if pod.State == Failed && !ready && w.State == Pending && !w.Serving && !isJob(w.Key) {
		w.State, w.Reason, w.Message = Failed, pod.Reason, pod.Message
		if pod.Since.After(w.Since) {
			w.Since = pod.Since
		}
	}
}

// worstPod returns the worst pod of a workload that is neither ready nor on its way out, nil when there is none, and whether another pod is ready.
func (j *judgement) worstPod(root int) (worst *Member, ready bool) {
	for _, i := range j.pods[root] {
		p := &j.members[i]
		switch {
		case p.State == Ready:
			ready = ready || p.Reason != ReasonCompleted
		case p.State == Terminating:
		case worst == nil || worse(*p, *worst):
			worst = p
		}
	}
	return worst, ready
}

// worse orders pods: the worse state, then the older one, then the name.
func worse(a, b Member) bool {
	return cmp.Or(CompareStates(a.State, b.State), a.Since.Compare(b.Since), a.Compare(b.Key)) < 0
}

// causeOf puts a result into one line.
func causeOf(r Result) string {
	why := cmp.Or(r.Message, string(r.Reason), string(r.State))
	return fmt.Sprintf("%s %s: %s", r.Kind, r.Name, why)
}

// countsAs returns the state a member counts as.
func (j *judgement) countsAs(m *Member) State {
	switch m.State {
	case Ready, Pending, Failed:
		return m.State
	case Terminating:
		return Pending
	case NotPresent:
		if m.Since.IsZero() || j.later(m.Since.Add(j.policy.NotPresentGrace)) {
			return Pending
		}
		return Failed
	case Unknown:
	}
	return Unknown
}

// isPod says whether a key is that of a Pod.
func isPod(k Key) bool { return k.Group == "" && k.Kind == "Pod" }

// isJob says whether a key is that of a Job.
func isJob(k Key) bool { return k.Group == "batch" && k.Kind == "Job" }
