package scope

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// judgement is the health of a scope, with everything that its status reports.
type judgement struct {
	Judged

	// culprits keep the scope from being healthy, worst first.
	culprits []corev1alpha2.Culprit
	// refs are the scope's references with the members of each.
	refs []refJudgement
	// carriedOver counts the unnamed resources of the previous status in clusters that have not been read; Unlisted has them too.
	carriedOver []Unlisted
	// truncated is true when a bundle does not name all its resources.
	truncated bool
	// counts are the members that contribute and the unlisted ones, by the app in which they count and their cluster; summary is their sum.
	counts  map[appCluster]healthscope.Summary
	summary healthscope.Summary
	// missingRequired are the required apps without members, sorted, and then the required components without members, sorted.
	missingRequired []string
	// emptyApps are the apps of the spec that lead to nothing, sorted.
	emptyApps []string
	// probesCondition is the condition on the probes that the scope requests.
	probesCondition conditionState
	// nextCheck is when the judgement may change by time alone; zero means never.
	nextCheck time.Time
}

// refJudgement is the health of one reference.
type refJudgement struct {
	*finding

	// placed are the members that it leads to, and unlisted counts what its bundles do not name.
	placed   []AppMember
	unlisted healthscope.Summary
}

// decide judges the gathered results and rolls them up. The order of the findings makes no difference.
//
// An object that several findings lead to counts once, in the app whose name sorts first; no app sorts last. It has
// the links of the first of these apps that has any.
func decide(spec *corev1alpha2.HealthScopeSpec, g gathered, m *history, policy healthscope.Policy, now time.Time) judgement {
	var v judgement
	findings := slices.Clone(g.findings)
	slices.SortStableFunc(findings, func(a, b *finding) int { // What is outside apps comes last.
		return cmp.Or(boolInt(a.app == "")-boolInt(b.app == ""), strings.Compare(a.app, b.app))
	})
	places := v.place(findings, v.judge(g, m, policy, now))
	for i := range v.Members {
		p := &v.Members[i]
		p.Ignored = ignored(spec.Rollup, p.Key, p.App)
	}
	for i, f := range findings {
		if f.duplicate {
			continue
		}
		r := refJudgement{finding: f, placed: make([]AppMember, 0, len(places[i]))}
		for _, at := range places[i] {
			r.placed = append(r.placed, v.Members[at])
		}
		for _, b := range f.bundles {
			r.unlisted = sum(r.unlisted, b.Unlisted)
			v.truncated = v.truncated || b.Truncated
		}
		v.refs = append(v.refs, r)
	}
	slices.SortFunc(v.Members, func(a, b AppMember) int {
		return cmp.Or(healthscope.CompareStates(a.State, b.State), strings.Compare(a.App, b.App), a.Compare(b.Key))
	})
	v.count(findings, g.carriedOver)
	v.LinkedApps = v.linkedAppsOf(findings)
	v.Partial, v.FirstSyncs, v.probesCondition = partialIn(findings), g.firstSyncs, g.probesCondition
	if v.culprits = v.culpritsOf(g.stale); len(v.culprits) > 0 {
		v.FirstCulprit = new(v.culprits[0])
	}
	v.State = v.summary.State()
	v.emptyApps = v.appsWithoutMembers(spec)
	v.applyRollup(spec)
	return v
}

