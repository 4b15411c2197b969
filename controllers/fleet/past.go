package fleet

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/healthscope"
)

// past is what was known of a kind before it is read anew. It is never changed, and refers to no watch: however often a
// kind is read anew, there is only one past.
type past struct {
	// away is the state of the cluster in which nobody could see whether it was still so.
	away ClusterState
	// read is true when the kind had been read, with these results, and problem is why it could not be read any more, or at all.
	read    bool
	results map[types.NamespacedName]healthscope.Result
	problem *problem
}

// known returns what a watch knows, or knew from before it began as long as it has not been read itself. The watch may go
// on for a moment, so that the results are copied.
func (w *kindWatch) known(away ClusterState) *past {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &past{away: away, problem: w.problem}
	switch {
	case w.synced:
		p.read, p.results = true, maps.Clone(w.results)
	case w.past != nil:
		p.read, p.results = w.past.read, w.past.results
		if p.problem == nil {
			p.problem = w.past.problem
		}
	}
	return p
}

// succeed makes a watch that has just begun tell what was known before, until it knows itself.
func (w *kindWatch) succeed(p *past) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.synced {
		w.past = p
	}
}

// lost returns what is to be said of an object in a cluster that cannot be seen. While that is only because it is not connected yet, the object is settling. w may be nil.
func (w *kindWatch) lost(name types.NamespacedName, unknown healthscope.Result, s ClusterState) Lookup {
	if s.Reachability == Connecting {
		return settling(unknown, s.Since)
	}
	seen, ok := w.last(name)
	return lostLookup(seen, ok, unknown, s)
}

// lostLookup returns what is to be said of an object that was seen so last, if it was, in a cluster that cannot be seen.
func lostLookup(seen healthscope.Result, ok bool, unknown healthscope.Result, s ClusterState) Lookup {
	was := []healthscope.Member{{Result: unknown}}
	if ok {
		was[0].Result = seen
	}
	gone := healthscope.Lost(was, s.Reachability.Reason(), fmt.Sprintf("cluster %q: %s", s.Name, s.Message), s.Since)[0]
	if !ok {
		gone.LastState, gone.Message = "", fmt.Sprintf("cluster %q: %s", s.Name, s.Message)
	}
	return Lookup{Result: gone.Result, LastState: gone.LastState}
}

// last returns what was known last of an object. w may be nil.
func (w *kindWatch) last(name types.NamespacedName) (healthscope.Result, bool) {
	if w == nil {
		return healthscope.Result{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	result, ok := w.results[name]
	if !ok && w.past != nil {
		result, ok = w.past.results[name]
	}
	return result, ok
}

// get returns what is to be said of an object in a cluster that is seen.
func (w *kindWatch) get(name types.NamespacedName, unknown healthscope.Result) Lookup {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.problem != nil:
		return w.problem.tell(unknown)
	case w.synced:
		return w.present(w.results, name, unknown)
	case w.past == nil || time.Since(w.started) >= SettleTime:
		return settling(unknown, w.started)
	case !w.past.away.Answers() && w.past.read:
		seen, ok := w.past.results[name]
		return lostLookup(seen, ok, unknown, w.past.away)
	case w.past.problem != nil: // It holds until the kind has been asked for again.
		return w.past.problem.tell(unknown)
	case w.past.read: // The cluster was there all the time.
		return w.present(w.past.results, name, unknown)
	default:
		return settling(unknown, w.started)
	}
}

// tell returns what is to be said of an object of a kind with the problem.
func (p *problem) tell(unknown healthscope.Result) Lookup {
	unknown.Reason, unknown.Message = p.reason, p.message
	return Lookup{Result: unknown}
}

// present returns what is to be said of an object of a kind that has been read.
func (w *kindWatch) present(results map[types.NamespacedName]healthscope.Result, name types.NamespacedName, unknown healthscope.Result) Lookup {
	if r, ok := results[name]; ok {
		return Lookup{Result: r}
	}
	unknown.State, unknown.Reason = healthscope.NotPresent, healthscope.ReasonNotFound
	unknown.Message = fmt.Sprintf("%s %q does not exist in namespace %q", w.GroupVersionKind.Kind, name.Name, name.Namespace)
	return Lookup{Result: unknown}
}
