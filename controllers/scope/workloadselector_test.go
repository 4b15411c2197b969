package scope

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

var (
	jobs     = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	cronJobs = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}
	labelWeb = map[string]string{"app": "web"}
)

// workloadsOf returns a spec with one app that selects workloads by a label, of the given kinds or of the default kinds.
func workloadsOf(kinds ...corev1alpha2.WorkloadKind) corev1alpha2.HealthScopeSpec {
	return corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "web", WorkloadSelector: &corev1alpha2.WorkloadSelector{
		LabelSelector: metav1.LabelSelector{MatchLabels: labelWeb}, Kinds: kinds,
	}}}}
}

// workload returns the lookup of a workload of a kind in a cluster.
func workload(cluster string, kind schema.GroupVersionKind, name string, state healthscope.State, set map[string]string) fleet.Lookup {
	return fleet.Lookup{Labels: fleet.NewLabelSet(set), Result: healthscope.Result{
		Key:     healthscope.Key{Cluster: cluster, Group: kind.Group, Kind: kind.Kind, Namespace: "shop", Name: name},
		Version: kind.Version, UID: cluster + name, State: state,
	}}
}

// withWorkloads returns a world of two clusters with some workloads.
func withWorkloads(workloads ...fleet.Lookup) world {
	w := world{clusters: []string{edge1}, objects: map[schema.GroupVersionKind]map[string]fleet.Lookup{}}
	for _, l := range workloads {
		gvk := schema.GroupVersionKind{Group: l.Result.Group, Version: l.Result.Version, Kind: l.Result.Kind}
		if w.objects[gvk] == nil {
			w.objects[gvk] = map[string]fleet.Lookup{}
		}
		name := l.Result.Name
		if l.Result.Cluster != hub {
			name = l.Result.Cluster + "/" + name // References lead into the hub.
		}
		w.objects[gvk][name] = l
	}
	return w
}

