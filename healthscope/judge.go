package healthscope

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Member is a Result after Judge has seen it.
type Member struct {
	Result
	// Owned is true when the object's controller is among the same results. An owned object is listed and explains its owner, but does not count.
	Owned bool
	// Counts is the state the member counts as: Ready, Pending, Failed or Unknown.
	Counts State
	// StoppedServing is when the object was first seen not to serve, after it had served while it was Pending. From then on
	// PendingTimeout counts. It is zero where this is not so, or not remembered (Policy.WithHistory).
	StoppedServing time.Time
	// LastState is the state that was known last of a member that cannot be seen any more (Lost), and empty for all others.
	LastState State
	// Cause names what is at the bottom of the state, such as a pod that crashes: "Pod <name>: <why>". It is one line of
	// at most 256 bytes, and empty when the member itself says it all.
	Cause string
}

// Judgement is what a set of results comes to.
type Judgement struct {
	// Members has one entry for each object, sorted by key.
	Members []Member
	// NextCheck is when a member's state will change if nothing else does. It is after the time of the judgement. The zero value means never.
	NextCheck time.Time
}

// Judge adds owners, time and policy to the raw results of one bundle, or of
// one object that is not in a bundle.
//
// A pod, ReplicaSet or Job whose controller is among the results is owned.
// Objects of other kinds count by themselves regardless of who made them: the operator
// that made a Deployment does not speak for its health.
//
// A workload that is not Ready is Failed when none of its pods is ready, by its
// own count too, and one of them is Failed; otherwise it keeps its state. The pods
// of a Job are an exception, regardless of who made the Job: it has its own word for failure,
// and pods that fail before it does are its normal way of trying again. The cause of a workload that is not Ready is the worst object
// below it, the deepest of equal ones; a pod of a StatefulSet that waits for a
// volume passes on what its claim says.
//
// Pending turns to Failed after the workload's own progress deadline, or else
// the policy's, unless all that is wanted is serving, and except for a Job, which
// may run as long as it takes, and a Deployment whose rollout Kubernetes itself watches. The
// time begins again when the object is seen to get further, and to stop serving. An object's pods have its deadline, and those of a Job none. NotPresent
// counts as Pending for a while, and as Failed after. An object without status is
// Pending for a while. A failure begins late, and ends late, when the policy says
// so; what was said of an object before comes in by Policy.WithHistory.
//
// A since in the future counts as now.
//
// The order of the results makes no difference. Of several results for one
// object the worst one counts.
func Judge(results []Result, policy Policy, now time.Time) Judgement {
	j := judging{policy: policy, now: now}
	j.collect(results)
	j.link()
	for i := range j.members {
		j.settle(&j.members[i], j.limit(i))
		if j.links[i].root != i {
			j.hold(&j.members[i])
			j.consider(i)
		}
	}
	for i := range j.members {
		m := &j.members[i]
		if j.links[i].root == i {
			j.explain(i)
			j.hold(m)
		}
		m.Counts = j.countsAs(m)
		m.History = nil
	}
	return Judgement{Members: j.members, NextCheck: j.next}
}

// judging is the working state of Judge.
type judging struct {
	policy  Policy
	now     time.Time
	members []Member
	// links has one entry for each member.
	links []link
	next  time.Time
}

// link says where a member stands among the others, all by index.
type link struct {
	// parent is the owner, and root the topmost one; the member itself when it is not owned.
	parent, root int
	// depth is how far the member is below its root.
	depth int
	// worst is, for a root, the worst object below it that is not right; -1 when there is none.
	worst int
	// crashed is, for a root, the worst pod below it that has failed and is not of a Job; -1 when there is none.
	crashed int
	// ofJob is true for what is below a Job.
	ofJob bool
	// podReady is true for a root that has a pod that is ready.
	podReady bool
}

// collect copies the results in the order of their keys, each object once.
func (j *judging) collect(results []Result) {
	j.members = make([]Member, 0, len(results))
	if inOrder(results) {
		for i := range results {
			j.members = append(j.members, Member{Result: results[i]})
		}
		return
	}
	order := make([]int, len(results))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compareResults(&results[a], &results[b]) })
	for _, i := range order {
		if n := len(j.members); n == 0 || j.members[n-1].Key != results[i].Key {
			j.members = append(j.members, Member{Result: results[i]})
		}
	}
}

