package healthscope

import (
	"cmp"
	"strings"
	"time"
)

// State is the health of one object, or of many rolled up.
type State string

// The states. The first three are the normal ones; the others are for what cannot be judged.
const (
	// Ready means that the object works as intended.
	Ready State = "Ready"
	// Pending means that the object does not work yet, or not fully.
	Pending State = "Pending"
	// Failed means that the object does not work, and will not without a change.
	Failed State = "Failed"
	// Terminating means that the object is being deleted.
	Terminating State = "Terminating"
	// NotPresent means that the object is expected and does not exist.
	NotPresent State = "NotPresent"
	// Unknown means that the state of the object cannot be determined: it is unreachable, forbidden, or never observed. It is never taken for Ready or for Failed.
	Unknown State = "Unknown"
)

// States returns all states, best first.
func States() []State { return []State{Ready, Pending, Terminating, NotPresent, Unknown, Failed} }

// Valid reports whether s is one of the states.
func (s State) Valid() bool { return s.rank() >= 0 }

// rank orders states from best to worst; it is negative for an invalid state.
func (s State) rank() int {
	for i, known := range States() {
		if s == known {
			return i
		}
	}
	return -1
}

// CompareStates sorts the worse state first.
func CompareStates(a, b State) int { return cmp.Compare(b.rank(), a.rank()) }

// Key identifies an object among all objects of all clusters. Two results with
// the same key are about the same object. Version is not part of the key: an object
// is the same in every version in which it is served.
type Key struct {
	// Cluster is the name of the cluster, <provider>+<cluster>, or the name of the hub itself.
	Cluster string
	// Group is the API group; empty for the core group.
	Group string
	// Kind is the kind.
	Kind string
	// Namespace is the namespace; empty for cluster-scoped objects.
	Namespace string
	// Name is the name.
	Name string
}

// Compare sorts keys by cluster, group, kind, namespace and name.
func (k Key) Compare(o Key) int { return compareKeys(&k, &o) }

// compareKeys is Key.Compare without copies, because a judgement compares many keys.
func compareKeys(a, b *Key) int {
	if c := strings.Compare(a.Cluster, b.Cluster); c != 0 {
		return c
	}
	if c := strings.Compare(a.Group, b.Group); c != 0 {
		return c
	}
	if c := strings.Compare(a.Kind, b.Kind); c != 0 {
		return c
	}
	if c := strings.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// String returns Kind/name.
func (k Key) String() string { return k.Kind + "/" + k.Name }

// Owner names the controller of an object. It is in the object's own cluster and namespace.
type Owner struct {
	// Group is the owner's API group.
	Group string
	// Kind is the owner's kind.
	Kind string
	// Name is the owner's name.
	Name string
}

// Result is the health of one object as a rule determines it. Judge turns raw results into members.
type Result struct {
	Key
	// Version is the API version the object was read in.
	Version string
	// UID is the object's uid; empty when it is not known.
	UID string
	// State is the object's state.
	State State
	// Reason says in one word why. It is empty when there is nothing to say about a Ready object.
	Reason Reason
	// Message is the human-readable form of Reason.
	Message string
	// Serving is true when all desired replicas are ready, also during a rollout.
	Serving bool
	// Suspended is true when the user has suspended or paused the object.
	Suspended bool
	// Warning is true when the state is certain, but something deserves attention; Reason says what.
	Warning bool
	// Timed is true while Kubernetes itself times the rollout and reports when it has taken too long, so that no other limit is needed.
	Timed bool
	// Since is when the object was first seen in State, or when it entered State if the object itself shows that: an object
	// without a status has had none since its creation. The zero value means that it is not known.
	Since time.Time
	// Owner is the controller of the object; nil when there is none.
	Owner *Owner
	// Labels are the labels of the object that may be passed on.
	Labels map[string]string
	// Replicas counts replicas; nil for kinds that have none.
	Replicas *Replicas
	// ProgressDeadline is the workload's own deadline for progress; zero when it has none.
	ProgressDeadline time.Duration
	// Progress is the progress of the object; nil for objects that do not count it.
	Progress *Progress
	// History is the object in the previous judgement; nil when it is not known. Policy.WithHistory sets it for Judge, which does not pass it on.
	History *Member
}

// Replicas counts the replicas of a workload, or the containers of a pod.
type Replicas struct {
	// Ready is the number that are ready.
	Ready int32
	// Desired is the desired number.
	Desired int32
}

// Progress is the progress of a workload. Its numbers are only comparable within one generation.
type Progress struct {
	// Generation is the generation of the object.
	Generation int64
	// Updated, Ready, Available and Succeeded are the highest numbers of such replicas, or pods, since the object became Pending.
	Updated, Ready, Available, Succeeded int32
	// At is when the object was last seen to progress while it was Pending; zero when it was not.
	At time.Time
}

// Equal reports whether p and o are the same progress at the same time.
func (p Progress) Equal(o Progress) bool {
	at := p.At.Equal(o.At)
	p.At, o.At = time.Time{}, time.Time{}
	return at && p == o
}

// Merge returns the higher numbers of p and before. Its At is now if p has advanced beyond before, unless p has a later At than before.
// A number that has been reached before is no progress, so that an object that flaps does not progress.
func (p Progress) Merge(before Progress, now time.Time) Progress {
	furthest, at := p, later(p.At, before.At)
	advanced := p.Generation > before.Generation
	if p.Generation == before.Generation {
		furthest = Progress{
			Generation: p.Generation, Updated: max(p.Updated, before.Updated), Ready: max(p.Ready, before.Ready),
			Available: max(p.Available, before.Available), Succeeded: max(p.Succeeded, before.Succeeded), At: before.At,
		}
		advanced = furthest != before
	}
	if advanced && !p.At.After(before.At) {
		at = now
	}
	furthest.At = at
	return furthest
}

// Healthy reports whether the object counts as healthy: it is Ready, or Pending while all desired replicas serve.
func (r Result) Healthy() bool { return r.State == Ready || r.State == Pending && r.Serving }