func TestWorkloadsAreSelectedInEveryCluster(t *testing.T) {
	t.Parallel()
	nightly := workload(hub, cronJobs, "nightly", healthscope.Ready, labelWeb)
	failed := workload(hub, jobs, "nightly-1", healthscope.Failed, labelWeb)
	failed.Result.Owner = &healthscope.Owner{Group: "batch", Kind: "CronJob", Name: "nightly"}
	other := failed
	other.Result.Cluster, other.Result.UID = edge1, "other"
	all := withWorkloads(
		workload(hub, deployments, "web", healthscope.Ready, labelWeb), workload(edge1, deployments, "web", healthscope.Pending, labelWeb),
		workload(hub, deployments, "shop", healthscope.Failed, map[string]string{"app": "shop"}), nightly, failed, other)
	onlyEdge := workloadsOf()
	onlyEdge.Clusters = &corev1alpha2.ClusterSelection{Names: []string{edge1}}
	referred := workloadsOf()
	referred.WorkloadReferences = refs(corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"})
	for _, c := range []struct {
		title string
		spec  corev1alpha2.HealthScopeSpec
		want  []string
	}{
		{"of all kinds, but for a Job whose CronJob is selected too", workloadsOf(), []string{
			edge1 + " Job/nightly-1 Failed", edge1 + " Deployment/web Pending", hub + " CronJob/nightly Ready", hub + " Deployment/web Ready",
		}},
		{"of the kinds that are named", workloadsOf(corev1alpha2.WorkloadKind{APIVersion: "batch/v1", Kind: "Job"}), []string{
			edge1 + " Job/nightly-1 Failed", hub + " Job/nightly-1 Failed",
		}},
		{"in the clusters that the scope selects", onlyEdge, []string{edge1 + " Job/nightly-1 Failed", edge1 + " Deployment/web Pending"}},
		{"once, when a reference leads to it too", referred, []string{
			edge1 + " Job/nightly-1 Failed", edge1 + " Deployment/web Pending", hub + " CronJob/nightly Ready", hub + " Deployment/web Ready",
		}},
	} {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, m := range judgeIn(all, scopeOf(c.spec), noon).Members {
				got = append(got, m.Cluster+" "+m.Kind+"/"+m.Name+" "+string(m.State))
			}
			if diff := cmp.Diff(c.want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}

func TestASelectedWorkloadThatABundleNamesTooCountsOnce(t *testing.T) {
	t.Parallel()
	spec := workloadsOf()
	spec.Apps[0].Selector = &metav1.LabelSelector{MatchLabels: labelWeb}
	w := withWorkloads(workload(edge1, deployments, "web", healthscope.Ready, labelWeb))
	w.bundles = []*fleet.Bundle{labelledWith(bundleOf(edge1, "1-web", member(edge1, "Deployment", "web", healthscope.Ready, "")), labelWeb)}
	if s := statusIn(w, scopeOf(spec), noon); s.ResourcesReady != "1/1" {
		t.Errorf("%s are ready; want 1/1", s.ResourcesReady)
	}
}

// A kind that cannot be read may have any number of workloads: the scope is not healthy, and the inventory deletes nothing there.
func TestWorkloadsThatCannotBeReadAreUnknown(t *testing.T) {
	t.Parallel()
	w := withWorkloads(workload(hub, deployments, "web", healthscope.Ready, labelWeb))
	forbidden := func(cluster string, gvk schema.GroupVersionKind, namespace string, s labels.Selector) fleet.Selection {
		found := w.selection(cluster, gvk, namespace, s)
		if cluster == edge1 && gvk == jobs {
			r := resultOf(fleet.Kind{Cluster: cluster, GroupVersionKind: gvk}, namespace, "*")
			r.State, r.Reason, r.Message = healthscope.Unknown, healthscope.ReasonForbidden, "the controller may not list and watch batch/v1 Job"
			found.Others.Result = r
		}
		return found
	}
	scope := scopeOf(workloadsOf())
	g := gathererIn(w, scope, noon)
	g.selectObjects = forbidden
	v := judgeGathered(g.gather(), scope, noon)
	s := newStatus(scope, v, externalStatus{state: w.State}, noon)
	if s.Health != corev1alpha2.UnknownHealth || s.ResourcesReady != "1/2" || s.FirstCulprit != "Job/* in acme+edge1: Forbidden" {
		t.Errorf("got %s, %s, %q", s.Health, s.ResourcesReady, s.FirstCulprit)
	}
	if diff := cmp.Diff([]string{edge1}, v.Partial); diff != "" {
		t.Errorf("clusters in which there may be more workloads (-want +got):\n%s", diff)
	}
}

// TestSelectedWorkloadsOfUnreachableClusterAreUnknown: the workloads that were selected in a cluster stay known while the
// cluster does not respond, also after a restart of the hub.
func TestSelectedWorkloadsOfUnreachableClusterAreUnknown(t *testing.T) {
	t.Parallel()
	scope := scopeOf(workloadsOf())
	w := withWorkloads(workload(hub, deployments, "web", healthscope.Ready, labelWeb), workload(edge1, deployments, "web", healthscope.Ready, labelWeb))
	scope.Status = statusIn(w, scope, noon)
	w = withWorkloads(workload(hub, deployments, "web", healthscope.Ready, labelWeb))
	w.states = map[string]fleet.Reachability{edge1: fleet.Unreachable}
	s := statusIn(w, scope, noon.Add(time.Minute))
	if s.Health != corev1alpha2.UnknownHealth || s.ResourcesReady != "1/2" || s.ClustersReachable != "1/2" {
		t.Errorf("got %s, %s, clusters %s", s.Health, s.ResourcesReady, s.ClustersReachable)
	}
}

// TestSelectedWorkloadsKeepSince: the time since which a workload is not ready stays the same after a restart of the hub, as for
// references.
func TestSelectedWorkloadsKeepSince(t *testing.T) {
	t.Parallel()
	scope := scopeOf(workloadsOf())
	l := &scopeHistory{scope: scope, since: newHistory(&scope.Status), w: withWorkloads(workload(edge1, deployments, "web", healthscope.Failed, labelWeb))}
	for minutes := range 3 {
		if minutes == 2 {
			l.restart()
		}
		c := only(t, l.judge(healthscope.DefaultPolicy(), noon.Add(time.Duration(minutes)*time.Minute)).Culprits)
		if c.Cluster != edge1 || c.Since == nil || !c.Since.Time.Equal(noon) {
			t.Errorf("after %d minutes the culprit is %+v; want one of %s, since noon", minutes, c, edge1)
		}
	}
}

// TestAClusterThatIsLostWhileGatheringHasNoWorkloadsWithoutName: the next pass marks those that were read.
func TestAClusterThatIsLostWhileGatheringHasNoWorkloadsWithoutName(t *testing.T) {
	t.Parallel()
	w := withWorkloads(workload(edge1, deployments, "web", healthscope.Ready, labelWeb))
	w.states = map[string]fleet.Reachability{}
	g := gathererIn(w, scopeOf(workloadsOf()), noon)
	g.selectObjects = func(cluster string, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) fleet.Selection {
		if cluster == edge1 {
			w.states[edge1] = fleet.Unreachable
		}
		return w.selection(cluster, gvk, namespace, selector)
	}
	for _, f := range g.gather().findings {
		for key := range f.keys() {
			if key.Name == "*" {
				t.Errorf("%v is a result", key)
			}
		}
	}
}

func TestASelectorOfBundlesNamesTheOneOfWorkloads(t *testing.T) {
	t.Parallel()
	app := corev1alpha2.ScopeApp{Name: "web", Selector: &metav1.LabelSelector{MatchLabels: labelWeb}}
	scope := scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{app}})
	w := withWorkloads(workload(edge1, deployments, "web", healthscope.Ready, labelWeb))
	message := meta.FindStatusCondition(statusIn(w, scope, noon).Conditions, corev1alpha2.ConditionReady).Message
	if want := `no bundle in namespace "shop" has the labels app=web; to select workloads, use workloadSelector`; !strings.Contains(message, want) {
		t.Errorf("want %q; got %q", want, message)
	}
	if got := len(gatherIn(w, scope, noon).dependencies.kinds()); got > 0 {
		t.Errorf("%d kinds are watched for a selector of bundles", got)
	}
	scope.Spec.Apps[0].WorkloadSelector = &corev1alpha2.WorkloadSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}}
	message = meta.FindStatusCondition(statusIn(w, scope, noon).Conditions, corev1alpha2.ConditionReady).Message
	if strings.Contains(message, "use workloadSelector") || !strings.Contains(message, "has the labels app=shop") {
		t.Errorf("an app with both selectors has the message %q", message)
	}
}