// place adds the members of findings to the scope, each object once, and returns their indexes by finding. It looks objects up
// by key only in clusters with more than one source, because the look-up is most of the work in a large scope.
func (v *judgement) place(findings []*finding, judged map[healthscope.Key]*healthscope.Member) (places [][]int) {
	sources, most := map[string]int{}, 0
	places = make([][]int, len(findings))
	for i, f := range findings {
		size := len(f.results)
		for _, b := range f.bundles {
			sources[b.Cluster]++
			size += len(b.Members)
		}
		for j := range f.results {
			sources[f.results[j].Cluster]++
		}
		places[i] = make([]int, 0, size)
		most += size
	}
	v.Members = make([]AppMember, 0, most)
	known := map[healthscope.Key]int{}
	for i, f := range findings {
		byComponent := f.byComponent()
		add := func(m *healthscope.Member) {
			at, again := len(v.Members), false
			if sources[m.Cluster] > 1 {
				if at, again = known[m.Key]; !again {
					at = len(v.Members)
					known[m.Key] = at
				}
			}
			if !again {
				app := f.app
				if byComponent {
					app = m.Labels[corev1alpha2.LabelComponent]
				}
				v.Members = append(v.Members, AppMember{Member: m, App: app})
			}
			p := &v.Members[at]
			p.Links = cmp.Or(p.Links, f.links)
			if compareResults(m, p.Member) < 0 {
				p.Member = m
			}
			places[i] = append(places[i], at)
		}
		for _, b := range f.bundles {
			for j := range b.Members {
				add(&b.Members[j])
			}
		}
		for j := range f.results {
			add(judged[f.results[j].Key])
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
		if pods, looked := g.pods[r.Key]; looked {
			single.Members[0].Cause = causeOf(&single.Members[0], pods.Cause)
		}
		judged[r.Key] = &single.Members[0]
		members = append(members, single.Members[0])
		v.nextCheck = earlier(v.nextCheck, single.NextCheck)
	}
	m.previous = members
	v.nextCheck = earlier(v.nextCheck, g.nextPods)
	return judged
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

// applyRollup applies the scope's roll-up: enough members must be healthy, and all those of required apps. The health of an app that leads to nothing is not known.
func (v *judgement) applyRollup(spec *corev1alpha2.HealthScopeSpec) {
	rollup := spec.Rollup
	if rollup == nil {
		rollup = &corev1alpha2.Rollup{}
	}
	v.Health = v.summary.Health(healthyPercentage(spec))
	if len(v.emptyApps) > 0 {
		v.Health = healthscope.WorseHealth(v.Health, healthscope.HealthUnknown)
	}
	for _, app := range slices.Sorted(slices.Values(rollup.Required)) {
		v.require(app, v.summaryOf(app))
	}
	for _, component := range slices.Sorted(slices.Values(spec.RequiredHealthyComponents)) {
		var members healthscope.Summary
		for _, p := range v.Members {
			if !p.Ignored && cmp.Or(p.Labels[corev1alpha2.LabelComponent], p.App) == component {
				members.Add(*p.Member)
			}
		}
		v.require(component, members)
	}
}

// require makes the scope at most as healthy as the members of a required app or component. Without members, the scope is unhealthy.
func (v *judgement) require(name string, members healthscope.Summary) {
	v.Health = healthscope.WorseHealth(v.Health, members.Health(100))
	if members.Total == 0 {
		v.Health = healthscope.Unhealthy
		v.missingRequired = append(v.missingRequired, name)
	}
}

func healthyPercentage(spec *corev1alpha2.HealthScopeSpec) float64 {
	switch p := spec.HealthThresholdPercentage; {
	case spec.Rollup != nil && spec.Rollup.HealthyPercentage != nil:
		return float64(*spec.Rollup.HealthyPercentage)
	case p != nil && probe.CheckRollup(spec) == nil:
		return *p
	}
	return 100
}

// summaryOf counts all that the references and bundles of an app lead to, also what counts in another app and what has no name.
func (v *judgement) summaryOf(app string) (all healthscope.Summary) {
	members, bundles := sets.New[healthscope.Key](), sets.New[fleet.BundleKey]()
	for _, r := range v.refs {
		for _, p := range r.placed {
			if (r.app == app || p.App == app) && !p.Ignored && !members.Has(p.Key) {
				members.Insert(p.Key)
				all.Add(*p.Member)
			}
		}
		for _, b := range r.bundles {
			if r.app == app && !bundles.Has(b.BundleKey) {
				bundles.Insert(b.BundleKey)
				all = sum(all, b.Unlisted)
			}
		}
	}
	for _, u := range v.carriedOver {
		if u.App == app {
			all = sum(all, u.Summary)
		}
	}
	return all
}

// appsWithoutMembers returns the apps of a spec that lead to nothing, sorted. Apps that the roll-up ignores are left out.
func (v *judgement) appsWithoutMembers(spec *corev1alpha2.HealthScopeSpec) []string {
	if len(spec.Apps) == 0 {
		return nil
	}
	found := map[string]bool{}
	for _, r := range v.refs {
		found[r.app] = found[r.app] || len(r.placed) > 0 || r.unlisted.Total > 0
	}
	var empty []string
	for _, a := range spec.Apps {
		if !found[a.Name] && !ignored(spec.Rollup, healthscope.Key{}, a.Name) {
			empty = append(empty, a.Name)
		}
	}
	slices.Sort(empty)
	return empty
}

// count counts the members that contribute, and what has no name. What the bundles of findings do not name counts once for each
// bundle, in the first app that leads to it; the findings must be sorted by app. Of what the previous status counts, the rest
// counts without a name, so that the total of an app in a cluster stays the same in this status and in those that are computed from it.
func (v *judgement) count(findings []*finding, carriedOver []Unlisted) {
	v.counts = map[appCluster]healthscope.Summary{}
	for _, p := range v.Members {
		if p.Contributes() {
			at := appCluster{p.App, p.Cluster}
			n := v.counts[at]
			n.Add(*p.Member)
			v.counts[at] = n
		}
	}
	unlisted, bundles := map[appCluster]healthscope.Summary{}, sets.New[fleet.BundleKey]()
	for _, f := range findings {
		for _, b := range f.bundles {
			if b.Unlisted.Total > 0 && !bundles.Has(b.BundleKey) {
				bundles.Insert(b.BundleKey)
				at := appCluster{f.app, b.Cluster}
				unlisted[at] = sum(unlisted[at], b.Unlisted)
			}
		}
	}
	for at, s := range unlisted {
		v.Unlisted = append(v.Unlisted, Unlisted{App: at.app, Cluster: at.cluster, Summary: s})
		v.counts[at] = sum(v.counts[at], s)
	}
	slices.SortFunc(v.Unlisted, func(a, b Unlisted) int {
		return cmp.Or(strings.Compare(a.App, b.App), strings.Compare(a.Cluster, b.Cluster))
	})
	for _, u := range carriedOver {
		at := appCluster{u.App, u.Cluster}
		if rest := u.Summary.Total - v.counts[at].Total; rest > 0 {
			u.Summary = healthscope.Summary{Total: rest, Unknown: rest}
			v.carriedOver = append(v.carriedOver, u)
			v.counts[at] = sum(v.counts[at], u.Summary)
		}
	}
	v.Unlisted = append(v.Unlisted, v.carriedOver...)
	for _, n := range v.counts {
		v.summary = sum(v.summary, n)
	}
}

// appCluster is an app in a cluster.
type appCluster struct{ app, cluster string }

// partialIn returns the clusters in which the bundles of findings do not name all resources: they are truncated, malformed,
// not filled, or have not been read since the hub started. A cluster that is not known any more is not among them.
func partialIn(findings []*finding) []string {
	clusters := sets.New[string]()
	for _, f := range findings {
		clusters.Insert(f.partial...)
		for _, r := range f.results {
			if r.Kind == k8spluginv1alpha1.ResourceBundleStateKind && r.State == healthscope.Unknown && r.Reason != healthscope.ReasonUnknownCluster {
				clusters.Insert(r.Cluster)
			}
		}
	}
	return slices.Sorted(maps.Keys(clusters))
}

func sum(a, b healthscope.Summary) healthscope.Summary {
	return healthscope.Summary{
		Total: a.Total + b.Total, Ready: a.Ready + b.Ready, Pending: a.Pending + b.Pending, Failed: a.Failed + b.Failed,
		Unknown: a.Unknown + b.Unknown, Healthy: a.Healthy + b.Healthy,
	}
}

// linkedAppsOf returns the apps of findings that name a module, sorted by app.
func (v *judgement) linkedAppsOf(findings []*finding) []LinkedApp {
	links := map[string]corev1alpha2.InventoryLinks{}
	for _, f := range findings {
		if f.links != nil && f.links.GenericVNFID != "" && f.links.VFModuleID != "" {
			links[f.app] = *f.links
		}
	}
	var all []LinkedApp
	for _, app := range slices.Sorted(maps.Keys(links)) {
		all = append(all, LinkedApp{Links: links[app], Summary: v.summaryOf(app)})
	}
	return all
}
