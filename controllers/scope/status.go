package scope

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

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
	s := corev1alpha2.HealthScopeStatus{
		Health:             corev1alpha2.Health(v.Health),
		Summary:            statusSummary(v.summary),
		ResourcesReady:     fmt.Sprintf("%d/%d", v.summary.Ready, v.summary.Total),
		Conditions:         slices.Clone(scope.Status.Conditions),
		ObservedGeneration: scope.Generation,
		Truncated:          v.truncated,
	}
	setReferences(&s, v)
	s.AppHealthConditions = boundedAppHealth(appHealthOf(v), corev1alpha2.MaxHealthConditions, &s.Truncated)
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

func statusSummary(s healthscope.Summary) corev1alpha2.MemberCounts {
	return corev1alpha2.MemberCounts{
		State: string(s.State()), Total: int32(s.Total), Ready: int32(s.Ready), Pending: int32(s.Pending), Failed: int32(s.Failed), Unknown: int32(s.Unknown),
	}
}

// setApps sets the state of each app in each cluster, worst first. An app of the spec is listed even if none of its members counts.
func setApps(s *corev1alpha2.HealthScopeStatus, v judgement, apps []corev1alpha2.ScopeApp) {
	totals, clusters := map[string]healthscope.Summary{}, map[string][]corev1alpha2.ClusterStatus{}
	for _, a := range apps {
		totals[a.Name] = healthscope.Summary{}
	}
	for at, n := range v.counts() {
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

// metaTime returns a time in the form of a status, truncated to the second; nil when the time is zero.
func metaTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t.Truncate(time.Second)))
}

func culpritLine(c corev1alpha2.Culprit) string {
	if isCluster(c) {
		return shorten(fmt.Sprintf("%s/%s: %s", c.Kind, c.Name, c.Reason))
	}
	return shorten(fmt.Sprintf("%s/%s in %s: %s", c.Kind, c.Name, c.Cluster, cmp.Or(c.Reason, c.State)))
}

func missingRequiredLine(apps []string) string {
	return "no resources in required apps: " + strings.Join(apps, ", ")
}
