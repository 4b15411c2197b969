package healthscope

import (
	"cmp"
	"fmt"
	"strings"
)

// maxLine bounds a line that Judge writes, in bytes. Messages of rules have the same bound, but messages in bundles may come from any program.
const maxLine = 256

// updateRootCause records an owned object that is not healthy as the cause of the state of its root, if it is the worst so far.
func (j *judgeState) updateRootCause(i int) {
	m := &j.members[i]
	root := &j.links[j.links[i].root]
	if m.State == Ready && isPod(&m.Key) && m.Reason != ReasonCompleted {
		root.podReady = true
	}
	if m.State == Terminating || m.State == Ready && !m.Warning {
		return
	}
	if root.worstOwned < 0 || j.explainsMore(i, root.worstOwned) {
		root.worstOwned = i
	}
	failed := m.State == Failed && isPod(&m.Key) && !j.links[i].ofJob
	if failed && (root.failedPod < 0 || j.explainsMore(i, root.failedPod)) {
		root.failedPod = i
	}
}

// explainsMore reports whether a explains the state of its root better than b: the worse
// state comes first, then the deeper object, then the older one, then the first by key.
func (j *judgeState) explainsMore(a, b int) bool {
	x, y := &j.members[a], &j.members[b]
	if c := CompareStates(x.State, y.State); c != 0 {
		return c < 0
	}
	if c := cmp.Compare(j.links[b].depth, j.links[a].depth); c != 0 {
		return c < 0
	}
	if c := x.Since.Compare(y.Since); c != 0 {
		return c < 0
	}
	return compareKeys(&x.Key, &y.Key) < 0
}

// applyRootCause sets the worst owned object as the cause of a workload that is not
// Ready. It makes the workload Failed with the reason of a failed pod when no pod
// works. It also requires that the workload itself counts no ready pod, because the
// listed pods may be incomplete.
func (j *judgeState) applyRootCause(root int) {
	w, l := &j.members[root], &j.links[root]
	if l.worstOwned < 0 || w.State == Ready || w.State == Terminating {
		return
	}
	w.Cause = j.describeCause(&j.members[l.worstOwned])
	if l.failedPod < 0 || l.podReady || !w.NothingWorks() {
		return
	}
	pod := &j.members[l.failedPod]
	w.State, w.Reason, w.Message = Failed, pod.Reason, pod.Message
	w.Since = later(w.Since, pod.Since)
}

// NothingWorks reports whether a workload is Pending and counts no ready pod itself. Such a workload is Failed as soon as one of its pods has failed.
func (r *Result) NothingWorks() bool {
	return r.State == Pending && !r.Serving && (r.Replicas == nil || r.Replicas.Ready == 0)
}

// describeCause describes in one line what is wrong with an object, and with the volume claim it waits for.
func (j *judgeState) describeCause(m *Member) string {
	if claim := j.pendingClaimOf(m); claim != nil {
		return oneLine(fmt.Sprintf("%s %s: waits for %s %s: %s", m.Kind, m.Name, claim.Kind, claim.Name, describeState(&claim.Result)))
	}
	return oneLine(fmt.Sprintf("%s %s: %s", m.Kind, m.Name, describeState(&m.Result)))
}

// pendingClaimOf returns the volume claim for which a pod of a StatefulSet waits; nil
// when there is none. A StatefulSet names its claims <template>-<pod>, which is the
// only link between claims and pods in results. A claim that the name of another pod
// matches as well is ignored, because its pod is not known.
func (j *judgeState) pendingClaimOf(m *Member) *Member {
	waits := m.State == Pending || m.Reason == ReasonPendingTimeout
	if !waits || !isPod(&m.Key) || m.Owner == nil || m.Owner.Kind != "StatefulSet" {
		return nil
	}
	key := Key{Cluster: m.Cluster, Kind: "PersistentVolumeClaim", Namespace: m.Namespace}
	at, _ := find(j.members, &key)
	for ; j.members[at].Kind == key.Kind && j.members[at].Namespace == key.Namespace; at++ { // The pod itself sorts after its claims.
		claim := &j.members[at]
		template, ok := strings.CutSuffix(claim.Name, "-"+m.Name)
		if ok && claim.State != Ready && claim.State != Terminating && !j.isClaimOfOtherPod(&m.Key, template) {
			return claim
		}
	}
	return nil
}

// isClaimOfOtherPod reports whether there is another pod whose name is a suffix of template after a dash, a dash, and the name in key.
func (j *judgeState) isClaimOfOtherPod(key *Key, template string) bool {
	other := *key
	for i := range len(template) {
		if template[i] != '-' {
			continue
		}
		other.Name = template[i+1:] + "-" + key.Name
		if _, ok := find(j.members, &other); ok {
			return true
		}
	}
	return false
}

// describeState describes what is wrong with an object. It includes the reason of a
// failure; the messages of other states are sufficient.
func describeState(r *Result) string {
	if r.State == Failed && r.Reason != ReasonPendingTimeout {
		return cmp.Or(reasonAndMessage(r), string(r.State))
	}
	return cmp.Or(r.Message, string(r.Reason), string(r.State))
}

// reasonAndMessage returns reason and message, without the reason when the message contains it; empty when there is neither.
func reasonAndMessage(r *Result) string {
	switch {
	case r.Message == "":
		return string(r.Reason)
	case r.Reason == "" || strings.Contains(r.Message, string(r.Reason)):
		return r.Message
	default:
		return string(r.Reason) + ": " + r.Message
	}
}

// oneLine returns a text as one line of valid UTF-8 without control characters, of at most maxLine bytes.
func oneLine(text string) string { return Shorten(Clean(text), maxLine) }
