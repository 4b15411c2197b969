package scope

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

func bundleReference(name, cluster string) reference {
	ref := reference{WorkloadReference: corev1alpha2.WorkloadReference{Name: name, Cluster: cluster}}
	ref.APIVersion, ref.Kind = bundleKind.ToAPIVersionAndKind()
	return ref
}

// followBundleRef follows a reference to a bundle, into its cluster or into every cluster.
func (g *gatherer) followBundleRef(a *app, ref reference) {
	missing := bundleResult(cmp.Or(ref.Cluster, g.view.Cluster()), g.scope.Namespace, ref.Name)
	missing.Message = fmt.Sprintf("ResourceBundleState %q does not exist in namespace %q", ref.Name, g.scope.Namespace)
	found := g.add(a, ref)
	g.dependOnBundle(ref.Name)
	for _, b := range g.view.Named(g.scope.Namespace, ref.Name) {
		switch {
		case ref.Cluster != "" && b.Cluster != ref.Cluster:
		case !g.selectsCluster(a, b.Cluster):
			missing.Message = fmt.Sprintf("ResourceBundleState %q is in cluster %q, which bundles are not taken from", ref.Name, b.Cluster)
		case ref.UID != "" && b.UID != ref.UID:
			missing.Message = uidMismatchMessage(bundleKind.Kind, ref.Name, string(b.UID))
		default:
			found.addBundle(a, b)
		}
	}
	if len(found.bundles) == 1 {
		found.ref.UID = found.bundles[0].UID
	}
	if len(found.bundles) == 0 && (ref.Cluster != "" || len(g.scope.Spec.ExpectedClusters) == 0) {
		found.missing = missing
	}
	a.bundleRefs = append(a.bundleRefs, found)
}

// addBundle adds a bundle, also as a result where it cannot be read, is not filled, or is empty.
func (f *finding) addBundle(a *app, b *fleet.Bundle) {
	a.bundles[b.BundleKey] = b
	f.bundles = append(f.bundles, b)
	self := bundleResult(b.Cluster, b.Namespace, b.Name)
	self.UID = string(b.UID)
	switch {
	case len(b.Malformed) > 0:
		f.results = append(f.results, unknownFor(self, healthscope.ReasonMalformedBundle, "cannot read %s of the bundle", shorten(strings.Join(b.Malformed, ", "))))
	case !b.Observed:
		f.results = append(f.results, unknownFor(self, healthscope.ReasonNotObserved, "no monitor has filled the bundle yet"))
	case len(b.Members) == 0 && !b.Truncated:
		self.State, self.Reason, self.Message = healthscope.NotPresent, healthscope.ReasonNoResources, "no resource carries the bundle's label"
		f.results = append(f.results, self)
	}
	if b.Truncated {
		f.partial = append(f.partial, b.Cluster)
	}
}

// empty reports whether nothing has been found, and nothing is carried over.
func (f *finding) empty() bool { return len(f.bundles)+len(f.results) == 0 }

// byComponent reports whether a bundle is that of an Application of KubeVela: its members are in the apps of their components,
// unless the scope says which app they are in.
func (f *finding) byComponent() bool {
	return f.app == "" && slices.ContainsFunc(f.bundles, func(b *fleet.Bundle) bool { return b.Labels[corev1alpha2.LabelApplication] != "" })
}

// addSelectedBundles adds the bundles that an app's selector matches, unless one of the app's references has led to them already.
func (g *gatherer) addSelectedBundles(a *app) {
	if a.Selector == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(a.Selector)
	if err != nil {
		g.addBadSelectorf(a, a.Name, "the app's selector cannot be read: %v", err)
		return
	}
	for _, b := range g.bundlesWith(selector) {
		if g.selectsCluster(a, b.Cluster) && a.bundles[b.BundleKey] == nil {
			g.addBundle(a, b)
		}
	}
}

