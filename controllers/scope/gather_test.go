package scope

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// found is one member of a finding in short form.
type found struct {
	App, Cluster, Key string
	State             healthscope.State
	Reason            healthscope.Reason
}

// summaryOfFindings returns findings in short form: a list for each, with its members and its results.
func summaryOfFindings(g gathered) [][]found {
	var all [][]found
	for _, f := range g.findings {
		var list []found
		for _, b := range f.bundles {
			for _, m := range b.Members {
				list = append(list, found{f.app, m.Cluster, m.String(), m.State, m.Reason})
			}
		}
		for _, r := range f.results {
			list = append(list, found{f.app, r.Cluster, r.String(), r.State, r.Reason})
		}
		all = append(all, list)
	}
	return all
}

var (
	readyWeb  = member(hub, "Deployment", "web", healthscope.Ready, "")
	readyWeb1 = member(edge1, "Deployment", "web", healthscope.Ready, "")
	readyWeb2 = member(edge2, "Deployment", "web", healthscope.Ready, "")
)

const rbs = "ResourceBundleState/"

func TestGather(t *testing.T) {
	t.Parallel()
	edges := []string{hub, edge1, edge2}
	kubevela := []corev1alpha2.AppReference{{AppName: "shop", CompReferences: []corev1alpha2.CompReference{{
		CompName: "front", Workload: deploymentRef("web"), Traits: refs(corev1alpha2.WorkloadReference{APIVersion: "v1", Kind: "Service", Name: "web"}),
	}}}}
	cases := map[string]struct {
		reason string
		spec   corev1alpha2.HealthScopeSpec
		world  world
		want   [][]found
	}{
		"BundleInEveryCluster": {
			reason: "A reference to a bundle without a cluster leads to the bundles of that name in all clusters, and counts as one reference.",
			spec:   corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("1-sink"))},
			world:  world{clusters: edges, bundles: []*fleet.Bundle{bundleOf(edge2, "1-sink", readyWeb2), bundleOf(edge1, "1-sink", readyWeb1)}},
			want:   [][]found{{{"", edge1, "Deployment/web", healthscope.Ready, ""}, {"", edge2, "Deployment/web", healthscope.Ready, ""}}},
		},
		"BundleInOneCluster": {
			spec:  corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(at(edge2, bundleRef("1-sink")))},
			world: world{clusters: edges, bundles: []*fleet.Bundle{bundleOf(edge1, "1-sink", readyWeb1), bundleOf(edge2, "1-sink", readyWeb2)}},
			want:  [][]found{{{"", edge2, "Deployment/web", healthscope.Ready, ""}}},
		},
		"BundleOfAnotherNamespace": {
			reason: "A bundle is looked for in the scope's own namespace only.",
			spec:   corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(bundleRef("1-sink"))},
			world:  world{bundles: []*fleet.Bundle{{BundleKey: fleet.BundleKey{Cluster: hub, Namespace: "other", Name: "1-sink"}, Observed: true, Members: []healthscope.Member{readyWeb}}}},
			want:   [][]found{{{"", hub, rbs + "1-sink", healthscope.NotPresent, healthscope.ReasonNotFound}}},
		},
		"BundleInUnknownCluster": {
			reason: "What cannot be seen is Unknown, never missing.",
			spec:   corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(at("acme+moon", bundleRef("1-sink")))},
			want:   [][]found{{{"", "acme+moon", rbs + "1-sink", healthscope.Unknown, healthscope.ReasonUnknownCluster}}},
		},
		"BundleWithAnotherUID": {
			spec: corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(corev1alpha2.WorkloadReference{
				APIVersion: "k8splugin.io/v1alpha1", Kind: "ResourceBundleState", Name: "1-sink", UID: "meant",
			})},
			world: world{bundles: []*fleet.Bundle{bundleOf(hub, "1-sink", readyWeb)}},
			want:  [][]found{{{"", hub, rbs + "1-sink", healthscope.NotPresent, healthscope.ReasonNotFound}}},
		},
		"DirectReferences": {
			spec: corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("web"), deploymentRef("gone"), at(hub, deploymentRef("web")))},
			world: withDeployments(
				deployment("web", healthscope.Ready, 3, 3)),
			want: [][]found{
				{{"", hub, "Deployment/web", healthscope.Ready, ""}},
				{{"", hub, "Deployment/gone", healthscope.NotPresent, healthscope.ReasonNotFound}},
				{{"", hub, "Deployment/web", healthscope.Ready, ""}},
			},
		},
		"OtherNamespaces": {
			reason: "A scope is no window into other people's namespaces; its own may be named.",
			spec: corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(
				corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Namespace: "other"},
				corev1alpha2.WorkloadReference{APIVersion: "k8splugin.io/v1alpha1", Kind: "ResourceBundleState", Name: "1-sink", Namespace: "other"},
				corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Namespace: "shop"},
			)},
			world: withDeployments(deployment("web", healthscope.Ready, 3, 3)),
			want: [][]found{
				{{"", hub, "Deployment/web", healthscope.Unknown, healthscope.ReasonCrossNamespace}},
				{{"", hub, rbs + "1-sink", healthscope.Unknown, healthscope.ReasonCrossNamespace}},
				{{"", hub, "Deployment/web", healthscope.Ready, ""}},
			},
		},
		"AppReferenceWithComponents": {
			reason: "A component counts by its workload; traits do not count.",
			spec:   corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(), AppReferences: kubevela},
			world:  withDeployments(deployment("web", healthscope.Ready, 1, 1)),
			want:   [][]found{{{"shop", hub, "Deployment/web", healthscope.Ready, ""}}},
		},
		"AppReferenceBesideWorkloadRefs": {
			reason: "As in KubeVela, workloadRefs go before.",
			spec:   corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("gone")), AppReferences: kubevela},
			world:  withDeployments(),
			want:   [][]found{{{"", hub, "Deployment/gone", healthscope.NotPresent, healthscope.ReasonNotFound}}},
		},
		"AppReferenceWithoutComponents": {
			reason: "KubeVela called this healthy, though it had looked at nothing.",
			spec:   corev1alpha2.HealthScopeSpec{AppReferences: []corev1alpha2.AppReference{{AppName: "shop"}}},
			want:   [][]found{{{"shop", hub, "Application/shop", healthscope.Unknown, healthscope.ReasonKindNotFound}}},
		},
		"AppReferenceWithoutAnything": {
			spec: corev1alpha2.HealthScopeSpec{AppReferences: []corev1alpha2.AppReference{{}}},
			want: [][]found{{{"", hub, "Application/", healthscope.Unknown, healthscope.ReasonInvalidReference}}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := gatherIn(c.world, scopeOf(c.spec), noon)
			if diff := cmp.Diff(c.want, summaryOfFindings(got)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestReferencesAreFilledIn(t *testing.T) {
	t.Parallel()
	w := withDeployments(deployment("web", healthscope.Ready, 3, 3))
	w.clusters = []string{hub, edge1, edge2}
	w.bundles = []*fleet.Bundle{bundleOf(edge1, "1-sink", readyWeb1), bundleOf(edge2, "1-sink", readyWeb2), bundleOf(edge2, "1-lone", readyWeb2)}
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("web"), deploymentRef("gone"), bundleRef("1-lone"), bundleRef("1-sink"))})
	var uids []string
	for _, f := range gatherIn(w, scope, noon).findings {
		uids = append(uids, string(f.ref.UID))
	}
	// Bundles with the same name in several clusters have no common uid.
	if diff := cmp.Diff([]string{"uid-web", "", "uid-acme+edge2-1-lone", ""}, uids); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWantedKinds(t *testing.T) {
	t.Parallel()
	scope := scopeOf(corev1alpha2.HealthScopeSpec{
		WorkloadReferences: refs(deploymentRef("a"), bundleRef("1-sink"), corev1alpha2.WorkloadReference{APIVersion: "v1", Kind: "Pod"}),
		Apps: []corev1alpha2.ScopeApp{{Name: "db", WorkloadReferences: refs(
			corev1alpha2.WorkloadReference{APIVersion: "db.acme.io/v1", Kind: "Cluster", Name: "pg"},
			at(edge1, corev1alpha2.WorkloadReference{APIVersion: "v1", Kind: "Service", Name: "far"}),
			at(hub, corev1alpha2.WorkloadReference{APIVersion: "batch/v1", Kind: "Job", Name: "near"}),
			corev1alpha2.WorkloadReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", Namespace: "other"},
		)}},
	})
	var got []string
	for kind := range gatherIn(world{}, scope, noon).dependencies.kinds() {
		got = append(got, kind.Cluster+": "+kind.String())
	}
	slices.Sort(got)
	want := []string{edge1 + ": /v1, Kind=Service", hub + ": apps/v1, Kind=Deployment", hub + ": batch/v1, Kind=Job", hub + ": db.acme.io/v1, Kind=Cluster"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("only kinds that can be read are worth a watch\n-want +got:\n%s", diff)
	}
}

func TestInvalidSelector(t *testing.T) {
	t.Parallel()
	scope := scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{
		Name:     "sink",
		Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
	}}})
	w := world{}
	got := only(t, only(t, gatherIn(w, scope, noon).findings).results)
	if got.State != healthscope.Unknown || got.Reason != healthscope.ReasonInvalidReference || !strings.Contains(got.Message, "Near") {
		t.Errorf("got %+v", got)
	}
}