func TestMistakesInAWorkloadSelectorAreNamed(t *testing.T) {
	t.Parallel()
	bad := workloadsOf()
	bad.Apps[0].WorkloadSelector.MatchLabels = map[string]string{"app": "no good value"}
	for want, spec := range map[string]corev1alpha2.HealthScopeSpec{
		`the app's workloadSelector cannot be read: values[0][app]: Invalid value: "no good value"`:             bad,
		`kinds of the app's workloadSelector: the apiVersion "apps" is no <group>/<version>, such as "apps/v1"`: workloadsOf(corev1alpha2.WorkloadKind{APIVersion: "apps", Kind: "Deployment"}),
	} {
		s := statusIn(withWorkloads(), scopeOf(spec), noon)
		if s.Health != corev1alpha2.UnknownHealth || len(s.Culprits) == 0 || !strings.Contains(s.Culprits[0].Cause, want) {
			t.Errorf("want unknown because %q; got %s: %+v", want, s.Health, s.Culprits)
		}
	}
}

// TestWorkloadChangeEnqueuesSelectingScopes: a change of a workload enqueues the scopes that select it by its current or former
// labels.
func TestWorkloadChangeEnqueuesSelectingScopes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		title string
		scope *corev1alpha2.HealthScope
		kind  schema.GroupVersionKind
		set   map[string]string
		want  bool
	}{
		{"selected", scopeOf(workloadsOf()), deployments, labelWeb, true},
		{"another label", scopeOf(workloadsOf()), deployments, map[string]string{"app": "shop"}, false},
		{"another kind", scopeOf(workloadsOf()), schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, labelWeb, false},
	} {
		change := fleet.ObjectChange{
			Kind: fleet.Kind{Cluster: hub, GroupVersionKind: c.kind}, Name: types.NamespacedName{Namespace: "shop", Name: "any"}, Labels: fleet.NewLabelSet(c.set),
		}
		if got := len(newTestEventSource(world{}, c.scope).enqueuedBy(t, change)) > 0; got != c.want {
			t.Errorf("%s: got %t", c.title, got)
		}
	}
}
