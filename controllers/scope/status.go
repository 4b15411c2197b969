package scope

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// labelComponent is the label by which OAM's runtimes name the component a workload was made from.
const labelComponent = "app.oam.dev/component"

// InventoryReport is what the inventory says of a scope's resources.
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

// outside is what a status contains besides the verdict.
type outside struct {
	// state returns what is known of a cluster; false when the controller does not know it.
	state func(cluster string) (fleet.ClusterState, bool)
	// inventory is how far the inventory is; nil when there is none.
	inventory *InventoryReport
	// healthChecks is what is wrong with the health checks of the configuration; empty when nothing is.
	healthChecks string
	// contestedBy is the other controller that writes the status; empty when there is none.
	contestedBy string
}

// newStatus makes the status of a scope from its verdict. Nothing in it depends on the order of anything, or on the clock beyond what previous status holds.
func newStatus(scope *corev1alpha2.HealthScope, v verdict, o outside, now time.Time) corev1alpha2.HealthScopeStatus {
	s := corev1alpha2.HealthScopeStatus{
		Health:              corev1alpha2.Health(v.health),
		Summary:             summaryOf(v.summary),
		ResourcesReady:      fmt.Sprintf("%d/%d", v.summary.Ready, v.summary.Total),
		AppHealthConditions: agreeing(scope.Status.AppHealthConditions, v.health),
		Conditions:          slices.Clone(scope.Status.Conditions),
		ObservedGeneration:  scope.Generation,
		Truncated:           v.truncated,
	}
	setReferences(&s, v)
	setApps(&s, v, scope.Spec.Apps)
	nothing := lookedFor(scope, v)
	setCulprits(&s, v, nothing)
	reach := reachOf(v, o.state)
	s.ClustersReachable = fmt.Sprintf("%d/%d", len(reach.clusters)-len(reach.stale), len(reach.clusters))
	setLastSeen(&s, scope.Status.Apps, reach, o.state)
	switch {
	case o.inventory == nil:
	case o.inventory.Waiting:
		s.Inventory = scope.Status.Inventory
	default:
		s.Inventory = &o.inventory.InventoryStatus
	}
	setConditions(&s, v, reach, o, nothing, now)
	fit(&s)
	return s
}

// agreeing returns KubeVela's health conditions as they are, unless they contradict the health of the scope: readers could not tell then which of the two is true.
func agreeing(conditions []corev1alpha2.AppHealthCondition, health healthscope.Health) []corev1alpha2.AppHealthCondition {
	said, healthy := false, true
	for _, app := range conditions {
		for _, component := range app.Components {
			said = true
			healthy = healthy && component.HealthStatus == corev1alpha2.StatusHealthy
		}
	}
	if said && healthy != (health == healthscope.Healthy) {
		return nil
	}
	return conditions
}

func summaryOf(s healthscope.Summary) corev1alpha2.Summary {
	return corev1alpha2.Summary{
		State: string(s.State()), Total: int32(s.Total), Ready: int32(s.Ready), Pending: int32(s.Pending), Failed: int32(s.Failed), Unknown: int32(s.Unknown),
	}
}

// setReferences writes OAM's view: a health condition for each reference, worst first.
func setReferences(s *corev1alpha2.HealthScopeStatus, v verdict) {
	c := corev1alpha2.ScopeHealthCondition{HealthStatus: oamHealth(v.health), Total: int64(len(v.refs))}
	conditions := make([]corev1alpha2.WorkloadHealthCondition, 0, len(v.refs))
	for _, r := range v.refs {
		condition := referenceCondition(r)
		switch condition.HealthStatus {
		case corev1alpha2.StatusHealthy:
			c.HealthyWorkloads++
		case corev1alpha2.StatusUnhealthy:
			c.UnhealthyWorkloads++
		case corev1alpha2.StatusUnknown:
			c.UnknownWorkloads++
		}
		conditions = append(conditions, condition)
	}
	slices.SortFunc(conditions, compareConditions)
	s.ScopeHealthCondition = c
	s.HealthConditions = bounded(conditions, corev1alpha2.MaxHealthConditions, &s.Truncated)
}

