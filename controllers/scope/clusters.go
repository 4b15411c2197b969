package scope

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// connectGrace is how long a scope waits for a cluster that the hub connects to
// for the first time, and that the scope counts on. Without it, each restart of
// the hub would make every scope unknown for a moment. Others are not waited for.
const connectGrace = 20 * time.Second

// lastSeen stands in the message on a resource that cannot be seen, before what was known of it last, as in healthscope.Lost.
const lastSeen = "; last seen "

// unseen returns the state of a cluster that the hub knows and cannot read, and whether it is one.
func (g *gatherer) unseen(cluster string) (fleet.ClusterState, bool) {
	s, known := g.state(cluster)
	return s, known && !s.Answers()
}

// await makes the scope wait for a cluster that is being connected to.
func (g *gatherer) await(cluster string) {
	s, known := g.state(cluster)
	if !known || s.Reachability != fleet.Connecting {
		return
	}
	if wait := s.Since.Add(connectGrace).Sub(g.now); wait > 0 {
		g.out.settling = max(g.out.settling, min(wait, connectGrace))
	}
}

// outOfSight says of an object that it cannot be seen, because its cluster cannot be.
func outOfSight(r healthscope.Result, s fleet.ClusterState, last string) healthscope.Result {
	r.State, r.Reason = healthscope.Unknown, s.Reachability.Reason()
	r.Message = s.Problem()
	if last != "" {
		r.Message += lastSeen + last
	}
	return r
}

// remembered adds what the scope's own status says of clusters that cannot be
// read and have not been since the hub started, or since their Secret came: of
// others, the view has what was known last.
func (g *gatherer) remembered() {
	for _, a := range g.scope.Status.Apps {
		for _, c := range a.Clusters {
			g.await(c.Name)
			state, unseen := g.unseen(c.Name)
			at := slices.IndexFunc(g.apps, func(x gatheredApp) bool { return x.name == a.Name })
			changed := g.scope.Status.ObservedGeneration != g.scope.Generation
			if !unseen || state.Arrival > 0 || at >= 0 && changed && !g.leadsTo(&g.apps[at], c.Name) {
				continue // Of the same spec, an app that leads nowhere there had bundles that said so themselves.
			}
			rest := int(c.Total) - g.countedIn(a.Name, c.Name)
			if rest <= 0 {
				continue
			}
			if at < 0 {
				if changed {
					continue // It may have been an app of the spec.
				}
				at = len(g.apps)
				g.apps = append(g.apps, gatheredApp{appRefs: appRefs{name: a.Name}, byLabel: true, bundles: map[fleet.BundleKey]struct{}{}})
			}
			g.remember(&g.apps[at], state, c, rest)
		}
	}
}

// leadsTo says whether an app may have members in a cluster.
func (g *gatherer) leadsTo(app *gatheredApp, cluster string) bool {
	return app.byLabel || app.selector != nil || len(app.everywhere) > 0 || slices.Contains(g.scope.Spec.ExpectedClusters, cluster) ||
		slices.ContainsFunc(app.refs, func(r corev1alpha2.WorkloadReference) bool { return r.Cluster == cluster })
}

// countedIn returns how many members of an app have been gathered in a cluster.
func (g *gatherer) countedIn(app, cluster string) int {
	n := 0
	for _, f := range g.out.findings {
		if f.app != app {
			continue
		}
		for _, m := range f.members {
			if m.Cluster == cluster && !m.Owned {
				n++
			}
		}
		for _, r := range f.results {
			if r.Cluster == cluster {
				n++
			}
		}
		for key, unlisted := range f.unlisted {
			if key.Cluster == cluster {
				n += unlisted.Total
			}
		}
	}
	return n
}

// remember adds to an app what its status remembers of one cluster: the culprits
// by name, and the number of all others, of which one stands for them when there are no culprits.
func (g *gatherer) remember(app *gatheredApp, state fleet.ClusterState, c corev1alpha2.ClusterStatus, rest int) {
	found := g.findingFor(app, c.Name)
	key := fleet.BundleKey{Cluster: c.Name, Namespace: g.scope.Namespace, Name: found.ref.Name}
	app.bundles[key] = struct{}{}
	found.partial = append(found.partial, c.Name)
	for _, culprit := range g.scope.Status.Culprits {
		if rest == 0 || culprit.App != app.name || culprit.Cluster != c.Name {
			continue
		}
		r := healthscope.Result{Key: healthscope.Key{Cluster: c.Name, Group: culprit.Group, Kind: culprit.Kind, Namespace: culprit.Namespace, Name: culprit.Name}}
		found.results = append(found.results, outOfSight(r, state, seenAs(culprit)))
		rest--
	}
	if len(found.results) == 0 && rest > 0 {
		last := ""
		if c.State != string(healthscope.Unknown) {
			last = fmt.Sprintf("%s, %d/%d ready", c.State, c.Ready, c.Total)
		}
		found.results = append(found.results, outOfSight(bundleResult(c.Name, key.Namespace, key.Name), state, last))
		rest--
	}
	if rest > 0 {
		unlisted := maps.Clone(found.unlisted)
		if unlisted == nil {
			unlisted = map[fleet.BundleKey]healthscope.Summary{}
		}
		unlisted[key] = sum(unlisted[key], healthscope.Summary{Total: rest, Unknown: rest})
		found.unlisted = unlisted
	}
}

