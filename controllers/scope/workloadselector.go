package scope

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// defaultWorkloadKinds are the kinds of a workloadSelector that names none.
var defaultWorkloadKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
}

// workloadKinds returns the kinds of a workloadSelector, and what is wrong with those that cannot be read; the latter is empty when all can.
func workloadKinds(s *corev1alpha2.WorkloadSelector) (kinds []schema.GroupVersionKind, problem string) {
	if len(s.Kinds) == 0 {
		return defaultWorkloadKinds, ""
	}
	for _, k := range s.Kinds {
		gvk, invalid := parseRef("", corev1alpha2.WorkloadReference{APIVersion: k.APIVersion, Kind: k.Kind, Name: "any"})
		if invalid != nil {
			problem = strings.ReplaceAll(invalid.Message, "the reference's apiVersion", "the apiVersion")
			continue
		}
		kinds = append(kinds, gvk)
	}
	return kinds, problem
}

func (g *gatherer) addSelectedWorkloads(app *gatheredApp) {
	selector, err := metav1.LabelSelectorAsSelector(&app.WorkloadSelector.LabelSelector)
	if err != nil {
		g.addBadSelectorf(app, app.Name, "the app's workloadSelector cannot be read: %v", err)
		return
	}
	kinds, problem := workloadKinds(app.WorkloadSelector)
	if problem != "" {
		g.addBadSelectorf(app, app.Name, "kinds of the app's workloadSelector: %s", problem)
	}
	for _, cluster := range g.view.Clusters() {
		if g.selectsCluster(app, cluster) {
			g.waitForCluster(cluster)
			g.addWorkloadsIn(app, cluster, kinds, selector)
		}
	}
}

// addWorkloadsIn adds the workloads of an app in a cluster. A Job whose CronJob is selected too does not count: it may have
// failed long ago. The same holds for every workload whose controller is selected.
func (g *gatherer) addWorkloadsIn(app *gatheredApp, cluster string, kinds []schema.GroupVersionKind, selector labels.Selector) {
	var found []healthscope.Result
	selected := sets.New[healthscope.Key]()
	for _, kind := range kinds {
		if !g.followsKind(kind) {
			g.add(app, corev1alpha2.WorkloadReference{}, tooManyKindsResult(anyWorkloadResult(cluster, g.scope.Namespace, kind)))
			continue
		}
		s := g.objectsWith(fleet.Kind{Cluster: cluster, GroupVersionKind: kind}, selector)
		for _, workload := range s.Objects {
			found = append(found, workload.Result)
			selected.Insert(workload.Result.Key)
		}
		g.addOtherWorkloads(app, cluster, kind, s.Others)
	}
	for _, r := range found {
		if r.Owner != nil && selected.Has(healthscope.Key{Cluster: cluster, Group: r.Owner.Group, Kind: r.Owner.Kind, Namespace: r.Namespace, Name: r.Owner.Name}) {
			continue
		}
		ref := corev1alpha2.WorkloadReference{
			APIVersion: schema.GroupVersion{Group: r.Group, Version: r.Version}.String(), Kind: r.Kind, Name: r.Name, UID: types.UID(r.UID), Cluster: cluster,
		}
		g.add(app, ref, r)
	}
}

func (g *gatherer) objectsWith(kind fleet.Kind, selector labels.Selector) fleet.Selection {
	g.out.dependencies.addSelected(kind, g.scope.Namespace, selector)
	return g.selectObjects(kind.Cluster, kind.GroupVersionKind, g.scope.Namespace, selector)
}

// addOtherWorkloads adds one result for the workloads of a kind that cannot be read, of which it is not known whether there are any.
// For a cluster that does not answer, carryOver adds them from the status instead.
func (g *gatherer) addOtherWorkloads(app *gatheredApp, cluster string, kind schema.GroupVersionKind, others fleet.Lookup) {
	g.waitForKind(others)
	if state, known := g.clusterState(cluster); others.Result.State == healthscope.NotPresent || !known || !state.Answers() {
		return
	}
	r := anyWorkloadResult(cluster, g.scope.Namespace, kind)
	r.State, r.Reason, r.Message, r.Since = others.Result.State, others.Result.Reason, others.Result.Message, others.Result.Since
	g.add(app, corev1alpha2.WorkloadReference{}, r).partial = []string{cluster}
}

func kindsText(s *corev1alpha2.WorkloadSelector) string {
	kinds, _ := workloadKinds(s)
	var names []string
	for _, k := range kinds {
		names = append(names, k.Kind)
	}
	return strings.Join(names, ", ")
}

// anyWorkloadResult returns a result that stands for all workloads of a kind in a namespace of a cluster.
func anyWorkloadResult(cluster, namespace string, kind schema.GroupVersionKind) healthscope.Result {
	return resultOf(fleet.Kind{Cluster: cluster, GroupVersionKind: kind}, namespace, "*")
}

// addHint adds a hint for an app whose selector matches no bundle but workloads: selector selects bundles, so that a user
// without bundles probably means workloadSelector.
func (g *gatherer) addHint(app *gatheredApp, selector labels.Selector) {
	for _, cluster := range g.view.Clusters() {
		if !g.selectsCluster(app, cluster) {
			continue
		}
		for _, kind := range defaultWorkloadKinds {
			if !g.followsKind(kind) {
				return
			}
			if s := g.objectsWith(fleet.Kind{Cluster: cluster, GroupVersionKind: kind}, selector); len(s.Objects) > 0 {
				if g.out.hints == nil {
					g.out.hints = map[string]string{}
				}
				g.out.hints[app.Name] = fmt.Sprintf("; %s %q in cluster %q has them: to select workloads, use workloadSelector", kind.Kind, s.Objects[0].Result.Name, cluster)
				return
			}
		}
	}
}
