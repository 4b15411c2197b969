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

// Placed is a judged member of a scope, with its place in it.
type Placed struct {
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
func (p Placed) Contributes() bool { return !p.Owned && !p.Ignored }

// isUnhealthy reports whether the member keeps the scope from being healthy.
func (p Placed) isUnhealthy() bool { return p.Contributes() && !p.Healthy() }

// judgement is what a scope comes to.
type judgement struct {
	// members are all members, each object once, worst first.
	members []Placed
	// culprits are what keeps the scope from being healthy, worst first.
	culprits []corev1alpha2.Culprit
	// refs are the scope's references with the members of each.
	refs []refJudgement
	// health is the health of the scope.
	health healthscope.Health
	// unlisted counts what truncated bundles do not name, each bundle once, and what is carried over.
	unlisted []Unlisted
	// carriedOver counts what the scope's status counts in clusters that have not been read, and nothing names.
	carriedOver []Unlisted
	// linkedApps are the apps that name a module of a VNF.
	linkedApps []LinkedApp
	// truncated is true when a bundle does not name all its resources.
	truncated bool
	// partial are the clusters in which bundles do not name all resources, sorted.
	partial []string
	// arrivals is how many clusters had been read for the first time before it was gathered.
	arrivals uint64
	// summary counts the members that contribute, and the unlisted ones.
	summary healthscope.Summary
	// absent are the apps that are required and have no members, sorted.
	absent []string
	// without are the apps of the spec that lead to nothing, sorted.
	without []string
	// hints say of apps, by name, why their selectors match nothing.
	hints map[string]string
	// probing is whether the probes that the scope asks for are made.
	probing probing
	// nextCheck is when the judgement may change if nothing else does; zero means never.
	nextCheck time.Time
}

// refJudgement is the health of one reference.
type refJudgement struct {
	finding

	// placed are the members that it leads to.
	placed []Placed
}

// decide judges what was gathered and weighs it. The order of the findings makes no difference.
//
// An object that several findings lead to counts once: in the app with the first
// name, an app before none, and with that app's links, or else the next one's.
func decide(spec *corev1alpha2.HealthScopeSpec, g gathered, m *memory, policy healthscope.Policy, now time.Time) judgement {
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
		if f.aside {
			continue
		}
		r := refJudgement{f, make([]Placed, 0, len(places[i]))}
		for _, at := range places[i] {
			r.placed = append(r.placed, v.members[at])
		}
		v.refs = append(v.refs, r)
	}
	slices.SortFunc(v.members, worstFirst)
	v.unlisted = placeUnlisted(findings)
	v.addCarriedOver(g.carriedOver)
	v.linkedApps = v.linked(findings)
	v.truncated = slices.ContainsFunc(findings, func(f finding) bool { return f.truncated })
	v.partial, v.arrivals, v.hints = partialIn(findings), g.arrivals, g.hints
	v.culprits = v.culpritsOf(g.stale)
	v.summary = summarize(v.members)
	for _, u := range v.unlisted {
		v.summary = sum(v.summary, u.Summary)
	}
	v.without = v.withoutMembers(spec)
	v.probing = g.probing
	v.weigh(spec)
	return v
}

// place makes the members of findings those of the scope, each object once, and returns by finding which they are. Objects
// are looked up by their keys only where there may be two answers on one: in a large scope that is most of the work.
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
	v.members = make([]Placed, 0, most)
	known := map[healthscope.Key]int{}
	places := make([][]int, len(findings))
	for i, f := range findings {
		places[i] = make([]int, 0, len(f.members)+len(f.results))
		answer := func(m *healthscope.Member) {
			at, alone := len(v.members), sources[m.Cluster] == 1
			if !alone {
				if before, ok := known[m.Key]; ok {
					at = before
				} else {
					known[m.Key] = at
				}
			}
			if at == len(v.members) {
				v.members = append(v.members, Placed{Member: m, App: f.appOf(m), Links: f.links})
			}
			p := &v.members[at]
			p.Links = cmp.Or(p.Links, f.links)
			if compareKnowledge(m, p.Member) < 0 {
				p.Member = m
			}
			places[i] = append(places[i], at)
		}
		for _, m := range f.members {
			answer(m)
		}
		for _, r := range f.results {
			answer(judged[r.Key])
		}
	}
	return places
}

