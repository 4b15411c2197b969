package scope

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

var (
	selectSink = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "sink"}}
	isSink     = map[string]string{"app": "sink"}
)

func TestGatherBundlesByLabel(t *testing.T) {
	t.Parallel()
	inHub := []found{{"sink", hub, "Deployment/web", healthscope.Ready, ""}}
	cases := map[string]struct {
		reason string
		spec   corev1alpha2.HealthScopeSpec
		labels map[string]string
		want   [][]found
	}{
		"SelectorAndReference": {
			reason: "One bundle is one finding of the app, however it is reached.",
			spec:   corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "sink", Selector: selectSink, WorkloadReferences: refs(bundleRef("1-sink"))}}},
			labels: isSink,
			want:   [][]found{inHub},
		},
		"NameLabel": {
			reason: "The app is the bundle's own.",
			labels: map[string]string{"healthscope.core.oam.dev/name": "vfw"},
			want:   [][]found{{{"app-of-1-sink", hub, "Deployment/web", healthscope.Ready, ""}}},
		},
		"BothLabels": {
			labels: map[string]string{"healthscope.core.oam.dev/vfw": "true", "healthscope.core.oam.dev/name": "vfw"},
			want:   [][]found{{{"app-of-1-sink", hub, "Deployment/web", healthscope.Ready, ""}}},
		},
		"PrefixLabelThatIsNotTrue": {
			labels: map[string]string{"healthscope.core.oam.dev/vfw": "false"},
		},
		"LabelAndReference": {
			reason: "The reference says which app the bundle belongs to.",
			spec:   corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "sink", WorkloadReferences: refs(bundleRef("1-sink"))}}},
			labels: map[string]string{"healthscope.core.oam.dev/vfw": "true"},
			want:   [][]found{inHub},
		},
		"LabelAndSelector": {
			spec:   corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "sink", Selector: selectSink}}},
			labels: map[string]string{"healthscope.core.oam.dev/vfw": "true", "app": "sink"},
			want:   [][]found{inHub},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world{bundles: []*fleet.Bundle{labelledWith(bundleOf(hub, "1-sink", readyWeb), c.labels)}}
			got := gatherIn(w, scopeOf(c.spec), noon)
			if diff := cmp.Diff(c.want, summaryOfFindings(got)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestALabelledBundleJoinsTheAppOfItsName(t *testing.T) {
	t.Parallel()
	links := &corev1alpha2.InventoryLinks{GenericVNFID: "vnf-1"}
	b := labelledWith(bundleOf(hub, "1-sink", readyWeb), map[string]string{"healthscope.core.oam.dev/vfw": "true"})
	b.App = "sink"
	w := world{bundles: []*fleet.Bundle{b}}
	scope := scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "sink", Inventory: links}}})
	got := only(t, gatherIn(w, scope, noon).findings)
	if got.app != "sink" || got.links != links {
		t.Errorf("got app %q with links %v", got.app, got.links)
	}
}

