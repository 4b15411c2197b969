package scope

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// AppMember is a judged member of a scope, with its place in it.
type AppMember struct {
	// Member is shared with all others who have the member: the bundle that it is in, and other scopes. It must not be changed.
	*healthscope.Member
	// App is the app of the scope the member belongs to; empty for references outside apps.
	App string
	// Links are the app's links into the inventory; nil when it has none.
	Links *corev1alpha2.InventoryLinks
	// Ignored is true when the scope's roll-up says that the member does not count.
	Ignored bool
}

// Contributes reports whether the member counts in the scope's health.
func (p AppMember) Contributes() bool { return !p.Owned && !p.Ignored }

// isUnhealthy reports whether the member keeps the scope from being healthy.
func (p AppMember) isUnhealthy() bool { return p.Contributes() && !p.Healthy() }

// judgement is the health of a scope, with everything that its status reports.
type judgement struct {
	// members are all members, each object once, worst first.
	members []AppMember
	// culprits keep the scope from being healthy, worst first.
	culprits []corev1alpha2.Culprit
	// refs are the scope's references with the members of each.
	refs []refJudgement
	// health is the health of the scope.
	health healthscope.Health
	// unlisted counts what truncated bundles do not name, each bundle once, and what is carried over.
	unlisted []Unlisted
	// carriedOver counts the unnamed resources of the previous status in clusters that have not been read.
	carriedOver []Unlisted
	// linkedApps are the apps that name a module of a VNF.
	linkedApps []LinkedApp
	// truncated is true when a bundle does not name all its resources.
	truncated bool
	// partial are the clusters in which bundles do not name all resources, sorted.
	partial []string
	// firstSyncs is how many clusters had been read for the first time before it was gathered.
	firstSyncs uint64
	// summary counts the members that contribute, and the unlisted ones.
	summary healthscope.Summary
	// missingRequired are the required apps without members, sorted, and then the required components without members, sorted.
	missingRequired []string
	// emptyApps are the apps of the spec that lead to nothing, sorted.
	emptyApps []string
	// hints holds, by app, why its selector matches nothing.
	hints map[string]string
	// probesCondition is the condition on the probes that the scope requests.
	probesCondition probesCondition
	// nextCheck is when the judgement may change by time alone; zero means never.
	nextCheck time.Time
}

// refJudgement is the health of one reference.
type refJudgement struct {
	finding

	// placed are the members that it leads to.
	placed []AppMember
}

// decide judges the gathered results and rolls them up. The order of the findings makes no difference.
//
// An object that several findings lead to counts once, in the app whose name sorts first; no app sorts last. It has
// the links of the first of these apps that has any.
func decide(spec *corev1alpha2.HealthScopeSpec, g gathered, m *history, policy healthscope.Policy, now time.Time) judgement {
	var v judgement
	judged := v.judge(g, m, policy, now)
	findings := slices.Clone(g.findings)
	slices.SortStableFunc(findings, func(a, b finding) int { return compareApps(a.app, b.app) })
	places := v.place(findings, judged)
	for i := range v.members {
		p := &v.members[i]
		p.Ignored = ignored(spec.Rollup, p.Key, p.App)
	}
	for i, f := range findings {
		if f.duplicate {
			continue
		}
		r := refJudgement{f, make([]AppMember, 0, len(places[i]))}
		for _, at := range places[i] {
			r.placed = append(r.placed, v.members[at])
		}
		v.refs = append(v.refs, r)
	}
	slices.SortFunc(v.members, compareMembers)
	v.unlisted = placeUnlisted(findings)
	v.addCarriedOver(g.carriedOver)
	v.linkedApps = v.linkedAppsOf(findings)
	v.truncated = slices.ContainsFunc(findings, func(f finding) bool { return f.truncated })
	v.partial, v.firstSyncs, v.hints = partialIn(findings), g.firstSyncs, g.hints
	v.culprits = v.culpritsOf(g.stale)
	v.summary = summarize(v.members)
	for _, u := range v.unlisted {
		v.summary = sum(v.summary, u.Summary)
	}
	v.emptyApps = v.appsWithoutMembers(spec)
	v.probesCondition = g.probesCondition
	v.applyRollup(spec)
	return v
}

// place adds the members of findings to the scope, each object once, and returns their indexes by finding. It looks objects up
// by key only in clusters with more than one source, because the look-up is most of the work in a large scope.
func (v *judgement) place(findings []finding, judged map[healthscope.Key]*healthscope.Member) [][]int {
	sources := map[string]int{}
	most := 0
	for _, f := range findings {
		most += len(f.members) + len(f.results)
		for _, cluster := range f.clusters {
			sources[cluster]++
		}
		for _, r := range f.results {
			sources[r.Cluster]++
		}
	}
	v.members = make([]AppMember, 0, most)
	known := map[healthscope.Key]int{}
	places := make([][]int, len(findings))
	for i, f := range findings {
		places[i] = make([]int, 0, len(f.members)+len(f.results))
		addResult := func(m *healthscope.Member) {
			at, unique := len(v.members), sources[m.Cluster] == 1
			if !unique {
				if before, ok := known[m.Key]; ok {
					at = before
				} else {
					known[m.Key] = at
				}
			}
			if at == len(v.members) {
				v.members = append(v.members, AppMember{Member: m, App: f.appOf(m), Links: f.links})
			}
			p := &v.members[at]
			p.Links = cmp.Or(p.Links, f.links)
			if compareResults(m, p.Member) < 0 {
				p.Member = m
			}
			places[i] = append(places[i], at)
		}
		for _, m := range f.members {
			addResult(m)
		}
		for _, r := range f.results {
			addResult(judged[r.Key])
		}
	}
	return places
}