// oamHealth is OAM's word for a health.
func oamHealth(h healthscope.Health) corev1alpha2.HealthStatus {
	switch h {
	case healthscope.Healthy:
		return corev1alpha2.StatusHealthy
	case healthscope.HealthUnknown:
		return corev1alpha2.StatusUnknown
	case healthscope.Unhealthy:
	}
	return corev1alpha2.StatusUnhealthy
}

// compareConditions sorts unhealthy references before unknown ones, and these before healthy ones; then by name.
func compareConditions(a, b corev1alpha2.WorkloadHealthCondition) int {
	order := []corev1alpha2.HealthStatus{corev1alpha2.StatusUnhealthy, corev1alpha2.StatusUnknown, corev1alpha2.StatusHealthy}
	x, y := a.TargetWorkload, b.TargetWorkload
	return cmp.Or(
		cmp.Compare(slices.Index(order, a.HealthStatus), slices.Index(order, b.HealthStatus)),
		strings.Compare(x.APIVersion, y.APIVersion), strings.Compare(x.Kind, y.Kind), strings.Compare(x.Name, y.Name), strings.Compare(x.Cluster, y.Cluster),
		strings.Compare(a.ComponentName, b.ComponentName), strings.Compare(a.Diagnosis, b.Diagnosis), strings.Compare(x.Namespace, y.Namespace),
		strings.Compare(string(x.UID), string(y.UID)), strings.Compare(x.ResourceVersion, y.ResourceVersion), strings.Compare(x.FieldPath, y.FieldPath))
}

// referenceCondition is OAM's health of one reference: that of its members together.
func referenceCondition(r refVerdict) corev1alpha2.WorkloadHealthCondition {
	members, all := counted(r.members)
	all = sum(all, sumOf(r.unlisted))
	c := corev1alpha2.WorkloadHealthCondition{ComponentName: r.app, TargetWorkload: r.ref, HealthStatus: oamHealth(all.Health(100))}
	ready, desired := all.Ready, all.Total
	if len(members) == 1 && len(r.unlisted) == 0 {
		m := members[0]
		c.ComponentName = cmp.Or(m.Labels[labelComponent], r.app)
		if m.Replicas != nil {
			ready, desired = int(m.Replicas.Ready), int(m.Replicas.Desired)
		}
		if m.State == healthscope.Unknown || m.State == healthscope.NotPresent {
			c.Diagnosis = shorten(cmp.Or(m.Message, string(m.Reason)))
			return c
		}
	}
	c.Diagnosis = fmt.Sprintf("Ready:%d/%d ", ready, desired)
	if worst := worstOf(members); worst != nil {
		c.Diagnosis = shorten(c.Diagnosis + line(worst))
	}
	return c
}

// counted returns those members of a reference that count in the scope. A
// reference that leads to none of these has a health of its own: that of all it leads to.
func counted(of []Placed) (members []*healthscope.Member, all healthscope.Summary) {
	members = make([]*healthscope.Member, 0, len(of))
	for _, p := range of {
		if p.Contributes() {
			members = append(members, p.Member)
			all.Add(*p.Member)
		}
	}
	if len(members) > 0 {
		return members, all
	}
	for _, p := range of {
		m := *p.Member
		m.Owned = false
		members = append(members, &m)
		all.Add(m)
	}
	return members, all
}

// worstOf returns the worst member that is not healthy; nil when all are.
func worstOf(members []*healthscope.Member) *healthscope.Member {
	var worst *healthscope.Member
	for _, m := range members {
		if m.Healthy() {
			continue
		}
		if worst == nil || cmp.Or(healthscope.CompareStates(m.State, worst.State), m.Compare(worst.Key)) < 0 {
			worst = m
		}
	}
	return worst
}

// line puts a member into one line: Kind/name: reason.
func line(m *healthscope.Member) string {
	return fmt.Sprintf("%s: %s", m.Key, cmp.Or(string(m.Reason), string(m.State)))
}