func TestGatherExpectedClusters(t *testing.T) {
	t.Parallel()
	sinkRef := refs(bundleRef("1-sink"))
	in1 := found{"sink", edge1, "Deployment/web", healthscope.Ready, ""}
	missing := func(cluster, name string) found {
		return found{"sink", cluster, rbs + name, healthscope.NotPresent, healthscope.ReasonNotFound}
	}
	cases := map[string]struct {
		reason  string
		app     corev1alpha2.ScopeApp
		expect  []string
		bundles []*fleet.Bundle
		want    [][]found
	}{
		"MissingInOne": {
			reason: "What is missing belongs to the reference: OAM counts one for each.",
			app:    corev1alpha2.ScopeApp{WorkloadReferences: sinkRef},
			expect: []string{edge1, edge2}, bundles: []*fleet.Bundle{bundleOf(edge1, "1-sink", readyWeb1)},
			want: [][]found{{in1, missing(edge2, "1-sink")}},
		},
		"MissingEverywhere": {
			app:    corev1alpha2.ScopeApp{WorkloadReferences: sinkRef},
			expect: []string{edge1, edge2},
			want:   [][]found{{missing(edge1, "1-sink"), missing(edge2, "1-sink")}},
		},
		"MissingNowhere": {
			app:    corev1alpha2.ScopeApp{WorkloadReferences: sinkRef},
			expect: []string{edge1}, bundles: []*fleet.Bundle{bundleOf(edge1, "1-sink", readyWeb1)},
			want: [][]found{{in1}},
		},
		"OneOfTwoReferencesLeadsNowhere": {
			reason: "A reference must not get lost because another one of the app is where the app is expected.",
			app:    corev1alpha2.ScopeApp{WorkloadReferences: refs(bundleRef("1-sink"), bundleRef("2-sink"))},
			expect: []string{edge1}, bundles: []*fleet.Bundle{bundleOf(edge1, "1-sink", readyWeb1)},
			want: [][]found{{in1}, {missing(edge1, "2-sink")}},
		},
		"TwoReferencesCoverTwoClusters": {
			reason: "The app must have a bundle in every cluster, not every bundle.",
			app:    corev1alpha2.ScopeApp{WorkloadReferences: refs(bundleRef("1-sink"), bundleRef("2-sink"))},
			expect: []string{edge1, edge2},
			bundles: []*fleet.Bundle{
				bundleOf(edge1, "1-sink", readyWeb1), bundleOf(edge2, "2-sink", readyWeb2),
			},
			want: [][]found{{in1}, {{"sink", edge2, "Deployment/web", healthscope.Ready, ""}}},
		},
		"ClusterOfAReference": {
			reason: "A reference that names its cluster is expected nowhere else.",
			app:    corev1alpha2.ScopeApp{WorkloadReferences: refs(at(edge1, bundleRef("1-sink")))},
			expect: []string{edge1, edge2}, bundles: []*fleet.Bundle{bundleOf(edge1, "1-sink", readyWeb1)},
			want: [][]found{{in1}},
		},
		"Selector": {
			app:    corev1alpha2.ScopeApp{Selector: selectSink},
			expect: []string{edge1, edge2}, bundles: []*fleet.Bundle{labelledWith(bundleOf(edge1, "1-sink", readyWeb1), isSink)},
			want: [][]found{{in1}, {missing(edge2, "sink")}},
		},
		"LabelOnly": {
			reason: "An app that has a name and nothing else is there where bundles carry the scope's label.",
			app:    corev1alpha2.ScopeApp{},
			expect: []string{edge1, edge2},
			bundles: []*fleet.Bundle{func() *fleet.Bundle {
				b := labelledWith(bundleOf(edge1, "1-sink", readyWeb1), map[string]string{"healthscope.core.oam.dev/vfw": "true"})
				b.App = "sink"
				return b
			}()},
			want: [][]found{{in1}, {missing(edge2, "sink")}},
		},
		"UnknownCluster": {
			reason: "A cluster that the hub does not know may well have the bundle.",
			app:    corev1alpha2.ScopeApp{WorkloadReferences: sinkRef},
			expect: []string{"acme+moon"}, bundles: []*fleet.Bundle{bundleOf(edge1, "1-sink", readyWeb1)},
			want: [][]found{{in1, {"sink", "acme+moon", rbs + "1-sink", healthscope.Unknown, healthscope.ReasonUnknownCluster}}},
		},
		"DirectReferencesOnly": {
			app:    corev1alpha2.ScopeApp{WorkloadReferences: refs(deploymentRef("web"))},
			expect: []string{edge1},
			want:   [][]found{{{"sink", hub, "Deployment/web", healthscope.Ready, ""}}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.app.Name = "sink"
			w := withDeployments(deployment("web", healthscope.Ready, 1, 1))
			w.clusters, w.bundles = []string{hub, edge1, edge2}, c.bundles
			scope := scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{c.app}, ExpectedClusters: c.expect})
			got := gatherIn(w, scope, noon)
			if diff := cmp.Diff(c.want, summaryOfFindings(got)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestAppsOfAnApplicationsBundle: the members of the bundle of a KubeVela Application are in the apps of their components,
// unless the scope names the app of the bundle.
func TestAppsOfAnApplicationsBundle(t *testing.T) {
	t.Parallel()
	ofComponent := func(name, component string, state healthscope.State) healthscope.Member {
		m := member(hub, "Deployment", name, state, "")
		m.Labels = map[string]string{corev1alpha2.LabelComponent: component}
		return m
	}
	store := labelledWith(bundleOf(hub, "store", ofComponent("front", "front", healthscope.Ready), ofComponent("back", "back", healthscope.Failed), ofComponent("web", "", healthscope.Ready)),
		map[string]string{corev1alpha2.LabelApplication: "store"})
	w := world{bundles: []*fleet.Bundle{store}}
	apps := func(spec corev1alpha2.HealthScopeSpec) map[string]healthscope.State {
		states := map[string]healthscope.State{}
		for _, p := range judgeIn(w, scopeOf(spec), noon).Members {
			states[p.App] = p.State
		}
		return states
	}
	references := refs(bundleRef("store"))
	byReference := corev1alpha2.HealthScopeSpec{WorkloadReferences: references}
	if diff := cmp.Diff(map[string]healthscope.State{"front": healthscope.Ready, "back": healthscope.Failed, "": healthscope.Ready}, apps(byReference)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	named := corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "all", WorkloadReferences: references}}}
	if got := apps(named); len(got) != 1 {
		t.Errorf("got apps %v, want the one of the scope", got)
	}
	for app, want := range map[string]healthscope.Health{"front": healthscope.Healthy, "back": healthscope.Unhealthy, "side": healthscope.Unhealthy} {
		required := byReference
		required.Rollup = &corev1alpha2.Rollup{HealthyPercentage: new(int32(1)), Required: []string{app}}
		if got := judgeIn(w, scopeOf(required), noon).Health; got != want {
			t.Errorf("with app %q required the scope is %v, want %v", app, got, want)
		}
	}
}

// References outside apps are not parts of one application: each of them is expected in every cluster.
func TestEachReferenceOutsideAppsIsExpectedEverywhere(t *testing.T) {
	t.Parallel()
	w := world{clusters: []string{hub, edge1, edge2}, bundles: []*fleet.Bundle{
		bundleOf(edge1, "1-sink", readyWeb1), bundleOf(edge2, "1-sink", readyWeb2), bundleOf(edge1, "1-source", readyWeb1),
	}}
	s := statusIn(w, scopeOf(corev1alpha2.HealthScopeSpec{
		WorkloadReferences: refs(bundleRef("1-sink"), bundleRef("1-source")), ExpectedClusters: []string{edge1, edge2},
	}), noon)
	missing := only(t, s.Culprits)
	if s.Health != corev1alpha2.Unhealthy || missing.Name != "1-source" || missing.Cluster != edge2 || missing.State != "NotPresent" {
		t.Errorf("want unhealthy for 1-source, which is not in %s; got %s: %+v", edge2, s.Health, missing)
	}
}
