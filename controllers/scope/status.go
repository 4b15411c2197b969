package scope

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// maxStatusBytes bounds the status of one scope, as JSON.
const maxStatusBytes = 64 << 10

// InventoryReport is the state of a scope's resources in the inventory.
type InventoryReport struct {
	// Waiting is true until the inventory has been compared with A&AI for the first time since the program started. Until then status keeps what it says, and nothing else in the report counts.
	Waiting bool
	corev1alpha2.InventoryStatus
	// Reason and Message are those of the condition InventorySynced when not all is synced.
	Reason  Reason
	Message string
	// Conflict says which resource goes to A&AI as that of another scope, which is older; empty when none does.
	Conflict string
}

// externalStatus holds the parts of a status that do not come from the judgement.
type externalStatus struct {
	// state returns what is known of a cluster; false when the controller does not know it.
	state func(cluster string) (fleet.ClusterState, bool)
	// inventory is the state of the resources in the inventory; nil when there is none.
	inventory *InventoryReport
	// healthChecks is what is wrong with the health checks of the configuration; empty when nothing is.
	healthChecks string
}

// newStatus returns the status of a scope for its judgement. It depends on no order, and on the clock only for what differs from the previous status.
func newStatus(scope *corev1alpha2.HealthScope, v judgement, o externalStatus, now time.Time) corev1alpha2.HealthScopeStatus {
	n := v.summary
	s := corev1alpha2.HealthScopeStatus{
		Health:             corev1alpha2.Health(v.Health),
		Summary:            corev1alpha2.MemberCounts{State: string(n.State()), Total: int32(n.Total), Ready: int32(n.Ready), Pending: int32(n.Pending), Failed: int32(n.Failed), Unknown: int32(n.Unknown)},
		ResourcesReady:     fmt.Sprintf("%d/%d", n.Ready, n.Total),
		Conditions:         slices.Clone(scope.Status.Conditions),
		ObservedGeneration: scope.Generation,
		Truncated:          v.truncated,
	}
	setReferences(&s, v)
	setApps(&s, v, scope.Spec.Apps)
	noMembers := noMembersMessage(scope, v)
	setCulprits(&s, v, noMembers)
	reachable := setReachability(&s, scope.Status.Apps, v, o.state)
	switch {
	case o.inventory == nil:
	case o.inventory.Waiting:
		s.Inventory = scope.Status.Inventory
	default:
		s.Inventory = &o.inventory.InventoryStatus
	}
	setConditions(&s, v, reachable, o, noMembers, now)
	truncateStatus(&s)
	return s
}

// setApps sets the state of each app in each cluster, worst first. An app of the spec is listed even if none of its members counts.
func setApps(s *corev1alpha2.HealthScopeStatus, v judgement, apps []corev1alpha2.ScopeApp) {
	totals, clusters := map[string]healthscope.Summary{}, map[string][]corev1alpha2.ClusterStatus{}
	for _, a := range apps {
		totals[a.Name] = healthscope.Summary{}
	}
	for at, n := range v.counts {
		totals[at.app] = sum(totals[at.app], n)
		clusters[at.app] = append(clusters[at.app], corev1alpha2.ClusterStatus{Name: at.cluster, State: string(n.State()), Total: int32(n.Total), Ready: int32(n.Ready)})
	}
	for name, total := range totals {
		state := total.State()
		if total.Total == 0 { // What it leads to may count in another app.
			state = v.summaryOf(name).State()
		}
		a := corev1alpha2.AppStatus{Name: name, State: string(state), Total: int32(total.Total), Ready: int32(total.Ready), Clusters: clusters[name]}
		slices.SortFunc(a.Clusters, func(x, y corev1alpha2.ClusterStatus) int { return compareByState(x.State, y.State, x.Name, y.Name) })
		a.Clusters = bounded(a.Clusters, corev1alpha2.MaxAppClusters, &s.Truncated)
		s.Apps = append(s.Apps, a)
	}
	slices.SortFunc(s.Apps, func(x, y corev1alpha2.AppStatus) int { return compareByState(x.State, y.State, x.Name, y.Name) })
}

// compareByState sorts the worse state first, then by name.
func compareByState(stateA, stateB, nameA, nameB string) int {
	return cmp.Or(healthscope.CompareStates(healthscope.State(stateA), healthscope.State(stateB)), strings.Compare(nameA, nameB))
}