// judge judges results each by itself: a pod that is referred to counts, also beside a reference to its owner.
func (v *judgement) judge(g gathered, m *memory, policy healthscope.Policy, now time.Time) map[healthscope.Key]*healthscope.Member {
	judged := map[healthscope.Key]*healthscope.Member{}
	var members []healthscope.Member
	for _, r := range m.resume(g.findings, policy, now) {
		alone := healthscope.Judge([]healthscope.Result{r}, policy, now)
		if pods, looked := g.pods.diagnoses[r.Key]; looked {
			alone.Members[0].Cause = causeOf(&alone.Members[0], pods.Cause)
		}
		judged[r.Key] = &alone.Members[0]
		members = append(members, alone.Members[0])
		v.nextCheck = earlier(v.nextCheck, alone.NextCheck)
	}
	m.before = members
	v.nextCheck = earlier(v.nextCheck, g.pods.next)
	return judged
}

// compareApps sorts apps by name, and what is outside apps after them.
func compareApps(a, b string) int {
	return cmp.Or(cmp.Compare(boolInt(a == ""), boolInt(b == "")), strings.Compare(a, b))
}

// compareKnowledge sorts answers on one object: first the one that has seen it at
// all, then the one that has seen its owner or its pods, then the worse one. The rest makes the order complete; time
// comes last in it, because after a restart one answer takes over the other's time.
func compareKnowledge(a, b *healthscope.Member) int {
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

func worstFirst(a, b Placed) int {
	return cmp.Or(healthscope.CompareStates(a.State, b.State), strings.Compare(a.App, b.App), a.Compare(b.Key))
}

// ignored reports whether the scope's roll-up leaves an object of an app out.
func ignored(rollup *corev1alpha2.Rollup, key healthscope.Key, app string) bool {
	if rollup == nil {
		return false
	}
	matches := func(pattern, value string) bool { return pattern == "" || pattern == value }
	return slices.ContainsFunc(rollup.Ignore, func(m corev1alpha2.MemberMatch) bool {
		return matches(m.Group, key.Group) && matches(m.Kind, key.Kind) && matches(m.Name, key.Name) && matches(m.App, app)
	})
}

func summarize(members []Placed) healthscope.Summary {
	var s healthscope.Summary
	for _, p := range members {
		if !p.Ignored {
			s.Add(*p.Member)
		}
	}
	return s
}

// weigh applies the scope's roll-up: enough members must be healthy, and all those of required apps. The health of an app that leads to nothing is not known.
func (v *judgement) weigh(spec *corev1alpha2.HealthScopeSpec) {
	rollup := spec.Rollup
	if rollup == nil {
		rollup = &corev1alpha2.Rollup{}
	}
	v.health = v.summary.Health(healthyPercentage(spec))
	if len(v.without) > 0 {
		v.health = healthscope.WorseHealth(v.health, healthscope.HealthUnknown)
	}
	for _, app := range slices.Sorted(slices.Values(rollup.Required)) {
		v.require(app, v.summaryOf(app))
	}
	for _, component := range slices.Sorted(slices.Values(spec.RequiredHealthyComponents)) {
		v.require(component, summarize(v.membersOfComponent(component)))
	}
}

// require makes the scope at most as healthy as all members of an app, or component, that must be healthy. It has to be there.
func (v *judgement) require(name string, members healthscope.Summary) {
	v.health = healthscope.WorseHealth(v.health, members.Health(100))
	if members.Total == 0 {
		v.health = healthscope.Unhealthy
		v.absent = append(v.absent, name)
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

// membersOfComponent returns the members that are of an OAM component, by its label, or else by the app.
func (v *judgement) membersOfComponent(component string) (members []Placed) {
	for _, p := range v.members {
		if cmp.Or(p.Labels[corev1alpha2.LabelComponent], p.App) == component {
			members = append(members, p)
		}
	}
	return members
}

// membersOf returns the members that the references and bundles of an app lead to, also those that count in another app.
func (v *judgement) membersOf(app string) []Placed {
	var members []Placed
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

// earlier returns the earlier of two moments, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