// judge judges each result separately, so that a pod that is referred to counts even if its owner is referred to as well.
func (v *judgement) judge(g gathered, m *history, policy healthscope.Policy, now time.Time) map[healthscope.Key]*healthscope.Member {
	judged := map[healthscope.Key]*healthscope.Member{}
	var members []healthscope.Member
	for _, r := range m.withHistory(g.findings, policy, now) {
		single := healthscope.Judge([]healthscope.Result{r}, policy, now)
		if pods, looked := g.pods.diagnoses[r.Key]; looked {
			single.Members[0].Cause = causeOf(&single.Members[0], pods.Cause)
		}
		judged[r.Key] = &single.Members[0]
		members = append(members, single.Members[0])
		v.nextCheck = earlier(v.nextCheck, single.NextCheck)
	}
	m.previous = members
	v.nextCheck = earlier(v.nextCheck, g.pods.next)
	return judged
}

// compareApps sorts apps by name, and what is outside apps after them.
func compareApps(a, b string) int {
	return cmp.Or(cmp.Compare(boolInt(a == ""), boolInt(b == "")), strings.Compare(a, b))
}

// compareResults sorts the results on one object by preference: first one from a readable source, then one that knows the
// object's owner or pods, then the worse one. The other fields make the order complete; time is the last of them, because
// after a restart one result takes over the time of the other.
func compareResults(a, b *healthscope.Member) int {
	if a == b {
		return 0
	}
	return cmp.Or(
		fleet.CompareReadable(a.Result, b.Result), boolInt(b.Owned)-boolInt(a.Owned), boolInt(b.Cause != "")-boolInt(a.Cause != ""), healthscope.CompareStates(a.State, b.State),
		strings.Compare(string(a.Reason), string(b.Reason)), strings.Compare(a.Message, b.Message), strings.Compare(a.Cause, b.Cause),
		strings.Compare(a.UID, b.UID), strings.Compare(a.Version, b.Version), boolInt(a.Since.IsZero())-boolInt(b.Since.IsZero()), a.Since.Compare(b.Since))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compareMembers(a, b AppMember) int {
	return cmp.Or(healthscope.CompareStates(a.State, b.State), strings.Compare(a.App, b.App), a.Compare(b.Key))
}

// ignored reports whether the scope's roll-up ignores an object of an app.
func ignored(rollup *corev1alpha2.Rollup, key healthscope.Key, app string) bool {
	if rollup == nil {
		return false
	}
	matches := func(pattern, value string) bool { return pattern == "" || pattern == value }
	return slices.ContainsFunc(rollup.Ignore, func(m corev1alpha2.MemberMatch) bool {
		return matches(m.Group, key.Group) && matches(m.Kind, key.Kind) && matches(m.Name, key.Name) && matches(m.App, app)
	})
}

func summarize(members []AppMember) healthscope.Summary {
	var s healthscope.Summary
	for _, p := range members {
		if !p.Ignored {
			s.Add(*p.Member)
		}
	}
	return s
}

// applyRollup applies the scope's roll-up: enough members must be healthy, and all those of required apps. The health of an app that leads to nothing is not known.
func (v *judgement) applyRollup(spec *corev1alpha2.HealthScopeSpec) {
	rollup := spec.Rollup
	if rollup == nil {
		rollup = &corev1alpha2.Rollup{}
	}
	v.health = v.summary.Health(healthyPercentage(spec))
	if len(v.emptyApps) > 0 {
		v.health = healthscope.WorseHealth(v.health, healthscope.HealthUnknown)
	}
	for _, app := range slices.Sorted(slices.Values(rollup.Required)) {
		v.require(app, v.summaryOf(app))
	}
	for _, component := range slices.Sorted(slices.Values(spec.RequiredHealthyComponents)) {
		v.require(component, summarize(v.membersOfComponent(component)))
	}
}

// require makes the scope at most as healthy as the members of a required app or component. Without members, the scope is unhealthy.
func (v *judgement) require(name string, members healthscope.Summary) {
	v.health = healthscope.WorseHealth(v.health, members.Health(100))
	if members.Total == 0 {
		v.health = healthscope.Unhealthy
		v.missingRequired = append(v.missingRequired, name)
	}
}

// healthyPercentage returns the share of members that must be healthy, in percent.
func healthyPercentage(spec *corev1alpha2.HealthScopeSpec) float64 {
	switch p := spec.HealthThresholdPercentage; {
	case spec.Rollup != nil && spec.Rollup.HealthyPercentage != nil:
		return float64(*spec.Rollup.HealthyPercentage)
	case p != nil && probe.CheckRollup(spec) == nil:
		return *p
	}
	return 100
}

// membersOfComponent returns the members of an OAM component, which their label names, or else their app.
func (v *judgement) membersOfComponent(component string) (members []AppMember) {
	for _, p := range v.members {
		if cmp.Or(p.Labels[corev1alpha2.LabelComponent], p.App) == component {
			members = append(members, p)
		}
	}
	return members
}

// membersOf returns the members that the references and bundles of an app lead to, also those that count in another app.
func (v *judgement) membersOf(app string) []AppMember {
	var members []AppMember
	seen := map[healthscope.Key]struct{}{}
	for _, r := range v.refs {
		for _, p := range r.placed {
			if _, ok := seen[p.Key]; !ok && (r.app == app || p.App == app) {
				seen[p.Key] = struct{}{}
				members = append(members, p)
			}
		}
	}
	return members
}

// summaryOf counts all that an app leads to, also what counts in another app and what has no name.
func (v *judgement) summaryOf(app string) healthscope.Summary {
	return sum(summarize(v.membersOf(app)), v.unlistedOf(app))
}

// earlier returns the earlier of two times; a zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
