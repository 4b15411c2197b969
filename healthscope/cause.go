package healthscope

import (
	"cmp"
	"fmt"
	"strings"
)

// maxLine is how many bytes a line of Judge's may have. Messages of rules are no longer, but those in bundles may be of any program.
const maxLine = 256

// consider lets an owned object that is not right stand for the cause of its root's trouble, if it is the worst so far.
func (j *judging) consider(i int) {
	m := &j.members[i]
	root := &j.links[j.links[i].root]
	if m.State == Ready && isPod(&m.Key) && m.Reason != ReasonCompleted {
		root.podReady = true
	}
	if m.State == Terminating || m.State == Ready && !m.Warning {
		return
	}
	if root.worst < 0 || j.worse(i, root.worst) {
		root.worst = i
	}
	fails := m.State == Failed && isPod(&m.Key) && !j.links[i].ofJob
	if fails && (root.crashed < 0 || j.worse(i, root.crashed)) {
		root.crashed = i
	}
}

// worse orders the objects below one root by what they explain: the worse state
// first, then the one further down, the older one, and the first by key.
func (j *judging) worse(a, b int) bool {
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

// explain gives a workload that is not Ready the worst of what it owns as cause,
// and a pod's failure when no pod is left that works. Its own count of these goes
// beside the pods that are listed, which need not be all.
func (j *judging) explain(root int) {
	w, l := &j.members[root], &j.links[root]
	if l.worst < 0 || w.State == Ready || w.State == Terminating {
		return
	}
	w.Cause = j.cause(&j.members[l.worst])
	if l.crashed < 0 || l.podReady || !w.NothingWorks() {
		return
	}
	pod := &j.members[l.crashed]
	w.State, w.Reason, w.Message = Failed, pod.Reason, pod.Message
	w.Since = later(w.Since, pod.Since)
}

// NothingWorks reports whether a workload is Pending and none of its pods is ready, by its own count: one pod that has failed makes it Failed then.
func (r *Result) NothingWorks() bool {
	return r.State == Pending && !r.Serving && (r.Replicas == nil || r.Replicas.Ready == 0)
}

// cause says in one line what is wrong with an object, and with the volume claim it waits for.
func (j *judging) cause(m *Member) string {
	if claim := j.claimOf(m); claim != nil {
		return line(fmt.Sprintf("%s %s: waits for %s %s: %s", m.Kind, m.Name, claim.Kind, claim.Name, why(&claim.Result)))
	}
	return line(fmt.Sprintf("%s %s: %s", m.Kind, m.Name, why(&m.Result)))
}

// claimOf returns the volume claim for which a pod of a StatefulSet waits; nil
// when there is none. A StatefulSet names its claims <template>-<pod>; no
// other link between claims and pods shows in results. When another pod's name
// fits the claim as well, it is not known whose it is.
func (j *judging) claimOf(m *Member) *Member {
	waits := m.State == Pending || m.Reason == ReasonPendingTimeout
	if !waits || !isPod(&m.Key) || m.Owner == nil || m.Owner.Kind != "StatefulSet" {
		return nil
	}
	key := Key{Cluster: m.Cluster, Kind: "PersistentVolumeClaim", Namespace: m.Namespace}
	for at, _ := find(j.members, &key); at < len(j.members); at++ {
		claim := &j.members[at]
		if claim.Kind != key.Kind || claim.Namespace != key.Namespace { // The pod itself comes before other groups and clusters do.
			break
		}
		template, ok := strings.CutSuffix(claim.Name, "-"+m.Name)
		if ok && claim.State != Ready && claim.State != Terminating && !j.otherPod(&m.Key, template) {
			return claim
		}
	}
	return nil
}

// otherPod reports whether there is a pod whose name is the end of template, a dash and the name of the pod with the key.
func (j *judging) otherPod(key *Key, template string) bool {
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

// why says what is wrong with an object. Of a failure the reason is named, of
// which there are many; the other states' messages say it all.
func why(r *Result) string {
	if r.State == Failed && r.Reason != ReasonPendingTimeout {
		return cmp.Or(withReason(r), string(r.State))
	}
	return cmp.Or(r.Message, string(r.Reason), string(r.State))
}

// withReason returns reason and message, without the reason when the message names it; nothing when there is neither.
func withReason(r *Result) string {
	switch {
	case r.Message == "":
		return string(r.Reason)
	case r.Reason == "" || strings.Contains(r.Message, string(r.Reason)):
		return r.Message
	default:
		return string(r.Reason) + ": " + r.Message
	}
}

// line makes a text one line of valid UTF-8 without control characters, of at most maxLine bytes.
func line(text string) string { return Shorten(Clean(text), maxLine) }
