package healthscope

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Member is a Result that Judge has processed.
type Member struct {
	Result
	// Owned is true when the object's controller is among the same results. An owned object is listed and explains its owner, but does not count.
	Owned bool
	// Counts is the state the member counts as: Ready, Pending, Failed or Unknown.
	Counts State
	// StoppedServing is when an object that had served while it was Pending was first seen not to serve. PendingTimeout
	// counts from then on. It is zero for other objects, and when the history is not known (Policy.WithHistory).
	StoppedServing time.Time
	// LastState is the last known state of a member that cannot be read any more (MarkUnreachable). It is empty for all others.
	LastState State
	// Cause names the root cause of the state, such as a pod that crashes: "Pod <name>: <why>". It is one line of
	// at most 256 bytes, and empty when the member's own reason and message are sufficient.
	Cause string
}

// Judgement is the outcome of Judge for a set of results.
type Judgement struct {
	// Members has one entry for each object, sorted by key.
	Members []Member
	// NextCheck is the earliest time at which a member changes over time alone. It is after the time of the judgement. The zero value means never.
	NextCheck time.Time
}

// Judge adds owners, time and policy to the raw results of one bundle, or of
// one object that is not in a bundle.
//
// A pod, ReplicaSet or Job whose controller is among the results is owned.
// Objects of other kinds always count on their own: the health of the operator
// that created a Deployment is not the health of the Deployment.
//
// A workload that is not Ready is Failed when none of its pods is ready, also by its
// own count, and one of them is Failed; otherwise it keeps its state. The pods of a
// Job are an exception, regardless of the Job's owner: a Job reports its own failure,
// and retries after pods that fail. The cause of a workload that is not Ready is the
// worst object below it, the deepest of equal ones. For a pod of a StatefulSet that
// waits for a volume, the cause includes the state of the claim.
//
// Pending becomes Failed after the progress deadline of the workload, or else of the
// policy. This does not apply while all desired replicas serve, to a Job without a
// deadline, which may run indefinitely, and to a Deployment whose rollout Kubernetes
// itself times. The time starts again when the object progresses and when it stops
// serving. Pods have the deadline of their workload; the pods of a Job have none.
// NotPresent counts as Pending until the grace period of the policy ends, and as
// Failed after it. An object without a status is Pending for its grace period. The
// policy may delay the beginning and the end of a failure, which requires the history
// of Policy.WithHistory.
//
// A since in the future counts as now.
//
// The order of the results makes no difference. Of several results for one
// object the worst one counts.
func Judge(results []Result, policy Policy, now time.Time) Judgement {
	j := judgeState{policy: policy, now: now}
	j.collect(results)
	j.linkOwners()
	for i := range j.members {
		j.applyTimeLimits(&j.members[i], j.pendingLimit(i))
		if j.links[i].root != i {
			j.applyRecoveryHold(&j.members[i])
			j.updateRootCause(i)
		}
	}
	for i := range j.members {
		m := &j.members[i]
		if j.links[i].root == i {
			j.applyRootCause(i)
			j.applyRecoveryHold(m)
		}
		m.Counts = j.countsAs(m)
		m.History = nil
	}
	return Judgement{Members: j.members, NextCheck: j.nextCheck}
}

// judgeState is the working state of Judge.
type judgeState struct {
	policy  Policy
	now     time.Time
	members []Member
	// links has one entry for each member.
	links     []link
	nextCheck time.Time
}

// link describes the owners and the owned objects of a member, by their indexes.
type link struct {
	// parent is the owner, and root the topmost owner; both are the member itself when it is not owned.
	parent, root int
	// depth is how far the member is below its root.
	depth int
	// worstOwned is, for a root, the worst object below it that is not healthy; -1 when there is none.
	worstOwned int
	// failedPod is, for a root, the worst pod below it that is Failed and does not belong to a Job; -1 when there is none.
	failedPod int
	// ofJob is true for a member below a Job.
	ofJob bool
	// podReady is true for a root with a ready pod below it.
	podReady bool
}

// collect copies the results in the order of their keys, each object once.
func (j *judgeState) collect(results []Result) {
	j.members = make([]Member, 0, len(results))
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

// linkOwners links owned members to their direct and topmost owners.
func (j *judgeState) linkOwners() {
	j.links = make([]link, len(j.members))
	for i := range j.members {
		m := &j.members[i]
		j.links[i] = link{parent: i, root: i, worstOwned: -1, failedPod: -1}
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
		l.root, l.depth = j.rootOf(i)
		j.members[i].Owned = l.root != i
		for at := i; at != l.root && !l.ofJob; {
			at = j.links[at].parent
			l.ofJob = isJob(&j.members[at].Key)
		}
	}
}

// maxDepth bounds the chain of owners. A pod of a CronJob is two steps below it; the bound protects against a bundle that was made to cost time.
const maxDepth = 8

// rootOf returns the topmost owner of a member and the number of steps to it. Objects that own each other in a cycle have no topmost owner: each is its own root.
func (j *judgeState) rootOf(i int) (root, depth int) {
	root = i
	for depth := range maxDepth + 1 {
		if j.links[root].parent == root {
			return root, depth
		}
		root = j.links[root].parent
	}
	return i, 0
}

// compareResults sorts results by key, and results for the same object by
// precedence: the worse state first, then the one with an owner, then the one with
// the earliest since. The remaining fields make the order total.
func compareResults(a, b *Result) int {
	if c := compareKeys(&a.Key, &b.Key); c != 0 {
		return c
	}
	c := cmp.Or(CompareStates(a.State, b.State), trueFirst(a.Owner != nil, b.Owner != nil), trueFirst(!a.Since.IsZero(), !b.Since.IsZero()),
		a.Since.Compare(b.Since), strings.Compare(string(a.Reason), string(b.Reason)), strings.Compare(a.Message, b.Message))
	if c != 0 {
		return c
	}
	x, errX := json.Marshal(*a) // Of copies: results then need not be on the heap.
	y, errY := json.Marshal(*b)
	if errX != nil || errY != nil {
		return 0 // A time that has no JSON form, which Result.Clean removes.
	}
	return bytes.Compare(x, y)
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

// pendingLimit returns how long member i may be Pending; zero means indefinitely. A Job
// reports itself when it or its pods have taken too long, and has a limit only when it
// is given a deadline. Kubernetes reports this for a Deployment whose rollout it times.
func (j *judgeState) pendingLimit(i int) time.Duration {
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