// setApps writes the state of each app, in each cluster, worst first. An app of the spec is there also when nothing in it counts.
func setApps(s *corev1alpha2.HealthScopeStatus, v verdict, apps []corev1alpha2.ScopeApp) {
	type tally struct {
		all healthscope.Summary
		in  map[string]healthscope.Summary
	}
	tallies := map[string]tally{}
	for _, a := range apps {
		tallies[a.Name] = tally{in: map[string]healthscope.Summary{}}
	}
	for _, p := range v.members {
		if !p.Contributes() {
			continue
		}
		t, ok := tallies[p.App]
		if !ok {
			t.in = map[string]healthscope.Summary{}
		}
		t.all.Add(*p.Member)
		in := t.in[p.Cluster]
		in.Add(*p.Member)
		t.in[p.Cluster] = in
		tallies[p.App] = t
	}
	for _, u := range v.unlisted {
		t, ok := tallies[u.App]
		if !ok {
			t.in = map[string]healthscope.Summary{}
		}
		t.all = sum(t.all, u.Summary)
		t.in[u.Cluster] = sum(t.in[u.Cluster], u.Summary)
		tallies[u.App] = t
	}
	for name, t := range tallies {
		state := t.all.State()
		if t.all.Total == 0 { // What it leads to may count in another app.
			state = sum(summarize(v.membersOf(name)), v.unlistedOf(name)).State()
		}
		a := corev1alpha2.AppStatus{Name: name, State: string(state), Total: int32(t.all.Total), Ready: int32(t.all.Ready)}
		for cluster, in := range t.in {
			a.Clusters = append(a.Clusters, corev1alpha2.ClusterStatus{Name: cluster, State: string(in.State()), Total: int32(in.Total), Ready: int32(in.Ready)})
		}
		slices.SortFunc(a.Clusters, func(x, y corev1alpha2.ClusterStatus) int { return comparePlaces(x.State, y.State, x.Name, y.Name) })
		a.Clusters = bounded(a.Clusters, corev1alpha2.MaxAppClusters, &s.Truncated)
		s.Apps = append(s.Apps, a)
	}
	slices.SortFunc(s.Apps, func(x, y corev1alpha2.AppStatus) int { return comparePlaces(x.State, y.State, x.Name, y.Name) })
}

// comparePlaces sorts the worse state first, then by name.
func comparePlaces(stateA, stateB, nameA, nameB string) int {
	return cmp.Or(healthscope.CompareStates(healthscope.State(stateA), healthscope.State(stateB)), strings.Compare(nameA, nameB))
}

// setCulprits writes the culprits. nothing is the message for a scope that leads to nothing.
func setCulprits(s *corev1alpha2.HealthScopeStatus, v verdict, nothing string) {
	s.Culprits = slices.Clone(v.culprits)
	switch {
	case len(s.Culprits) > 0:
		s.FirstCulprit = culpritLine(s.Culprits[0])
	case len(v.absent) > 0:
		s.FirstCulprit = shorten(absentLine(v.absent))
	case v.summary.Healthy < v.summary.Total:
		s.FirstCulprit = "resources that their bundle has no room to name"
	default:
		s.FirstCulprit = shorten(nothing)
	}
	s.Culprits = bounded(s.Culprits, corev1alpha2.MaxCulprits, &s.Truncated)
}

// metaTime returns a time as a status has it, to the second.
func metaTime(t time.Time) *metav1.Time {
	at := metav1.NewTime(t.Truncate(time.Second))
	return &at
}

// culpritLine puts a culprit into one line.
func culpritLine(c corev1alpha2.Culprit) string {
	if isCluster(c) {
		return shorten(fmt.Sprintf("%s/%s: %s", c.Kind, c.Name, c.Reason))
	}
	return shorten(fmt.Sprintf("%s/%s in %s: %s", c.Kind, c.Name, c.Cluster, cmp.Or(c.Reason, c.State)))
}

// absentLine names the required apps that have no members.
func absentLine(apps []string) string {
	return "no resources in required apps: " + strings.Join(apps, ", ")
}

// clustersOf returns the clusters the scope has members in, or expects them in, sorted.
func clustersOf(v verdict) []string {
	clusters := map[string]struct{}{}
	for _, p := range v.members {
		clusters[p.Cluster] = struct{}{}
	}
	for _, u := range v.unlisted {
		clusters[u.Cluster] = struct{}{}
	}
	return slices.Sorted(maps.Keys(clusters))
}