// inOrder reports whether results are sorted by key, each object once. Those of bundles are.
func inOrder(results []Result) bool {
	for i := 1; i < len(results); i++ {
		if compareKeys(&results[i-1].Key, &results[i].Key) >= 0 {
			return false
		}
	}
	return true
}

// link links owned members to their owners, and to the owners of these.
func (j *judging) link() {
	j.links = make([]link, len(j.members))
	for i := range j.members {
		m := &j.members[i]
		j.links[i] = link{parent: i, root: i, worst: -1, crashed: -1}
		if m.Owner == nil || !ownable(&m.Key) {
			continue
		}
		key := Key{Cluster: m.Cluster, Group: m.Owner.Group, Kind: m.Owner.Kind, Namespace: m.Namespace, Name: m.Owner.Name}
		if p, ok := find(j.members, &key); ok {
			j.links[i].parent = p
		}
	}
	for i := range j.links {
		l := &j.links[i]
		l.root, l.depth = j.top(i)
		j.members[i].Owned = l.root != i
		for at := i; at != l.root && !l.ofJob; {
			at = j.links[at].parent
			l.ofJob = isJob(&j.members[at].Key)
		}
	}
}

// maxDepth is how far an object can be below its root. A pod of a CronJob is two below it, and no bundle that was made to cost time gets further.
const maxDepth = 8

// top follows owners upwards, and says how far that is. Objects that own each other in a circle have no top: each is its own.
func (j *judging) top(i int) (root, depth int) {
	root = i
	for depth := range maxDepth + 1 {
		if j.links[root].parent == root {
			return root, depth
		}
		root = j.links[root].parent
	}
	return i, 0
}

// compareResults sorts results by key, and those for one object by how much
// they tell: the worse state first, then the one that knows its owner, then the one
// that knows for longest. The rest makes the order complete.
func compareResults(a, b *Result) int {
	if c := compareKeys(&a.Key, &b.Key); c != 0 {
		return c
	}
	c := cmp.Or(CompareStates(a.State, b.State), trueFirst(a.Owner != nil, b.Owner != nil), trueFirst(!a.Since.IsZero(), !b.Since.IsZero()),
		a.Since.Compare(b.Since), strings.Compare(string(a.Reason), string(b.Reason)), strings.Compare(a.Message, b.Message))
	if c != 0 {
		return c
	}
	return strings.Compare(rest(a), rest(b))
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
func rest(r *Result) string {
	var owner Owner
	if r.Owner != nil {
		owner = *r.Owner
	}
	var replicas Replicas
	if r.Replicas != nil {
		replicas = *r.Replicas
	}
	var history History
	if r.History != nil {
		history = *r.History
	}
	var progress Progress
	if r.Progress != nil {
		progress = *r.Progress
	}
	return fmt.Sprintf("%q%q%v%v%v%q%q%v%v%v%#v%v%v%v%v", r.Version, r.UID, r.Serving, r.Suspended, r.Warning, owner, r.Labels,
		replicas, r.Replicas == nil, r.ProgressDeadline, history, r.History == nil,
		r.Timed, progress, r.Progress == nil)
}

// limit returns how long member i may be Pending; zero means indefinitely. A Job
// says itself when it has taken too long, and when its pods have, unless it is given a deadline; Kubernetes says so of a
// Deployment whose rollout it watches.
func (j *judging) limit(i int) time.Duration {
	m, root := &j.members[i], &j.members[j.links[i].root]
	switch {
	case isJob(&m.Key):
		return m.ProgressDeadline
	case j.links[i].ofJob, m.Timed, root.Timed && !isPod(&m.Key):
		return 0
	}
	return cmp.Or(m.ProgressDeadline, root.ProgressDeadline, j.policy.PendingTimeout)
}

// ownable reports whether an object of a kind can be owned.
func ownable(k *Key) bool {
	return isPod(k) || isJob(k) || k.Kind == "ReplicaSet" && (k.Group == "apps" || k.Group == "extensions")
}

// isPod reports whether a key is that of a Pod.
func isPod(k *Key) bool { return k.Group == "" && k.Kind == "Pod" }

// isJob reports whether a key is that of a Job.
func isJob(k *Key) bool { return k.Group == "batch" && k.Kind == "Job" }
