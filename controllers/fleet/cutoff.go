package fleet

import "time"

// Pauses before a cluster that was cut off is read again. They double each time the cluster is cut off again.
const (
	minCutOff = 5 * time.Minute
	maxCutOff = time.Hour
)

// cutOff is the state of a cluster that has been cut off.
type cutOff struct {
	// exceeded is why the cluster was cut off; empty once a later attempt to read it has led to another state than Connecting.
	exceeded string
	// until is when the cluster is read again; zero once that has begun.
	until time.Time
	// pause is the duration of the last cut-off.
	pause time.Duration
}

// override returns the assessment to show: OverBudget also while the cluster is being read again, and otherwise the given one.
func (o *cutOff) override(a assessment) assessment {
	switch {
	case o.exceeded == "" || a.reachability == OverBudget:
	case a.reachability == Connecting:
		return assessment{reachability: OverBudget, message: o.exceeded + "; it is being read again"}
	default:
		o.exceeded = ""
	}
	return a
}

// begin notes that the cluster is cut off. The pause starts from the minimum again when the cluster was current for at least as long as the last pause.
func (o *cutOff) begin(exceeded string, state ClusterState, now time.Time) {
	if state.Reachable() && now.Sub(state.Since) >= o.pause {
		o.pause = 0
	}
	o.pause = min(max(2*o.pause, minCutOff), maxCutOff)
	o.exceeded, o.until = exceeded, now.Add(o.pause)
}