// setConditions writes the conditions. Their messages hold no time and no order of chance, so that they do not change when nothing does.
func setConditions(s *corev1alpha2.HealthScopeStatus, v verdict, reach clusterReach, o outside, nothing string, now time.Time) {
	set := func(kind string, reason Reason, message string) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: statusFor(kind, reason), Reason: string(reason), Message: shorten(message), ObservedGeneration: s.ObservedGeneration, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		})
	}
	switch v.health {
	case healthscope.Healthy:
		set(corev1alpha2.ConditionReady, ReasonHealthy, s.ResourcesReady+" resources are ready")
	case healthscope.HealthUnknown:
		reason, message := whyUnknown(s, v, nothing)
		set(corev1alpha2.ConditionReady, reason, message)
	case healthscope.Unhealthy:
		reason, message := whyUnhealthy(s, v)
		set(corev1alpha2.ConditionReady, reason, message)
	}
	if len(reach.stale) == 0 {
		set(corev1alpha2.ConditionClustersReachable, ReasonAllReachable, "every cluster of the scope can be seen")
	} else {
		set(corev1alpha2.ConditionClustersReachable, reach.reason, reach.message)
	}
	switch {
	case o.inventory == nil:
		meta.RemoveStatusCondition(&s.Conditions, corev1alpha2.ConditionInventorySynced)
	case o.inventory.Waiting: // The condition stays as it is.
	case o.inventory.Reason == "":
		set(corev1alpha2.ConditionInventorySynced, ReasonSynced, "A&AI holds the state of every resource")
	default:
		set(corev1alpha2.ConditionInventorySynced, o.inventory.Reason, o.inventory.Message)
	}
	// These are there only when something is the matter.
	switch {
	case o.inventory != nil && o.inventory.Waiting: // As above: a restart must not take the condition away for a moment.
	case o.inventory != nil && o.inventory.Conflict != "":
		set(corev1alpha2.ConditionInventoryConflict, ReasonOlderScope, o.inventory.Conflict)
	default:
		meta.RemoveStatusCondition(&s.Conditions, corev1alpha2.ConditionInventoryConflict)
	}
	setOrRemove := func(kind string, reason Reason, message string) {
		if message == "" {
			meta.RemoveStatusCondition(&s.Conditions, kind)
			return
		}
		set(kind, reason, message)
	}
	setOrRemove(corev1alpha2.ConditionStalled, ReasonMembersFailed, whyStalled(s, v))
	setOrRemove(corev1alpha2.ConditionHealthChecksInvalid, ReasonInvalidExpression, o.healthChecks)
	setOrRemove(corev1alpha2.ConditionStatusContested, ReasonOtherController, contestNote(o.contestedBy))
}

// firstUnknown returns the first culprit that cannot be judged, in one line.
func firstUnknown(culprits []corev1alpha2.Culprit) string {
	for _, c := range culprits {
		if c.State == string(healthscope.Unknown) {
			return culpritLine(c)
		}
	}
	return "see the culprits"
}

// whyStalled returns the message of the condition Stalled; it is empty when no member has failed, or when the scope is not unhealthy.
func whyStalled(s *corev1alpha2.HealthScopeStatus, v verdict) string {
	if v.health != healthscope.Unhealthy || v.summary.Failed == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d resources have failed: %s", v.summary.Failed, v.summary.Total, s.FirstCulprit)
}

// whyUnhealthy returns reason and message of a scope that is unhealthy.
func whyUnhealthy(s *corev1alpha2.HealthScopeStatus, v verdict) (reason Reason, message string) {
	if len(v.absent) > 0 {
		return ReasonRequiredAppMissing, absentLine(v.absent)
	}
	reason = ReasonMembersPending
	if v.summary.Failed > 0 {
		reason = ReasonMembersFailed
	}
	serving := ""
	if n := v.summary.Healthy - v.summary.Ready; n > 0 { // Else the numbers would not add up to those beside them.
		serving = fmt.Sprintf("; %s pending and serving, %s ready", are(n), are(v.summary.Ready))
	}
	return reason, fmt.Sprintf("%d of %d resources are not healthy%s: %s", v.summary.Total-v.summary.Healthy, v.summary.Total, serving, s.FirstCulprit)
}

// are returns a number with the verb that goes with it.
func are(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}
