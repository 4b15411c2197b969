package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// Lookup is the answer to a question for one object.
type Lookup struct {
	// Result is raw: what the rule for the kind says of the object, NotPresent when it does not exist, or Unknown with the reason why it cannot be seen.
	Result healthscope.Result
	// Labels are all labels of the object, as they were read last.
	Labels LabelSet
	// Resources are what the object names in status.resources, the first 20 of Named.
	Resources []Resource
	Named     int
	// Status is the status of an object that no rule can judge, as JSON, the first KiB of it; empty for all others.
	Status string
	// Settling is true while the kind is being read for the first time, SettleTime at most, or its cluster is, and the answer is Unknown for that reason only.
	Settling bool
	// Since is since when the object is settling.
	Since time.Time
	// LastState is the state that was known last of an object whose cluster cannot be seen; empty when none was, or the cluster is seen.
	LastState healthscope.State
	// Application is what an Application of KubeVela says, as far as its cluster was last seen; nil for other kinds, and when it is not known.
	Application *kubevela.Application
	// Component is what KubeVela's labels say of the object's place in an Application; nil where there are none, and when the object is not known.
	Component *kubevela.Component
}

// Selection is the answer to a question for the objects that a selector matches.
type Selection struct {
	// Objects are those that have been read, sorted by name, each as Get returns it.
	Objects []Lookup
	// Others is what Get returns of any other object: NotPresent when there are no others, else Unknown with the reason why those there may be cannot be seen.
	Others Lookup
}

// Get returns what is known of an object of a kind that is wanted. A kind that is not wanted stays settling.
func (o *Objects) Get(cluster string, gvk schema.GroupVersionKind, name types.NamespacedName) Lookup {
	s := o.look(cluster, gvk, name)
	if s.kind != nil {
		if kept, ok := s.kind.kept.Get(name); ok {
			return s.lookup(kept)
		}
	}
	if s.others.Result.State == healthscope.NotPresent {
		s.others.Result.Message = fmt.Sprintf("%s %q does not exist in namespace %q", gvk.Kind, name.Name, name.Namespace)
	}
	return s.others
}

// Select returns what is known of the objects of a kind that is wanted, in a namespace of a cluster, whose labels a selector
// matches. Of a cluster that cannot be seen it matches the labels that were read last.
func (o *Objects) Select(cluster string, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) Selection {
	s := o.look(cluster, gvk, types.NamespacedName{Namespace: namespace})
	found := Selection{Others: s.others}
	if s.kind == nil {
		return found
	}
	for _, kept := range s.kind.kept.In(namespace, func(k *keptObject) bool { return selector.Matches(k.labels) }) {
		found.Objects = append(found.Objects, s.lookup(kept))
	}
	slices.SortFunc(found.Objects, func(a, b Lookup) int { return strings.Compare(a.Result.Name, b.Result.Name) })
	return found
}

// sight is how the objects of a kind in a namespace of a cluster can be seen.
type sight struct {
	// kind holds those that have been read; nil when none of them says anything now.
	kind *kindInformer
	// away is the state of their cluster, which cannot be seen; nil when it can.
	away *ClusterState
	// others is what is known of an object that has not been read.
	others Lookup
}

// lookup returns what is to be said of an object that has been read.
func (s sight) lookup(kept *keptObject) Lookup {
	found := Lookup{Result: kept.result, Labels: kept.labels, Resources: kept.resources, Named: kept.named, Status: kept.status, Application: kept.application, Component: kept.component}
	if s.away == nil {
		return found
	}
	lost := healthscope.MarkUnreachable([]healthscope.Member{{Result: kept.result}}, s.away.Reachability.Reason(), s.away.Problem(), s.away.Since)[0]
	found.Result, found.LastState = lost.Result, lost.LastState
	return found
}

// look returns how the objects of a kind in a namespace can be seen, and names that of which nothing has been read.
func (o *Objects) look(cluster string, gvk schema.GroupVersionKind, name types.NamespacedName) sight {
	unknown := healthscope.Result{
		Key:     healthscope.Key{Cluster: cluster, Group: gvk.Group, Kind: gvk.Kind, Namespace: name.Namespace, Name: name.Name},
		Version: gvk.Version, State: healthscope.Unknown, Reason: healthscope.ReasonNotSynced,
		Message: "the objects of this kind have not been read yet",
	}
	o.mu.Lock()
	known := o.clusters[cluster]
	if known == nil {
		o.mu.Unlock()
		unknown.Reason, unknown.Message = healthscope.ReasonUnknownCluster, fmt.Sprintf("no cluster %q is known", cluster)
		return sight{others: Lookup{Result: unknown}}
	}
	at := place{Kind{cluster, gvk}, ""}
	if len(known.namespaces) > 0 {
		at.namespace = name.Namespace
	}
	attached := known.client != nil
	w, state, allowed := o.kinds[at], known.state, at.namespace == "" || slices.Contains(known.namespaces, at.namespace)
	o.mu.Unlock()
	switch {
	case !allowed:
		unknown.Reason, unknown.Message = healthscope.ReasonForbidden, fmt.Sprintf("the Secret of cluster %q does not name namespace %q among those that may be read", cluster, name.Namespace)
		return sight{others: Lookup{Result: unknown}}
	case state.Reachability == Connecting, w == nil && !attached && state.Answers():
		return sight{others: o.settling(unknown, state.Since)}
	case !state.Answers():
		return sight{kind: w, away: &state, others: unseen(unknown, state)}
	case w == nil:
		return sight{others: Lookup{Result: unknown, Settling: true, Since: o.clock.Now()}}
	}
	return w.look(unknown)
}

// look returns how the objects of the kind can be seen in a cluster that is seen.
func (w *kindInformer) look(unknown healthscope.Result) sight {
	state := w.informer.State()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case state.Status == observe.Ready:
		unknown.State, unknown.Reason, unknown.Message = healthscope.NotPresent, healthscope.ReasonNotFound, ""
		return sight{kind: w, others: Lookup{Result: unknown}}
	case state.Status == observe.Problem:
		unknown.Reason, unknown.Message = w.reasonOf(state.Reason), state.Message
		return sight{others: Lookup{Result: unknown}}
	case !w.kept.IsRead() || w.objects.clock.Since(w.since) >= SettleTime:
		return sight{others: w.objects.settling(unknown, w.since)}
	}
	away := w.away
	return sight{kind: w, away: &away, others: unseen(unknown, away)}
}

// settling is the answer while an object is being read for the first time, since a moment.
func (o *Objects) settling(unknown healthscope.Result, since time.Time) Lookup {
	return Lookup{Result: unknown, Settling: o.clock.Since(since) < SettleTime, Since: since}
}

// unseen returns the answer for an object that was never seen, in a cluster that cannot be seen.
func unseen(unknown healthscope.Result, s ClusterState) Lookup {
	unknown.Reason, unknown.Message, unknown.Since = s.Reachability.Reason(), s.Problem(), s.Since
	return Lookup{Result: unknown}
}