// findingFor returns the finding of an app to which what is remembered of a cluster belongs.
func (g *gatherer) findingFor(app *gatheredApp, cluster string) *finding {
	at := slices.IndexFunc(g.out.findings, func(f finding) bool {
		return f.app == app.name && f.ref.Kind == bundleReference("", "").Kind && (f.ref.Cluster == cluster || f.ref.Cluster == "")
	})
	if at < 0 {
		at = len(g.out.findings)
		g.out.findings = append(g.out.findings, finding{app: app.name, links: app.links, ref: bundleReference(app.name, cluster)})
	}
	return &g.out.findings[at]
}

// seenAs says what was known last of a culprit.
func seenAs(c corev1alpha2.Culprit) string {
	switch _, last, found := strings.Cut(c.Cause, lastSeen); {
	case found:
		return last
	case c.State == string(healthscope.Unknown):
		return ""
	case c.Reason != "":
		return fmt.Sprintf("%s (%s)", c.State, c.Reason)
	default:
		return c.State
	}
}

// sight is what a status says of the clusters of a scope.
type sight struct {
	// clusters are all of them, and lost those that are not seen as they are now, both sorted.
	clusters, lost []string
	// reason and message are those of the condition ClustersReachable when some are lost.
	reason, message string
}

// see asks for the clusters of a verdict. state returns what is known of a cluster; false when it is not known.
func see(v verdict, state func(string) (fleet.ClusterState, bool)) sight {
	s := sight{clusters: clustersOf(v)}
	worst := -1
	var texts []string
	for _, name := range s.clusters {
		c, known := state(name)
		rank, text := slices.Index(fleet.Reachabilities(), c.Reachability), string(c.Reachability)
		switch {
		case !known:
			rank, text = len(fleet.Reachabilities()), ReasonClusterUnknown
		case c.Reachable():
			continue
		}
		s.lost = append(s.lost, name)
		if rank > worst {
			worst, s.reason = rank, text
		}
		texts = append(texts, fmt.Sprintf("%s: %s", name, text))
	}
	if len(s.lost) > 0 {
		s.message = fmt.Sprintf("%d of %d clusters are not seen as they are now: %s", len(s.lost), len(s.clusters), strings.Join(texts, ", "))
	}
	return s
}

// setLastSeen says when the clusters that are lost were seen last. For one that
// has not been seen since the hub started, that is what the status said before.
func setLastSeen(next *corev1alpha2.HealthScopeStatus, before []corev1alpha2.AppStatus, s sight, state func(string) (fleet.ClusterState, bool)) {
	if len(s.lost) == 0 {
		return
	}
	for i := range next.Apps {
		a := &next.Apps[i]
		for n := range a.Clusters {
			c := &a.Clusters[n]
			if !slices.Contains(s.lost, c.Name) {
				continue
			}
			if known, ok := state(c.Name); ok && !known.LastSeen.IsZero() {
				c.LastSeen = metaTime(known.LastSeen)
				continue
			}
			for _, old := range clustersOfApp(before, a.Name) {
				if old.Name == c.Name {
					c.LastSeen = old.LastSeen
				}
			}
		}
	}
}

func clustersOfApp(apps []corev1alpha2.AppStatus, name string) []corev1alpha2.ClusterStatus {
	if at := slices.IndexFunc(apps, func(a corev1alpha2.AppStatus) bool { return a.Name == name }); at >= 0 {
		return apps[at].Clusters
	}
	return nil
}

// clustersNamed returns the clusters that a scope speaks of, in its spec or in its status, sorted.
func clustersNamed(s *corev1alpha2.HealthScope) []string {
	names := map[string]struct{}{}
	for _, app := range appsOf(&s.Spec) {
		for _, ref := range app.refs {
			if ref.Cluster != "" {
				names[ref.Cluster] = struct{}{}
			}
		}
	}
	for _, name := range s.Spec.ExpectedClusters {
		names[name] = struct{}{}
	}
	for _, app := range s.Status.Apps {
		for _, c := range app.Clusters {
			names[c.Name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