// addLabelledBundles adds the bundles that have a label of the scope, unless an app has them already.
// They join the app of their name, if the scope has one.
func (g *gatherer) addLabelledBundles() {
	for _, set := range []labels.Set{{corev1alpha2.LabelScopeName: g.scope.Name}, {corev1alpha2.LabelScopePrefix + g.scope.Name: "true"}} {
		for _, b := range g.bundlesWith(labels.SelectorFromSet(set)) {
			if slices.ContainsFunc(g.apps, func(a *app) bool { return a.bundles[b.BundleKey] != nil }) {
				continue
			}
			if a := g.appByLabel(b.App); g.selectsCluster(a, b.Cluster) {
				g.addBundle(a, b)
			}
		}
	}
}

// addBundle adds a bundle that no reference names.
func (g *gatherer) addBundle(a *app, b *fleet.Bundle) {
	found := g.add(a, bundleReference(b.Name, b.Cluster))
	found.ref.UID = b.UID
	found.addBundle(a, b)
}

func (g *gatherer) dependOnBundle(name string) {
	g.dependencies.addNamed(bundlesOfAllClusters, g.scope.Namespace, name)
}

func (g *gatherer) bundlesWith(selector labels.Selector) []*fleet.Bundle {
	g.dependencies.addSelected(bundlesOfAllClusters, g.scope.Namespace, selector)
	return g.view.Select(g.scope.Namespace, selector)
}

// addMissingBundles adds the bundles of an app that are missing in the clusters where the app is expected: those of references
// into every cluster, if the app has no bundle in the cluster or the reference leads nowhere at all. For an app without such
// references, the missing bundle has the app's name. References that name a cluster, and references to other objects, are not
// expected in other clusters.
func (g *gatherer) addMissingBundles(a *app) {
	everywhere, clusters := a.refsIntoAllClusters(), g.clustersOfApp(a)
	missing := func(name, cluster, what string) healthscope.Result {
		r := bundleResult(cluster, g.scope.Namespace, name)
		r.Message = fmt.Sprintf("%s is not in cluster %q, where it is expected", what, cluster)
		return g.absentIn(a, r)
	}
	for _, found := range everywhere {
		nowhere, name := found.empty(), found.ref.Name
		for _, cluster := range g.scope.Spec.ExpectedClusters {
			again := len(found.bundles) == 0 && g.wasMissing(a.Name, bundleResult(cluster, g.scope.Namespace, name).Key)
			if nowhere || again || !slices.Contains(clusters, cluster) || a.Name == "" && !slices.Contains(found.clusters(), cluster) {
				found.results = append(found.results, missing(name, cluster, fmt.Sprintf("ResourceBundleState %q", name)))
			}
		}
	}
	if len(everywhere) > 0 || !a.expectsBundle() {
		return
	}
	for _, cluster := range g.scope.Spec.ExpectedClusters {
		if !slices.Contains(clusters, cluster) {
			g.add(a, bundleReference(a.Name, cluster), missing(a.Name, cluster, "a bundle of the app"))
		}
	}
}

// expectsBundle reports whether an app without references to bundles has bundles all the same: it is in the spec, with a name, and does
// not refer to other objects alone.
func (a *app) expectsBundle() bool {
	return !a.byLabel && a.Name != "" && (a.Selector != nil || len(a.references) == 0)
}

// addMissingReferences adds the results of an app's references to bundles that lead nowhere.
func (g *gatherer) addMissingReferences(a *app) {
	for _, f := range a.bundleRefs {
		switch {
		case f.missing.Name == "" || !f.empty():
		case f.ref.Cluster != "":
			f.results = append(f.results, g.absentIn(a, f.missing))
		default:
			f.results = append(f.results, g.absent(f.missing))
		}
	}
}

// refsIntoAllClusters returns the findings of an app's references to bundles that lead into every cluster.
func (a *app) refsIntoAllClusters() []*finding {
	return slices.DeleteFunc(slices.Clone(a.bundleRefs), func(f *finding) bool { return f.ref.Cluster != "" })
}