// setCulprits sets the culprits. noMembers is the message for a scope that leads to nothing.
func setCulprits(s *corev1alpha2.HealthScopeStatus, v judgement, noMembers string) {
	s.Culprits = slices.Clone(v.culprits)
	switch {
	case len(s.Culprits) > 0:
		s.FirstCulprit = culpritLine(s.Culprits[0])
	case len(v.missingRequired) > 0:
		s.FirstCulprit = shorten(missingRequiredLine(v.missingRequired))
	case v.summary.Healthy < v.summary.Total:
		s.FirstCulprit = "resources that their bundle has no room to name"
	default:
		s.FirstCulprit = shorten(noMembers)
	}
	s.Culprits = bounded(s.Culprits, corev1alpha2.MaxCulprits, &s.Truncated)
}

// setReachability sets how many clusters of the scope are Connected, and when the others were seen last. It returns the condition
// ClustersReachable, with the reason of the worst cluster. state returns the state of a cluster; false when it is not known.
func setReachability(s *corev1alpha2.HealthScopeStatus, before []corev1alpha2.AppStatus, v judgement, state func(string) (fleet.ClusterState, bool)) conditionState {
	clusters := sets.New[string]()
	for at := range v.counts {
		clusters.Insert(at.cluster)
	}
	for _, p := range v.Members { // Also those that do not count.
		clusters.Insert(p.Cluster)
	}
	stale := map[string]fleet.ClusterState{}
	worst, condition := -1, conditionState{ReasonAllReachable, "every cluster of the scope is Connected"}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		c, known := state(name)
		rank, reason := slices.Index(fleet.Reachabilities(), c.Reachability), Reason(c.Reachability)
		switch {
		case !known:
			rank, reason = len(fleet.Reachabilities()), ReasonClusterUnknown
		case c.Reachable():
			continue
		}
		stale[name] = c
		if rank > worst {
			worst, condition.reason = rank, reason
		}
		texts = append(texts, fmt.Sprintf("%s: %s", name, reason))
	}
	s.ClustersReachable = fmt.Sprintf("%d/%d", len(clusters)-len(stale), len(clusters))
	if len(stale) > 0 {
		condition.message = fmt.Sprintf("%d of %d clusters are not Connected: %s", len(stale), len(clusters), strings.Join(texts, ", "))
		setLastSeen(s.Apps, before, stale)
	}
	return condition
}

// setLastSeen sets when stale clusters were seen last. For a cluster that has not been read since the hub started, the time is
// carried over from the previous status.
func setLastSeen(next, before []corev1alpha2.AppStatus, stale map[string]fleet.ClusterState) {
	lastSeen := map[appCluster]*metav1.Time{}
	for _, a := range before {
		for _, c := range a.Clusters {
			lastSeen[appCluster{a.Name, c.Name}] = c.LastSeen
		}
	}
	for _, a := range next {
		for i := range a.Clusters {
			c := &a.Clusters[i]
			if state, isStale := stale[c.Name]; isStale {
				c.LastSeen = cmp.Or(metaTime(state.LastSeen), lastSeen[appCluster{a.Name, c.Name}])
			}
		}
	}
}

// truncateStatus cuts lists until the status is within its bounds: first KubeVela's list, which only repeats the others, then the
// others one after the other to a length that is still useful, and then, because names may be of any length, all as far as necessary.
func truncateStatus(s *corev1alpha2.HealthScopeStatus) {
	halve := func(minimum int, cuts ...func(limit int)) {
		for limit := 1024; limit > minimum && tooBig(s); {
			limit = max(limit/2, minimum)
			for _, cut := range cuts {
				cut(limit)
			}
		}
	}
	lists := []func(limit int){
		func(limit int) { s.HealthConditions = bounded(s.HealthConditions, limit, &s.Truncated) },
		func(limit int) {
			for i := range s.Apps {
				s.Apps[i].Clusters = bounded(s.Apps[i].Clusters, limit, &s.Truncated)
			}
		},
		func(limit int) { s.Apps = bounded(s.Apps, limit, &s.Truncated) },
		func(limit int) { s.Culprits = bounded(s.Culprits, limit, &s.Truncated) },
	}
	halve(0, func(limit int) { boundComponents(s, limit) })
	for _, cut := range lists {
		halve(10, cut)
	}
	halve(0, lists...)
}

func tooBig(s *corev1alpha2.HealthScopeStatus) bool {
	data, err := json.Marshal(s)
	return err == nil && len(data) > maxStatusBytes
}
