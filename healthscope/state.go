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
	// Ready means that the object does what it is there for.
	Ready State = "Ready"
	// Pending means that it does not yet, or not fully.
	Pending State = "Pending"
	// Failed means that it does not, and will not by waiting.
	Failed State = "Failed"
	// Terminating means that it is being deleted.
	Terminating State = "Terminating"
	// NotPresent means that it is expected and does not exist.
	NotPresent State = "NotPresent"
	// Unknown means that it cannot be seen: unreachable, forbidden, or never observed. It is never taken for Ready or for Failed.
	Unknown State = "Unknown"
)

// States returns all states, best first.
func States() []State { return []State{Ready, Pending, Terminating, NotPresent, Unknown, Failed} }

// Valid reports whether s is one of the states.
func (s State) Valid() bool { return s.rank() >= 0 }

// rank orders states from best to worst; it is negative for a word that is no state.
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
// one key speak of the same object. Version is not part of it: an object is the
// same in every version it is served in.
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

// compareKeys is Key.Compare. A judgement compares many keys, and mostly differs in the names alone.
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

// String returns Kind/name, which is how people name an object they know the place of.
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

// Result is the health of one object as one rule saw it. It is raw until Judge has seen it.
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
	// Message says the same for people.
	Message string
	// Serving is true when all replicas that are wanted are ready, also while a change is under way.
	Serving bool
	// Suspended is true when the object is paused by its owner.
	Suspended bool
	// Warning is true when the state is not in doubt, but something deserves attention; Reason says what.
	Warning bool
	// Timed is true while Kubernetes itself watches the rollout and says when it has taken too long, so that no other limit is needed.
	Timed bool
	// Since is when the object was first seen in State, or when it entered it where the object itself says so: one that never
	// had a status is without one since its creation. The zero value means that it is not known.
	Since time.Time
	// Owner is the controller of the object; nil when there is none.
	Owner *Owner
	// Labels are those labels of the object that are allowed to travel.
	Labels map[string]string
	// Replicas counts replicas; nil for kinds that have none.
	Replicas *Replicas
	// ProgressDeadline is how long the workload itself allows for progress; zero when it does not say.
	ProgressDeadline time.Duration
	// Progress is how far the object has got, of an object that counts it; nil for others.
	Progress *Progress
	// History is what was last said of the object; nil when that is not known. It is given to Judge by Policy.WithHistory, and goes no further.
	History *History
}

// Replicas counts the replicas of a workload, or the containers of a pod.
type Replicas struct {
	// Ready is the number that are ready.
	Ready int32
	// Desired is the number that are wanted.
	Desired int32
}

// Progress is how far a workload has got. Each number means something within one generation only.
type Progress struct {
	// Generation is the generation of the object.
	Generation int64
	// Updated, Ready, Available and Succeeded are the most replicas, or pods, that were seen to be so since the object is Pending.
	Updated, Ready, Available, Succeeded int32
	// At is when the object was last seen to get further while it was Pending; zero when it was not.
	At time.Time
}

// Equal reports whether p and o are the same progress at the same time.
func (p Progress) Equal(o Progress) bool {
	at := p.At.Equal(o.At)
	p.At, o.At = time.Time{}, time.Time{}
	return at && p == o
}

// Following returns the furthest of p and before. Its At is now if p is further than before, unless p has a later At than before.
// A number that has been reached before is no progress, so that what goes to and fro does not get on.
func (p Progress) Following(before Progress, now time.Time) Progress {
	furthest, at := p, later(p.At, before.At)
	further := p.Generation > before.Generation
	if p.Generation == before.Generation {
		furthest = Progress{
			Generation: p.Generation, Updated: max(p.Updated, before.Updated), Ready: max(p.Ready, before.Ready),
			Available: max(p.Available, before.Available), Succeeded: max(p.Succeeded, before.Succeeded), At: before.At,
		}
		further = furthest != before
	}
	if further && !p.At.After(before.At) {
		at = now
	}
	furthest.At = at
	return furthest
}

// Healthy reports whether the object may count as healthy: Ready, or Pending while all that is wanted serves.
func (r Result) Healthy() bool { return r.State == Ready || r.State == Pending && r.Serving }
