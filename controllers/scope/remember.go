package scope

import (
	"cmp"
	"fmt"
	"slices"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// recollection is what the scope's own status says of an app in a cluster that cannot be read.
type recollection struct {
	corev1alpha2.ClusterStatus

	// app is the app's index.
	app   int
	state fleet.ClusterState
	// takers are those findings of the app, by index, whose references to bundles may lead into the cluster, and empty says which of them have found nothing anywhere.
	takers []int
	empty  []bool
	// results are the culprits that the status names and nothing else has led to, and standIns the bundles that stand for what has no name.
	results  []healthscope.Result
	standIns map[healthscope.Key]healthscope.Result
	// first is the first of all these.
	first *healthscope.Result
	// forgotten is how many culprits are ignored by now.
	forgotten int
}

// remembered adds what the scope's own status says of clusters that cannot be
// read and have not been since the hub started, or since their Secret came: of
// others, the view has what was known last.
//
// The status is made from what is added here, and this from the status. So it
// must come to as many resources as before, or they would become more, or less, with each write.
func (g *gatherer) remembered() {
	all := g.recollections()
	if len(all) == 0 || g.out.settling > 0 {
		return // A scope that waits is not judged.
	}
	held := g.holdings(all)
	for i := range all {
		g.recall(&all[i], held)
	}
	// An object counts in the first app that leads to it: what others have left is known once this one is done.
	slices.SortStableFunc(all, func(a, b recollection) int { return compareApps(g.apps[a.app].name, g.apps[b.app].name) })
	for i := range all {
		g.remember(&all[i], held)
	}
}

// recollections returns what there is to remember, of apps that may still have members there.
func (g *gatherer) recollections() []recollection {
	var all []recollection
	changed := g.scope.Status.ObservedGeneration != g.scope.Generation
	for _, a := range g.scope.Status.Apps {
		for _, c := range a.Clusters {
			g.await(c.Name)
			state, unseen := g.unseen(c.Name)
			at := slices.IndexFunc(g.apps, func(x gatheredApp) bool { return x.name == a.Name })
			switch {
			case !unseen || state.Arrival > 0 || c.Total <= 0:
				continue
			case changed && (at < 0 || !g.leadsTo(&g.apps[at], c.Name)):
				continue // Of the same spec, an app that leads nowhere there had bundles that said so themselves.
			case at < 0:
				at = len(g.apps)
				g.apps = append(g.apps, newAppByLabel(a.Name))
			}
			if !g.takesFrom(&g.apps[at], c.Name) {
				continue
			}
			r := recollection{ClusterStatus: c, app: at, state: state, standIns: map[healthscope.Key]healthscope.Result{}}
			for _, i := range g.apps[at].toBundles {
				if f := &g.out.findings[i]; f.ref.Cluster == "" || f.ref.Cluster == c.Name {
					f.nothing = f.empty()
					r.takers, r.empty = append(r.takers, i), append(r.empty, f.nothing && !g.saidMissing(f.app, f.missing.Key))
				}
			}
			all = append(all, r)
		}
	}
	return all
}

// saidMissing says whether the status names a bundle of an app as one that does not exist.
func (g *gatherer) saidMissing(app string, bundle healthscope.Key) bool {
	if g.absent == nil {
		g.absent = map[inApp]struct{}{}
		for _, c := range g.scope.Status.Culprits {
			if c.Reason == string(healthscope.ReasonNotFound) {
				g.absent[inApp{keyOf(c), c.App}] = struct{}{}
			}
		}
	}
	_, said := g.absent[inApp{bundle, app}]
	return said
}

// inApp is an object in an app.
type inApp struct {
	key healthscope.Key
	app string
}

// keyOf returns which object a culprit is.
func keyOf(c corev1alpha2.Culprit) healthscope.Key {
	return healthscope.Key{Cluster: c.Cluster, Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
}

// leadsTo says whether an app may have members in a cluster.
func (g *gatherer) leadsTo(app *gatheredApp, cluster string) bool {
	return app.byLabel || app.selector != nil || len(app.everywhere) > 0 || slices.Contains(g.scope.Spec.ExpectedClusters, cluster) ||
		slices.ContainsFunc(app.refs, func(r corev1alpha2.WorkloadReference) bool { return r.Cluster == cluster }) ||
		slices.ContainsFunc(app.expected, func(e corev1alpha2.ExpectedResource) bool { return e.Cluster == cluster })
}

// holding says which apps lead to an object.
type holding struct {
	apps []string
	// owned is true for one that does not count because its owner does.
	owned bool
	// said is what is said of it by what is remembered; nil when others speak of it.
	said *healthscope.Result
}

// holdings are the objects of the clusters that there is something to remember of.
type holdings map[healthscope.Key]holding

// holdings returns what has been gathered in the clusters of recollections.
func (g *gatherer) holdings(of []recollection) holdings {
	held, clusters := holdings{}, map[string]struct{}{}
	for _, r := range of {
		clusters[r.Name] = struct{}{}
	}
	for _, f := range g.out.findings {
		for _, m := range f.members {
			if _, ok := clusters[m.Cluster]; ok {
				held.add(m.Key, f.app, m.Owned, nil)
			}
		}
		for _, r := range f.results {
			if _, ok := clusters[r.Cluster]; ok {
				held.add(r.Key, f.app, false, nil)
			}
		}
	}
	return held
}

// add notes that an app leads to an object.
func (h holdings) add(key healthscope.Key, app string, owned bool, said *healthscope.Result) {
	at := h[key]
	h[key] = holding{append(at.apps, app), at.owned || owned, cmp.Or(at.said, said)}
}

// counts says whether an object counts in an app.
func (g *gatherer) counts(h holdings, key healthscope.Key, app string) bool {
	at, ok := h[key]
	return ok && !at.owned && slices.MinFunc(at.apps, compareApps) == app && !g.ignores(key, app)
}

// wouldCount says whether there is one more that counts in an app when it leads to an object.
func (g *gatherer) wouldCount(h holdings, key healthscope.Key, app string) bool {
	at := h[key]
	return !at.owned && !g.ignores(key, app) && !slices.ContainsFunc(at.apps, func(other string) bool { return compareApps(other, app) <= 0 })
}

// ignores says whether the roll-up leaves an object of an app out.
func (g *gatherer) ignores(key healthscope.Key, app string) bool {
	return ignored(g.scope.Spec.Rollup, Placed{Member: &healthscope.Member{Result: healthscope.Result{Key: key}}, App: app})
}

// recall finds the culprits that a status names. One that is ignored by now is forgotten, for the next status does not name it.
func (g *gatherer) recall(r *recollection, held holdings) {
	app := g.apps[r.app].name
	for _, c := range g.scope.Status.Culprits {
		if c.App != app || c.Cluster != r.Name || isCluster(c) {
			continue
		}
		key := keyOf(c)
		if g.ignores(key, app) {
			r.forgotten++
			continue
		}
		if slices.Contains(held[key].apps, app) {
			continue
		}
		said := outOfSight(healthscope.Result{Key: key}, r.state, seenAs(c))
		held.add(key, app, false, &said)
		r.results = append(r.results, said)
		r.first = cmp.Or(r.first, &said)
	}
}

// rest returns how many resources the status counts that are neither gathered nor named.
func (g *gatherer) rest(r *recollection, held holdings) int {
	app := g.apps[r.app].name
	rest := int(r.Total) - r.forgotten
	for key := range held {
		if key.Cluster == r.Name && g.counts(held, key, app) {
			rest--
		}
	}
	for _, f := range g.out.findings {
		if f.app != app {
			continue
		}
		for key, unlisted := range f.unlisted {
			if key.Cluster == r.Name {
				rest -= unlisted.Total
			}
		}
	}
	return max(rest, 0)
}

// remember adds to an app what its status remembers of one cluster: the culprits
// by name, and the number of all others. Nobody knows which bundle they were in, so
// every reference that may have led to it gets them; each object counts once all the same.
func (g *gatherer) remember(r *recollection, held holdings) {
	app := &g.apps[r.app]
	rest := g.rest(r, held)
	if rest == 0 && len(r.results) == 0 && r.forgotten == 0 {
		return // All that the app had there is gathered.
	}
	if len(r.takers) == 0 {
		if rest == 0 && len(r.results) == 0 {
			return
		}
		r.takers, r.empty = []int{len(g.out.findings)}, []bool{false}
		g.out.findings = append(g.out.findings, finding{app: app.name, links: app.links, ref: bundleReference(app.name, r.Name)})
	}
	first := &g.out.findings[r.takers[0]]
	first.partial = append(first.partial, r.Name)
	rest = g.giveNames(r, held, rest)
	// No bundle is called so, and that of another app with the same references is another one.
	key := fleet.BundleKey{Cluster: r.Name, Namespace: g.scope.Namespace, Name: "remembered/" + app.name}
	app.bundles[key] = struct{}{}
	if rest == 0 {
		return
	}
	for _, at := range r.takers {
		found := &g.out.findings[at]
		if found.unlisted == nil {
			found.unlisted = map[fleet.BundleKey]healthscope.Summary{}
		}
		found.unlisted[key] = healthscope.Summary{Total: rest, Unknown: rest}
	}
}

// giveNames gives references what can be named of a recollection, and returns how many resources are left without a
// name. The bundle itself stands for them where there is nothing else: for a reference that has found nothing
// anywhere, or else for the first one.
func (g *gatherer) giveNames(r *recollection, held holdings, rest int) int {
	app := g.apps[r.app].name
	bundles := g.bundlesOf(r)
	for i, at := range r.takers {
		found := &g.out.findings[at]
		itself := bundleResult(r.Name, g.scope.Namespace, found.ref.Name)
		alone := i == 0 && r.first == nil && rest > 0 && !slices.Contains(r.empty, true)
		if given := r.give(found, itself.Key, bundles); given || !r.empty[i] && !alone {
			continue
		}
		costs := g.wouldCount(held, itself.Key, app)
		if costs && rest == 0 && r.first != nil { // There were fewer resources than there are references: one says why for all.
			found.results = append(found.results, *r.first)
			continue
		}
		itself = r.standIn(itself, held, app)
		if costs {
			rest = max(rest-1, 0)
		}
		found.results = append(found.results, itself)
		r.standIns[itself.Key] = itself
		r.first = cmp.Or(r.first, &itself)
	}
	return rest
}

// bundlesOf returns the bundles that references to bundles would lead to in the cluster of a recollection.
func (g *gatherer) bundlesOf(r *recollection) map[healthscope.Key]struct{} {
	bundles := map[healthscope.Key]struct{}{}
	for _, at := range r.takers {
		bundles[bundleResult(r.Name, g.scope.Namespace, g.out.findings[at].ref.Name).Key] = struct{}{}
	}
	return bundles
}

// give gives a reference to a bundle what has a name by now, but for the bundles of other references, and says whether there was anything.
func (r *recollection) give(found *finding, own healthscope.Key, bundles map[healthscope.Key]struct{}) (given bool) {
	for _, x := range r.results {
		if _, isOne := bundles[x.Key]; !isOne || x.Key == own {
			found.results, given = append(found.results, x), true
		}
	}
	if x, ok := r.standIns[own]; ok {
		found.results, given = append(found.results, x), true
	}
	return given
}

// standIn returns a bundle as what stands for the resources without a name. Of one that another app remembers too, the same is said.
func (r *recollection) standIn(bundle healthscope.Result, held holdings, app string) healthscope.Result {
	last := ""
	if r.State != string(healthscope.Unknown) {
		last = fmt.Sprintf("%s, %d/%d ready", r.State, r.Ready, r.Total)
	}
	said := outOfSight(bundle, r.state, last)
	held.add(bundle.Key, app, false, &said)
	return *held[bundle.Key].said
}
