package scope

import (
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

// addSelectedWorkloads adds the workloads that an app's workloadSelector matches.
func (g *gatherer) addSelectedWorkloads(a *app) {
	if a.WorkloadSelector == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(&a.WorkloadSelector.LabelSelector)
	if err != nil {
		g.addBadSelectorf(a, a.Name, "the app's workloadSelector cannot be read: %v", err)
		return
	}
	kinds, problem := workloadKinds(a.WorkloadSelector)
	if problem != "" {
		g.addBadSelectorf(a, a.Name, "kinds of the app's workloadSelector: %s", problem)
	}
	for _, cluster := range g.selectedClusters(a) {
		g.addWorkloadsIn(a, cluster, kinds, selector)
	}
}

// addWorkloadsIn adds the workloads of an app in a cluster. A Job whose CronJob is selected too does not count: it may have
// failed long ago. The same holds for every workload whose controller is selected.
//
// One result stands for the workloads of a kind that cannot be read, of which it is not known whether there are any. For a
// cluster that does not answer, carryOver adds them from the status instead.
func (g *gatherer) addWorkloadsIn(a *app, cluster string, kinds []schema.GroupVersionKind, selector labels.Selector) {
	var found []healthscope.Result
	selected := sets.New[healthscope.Key]()
	for _, gvk := range kinds {
		kind := fleet.Kind{Cluster: cluster, GroupVersionKind: gvk}
		every := resultOf(kind, g.scope.Namespace, "*")
		if !g.followsKind(gvk) {
			g.add(a, reference{}, tooManyKindsResult(every))
			continue
		}
		g.dependencies.addSelected(kind, g.scope.Namespace, selector)
		s := g.selectObjects(cluster, gvk, g.scope.Namespace, selector)
		for _, workload := range s.Objects {
			found = append(found, workload.Result)
			selected.Insert(workload.Result.Key)
		}
		g.waitForKind(s.Others)
		others := s.Others.Result
		// The state is read after the objects: a cluster that has just been lost or removed does not answer here either.
		if state, _ := g.unreadable(cluster); state.Answers() && others.State != healthscope.NotPresent {
			every.State, every.Reason, every.Message, every.Since = others.State, others.Reason, others.Message, others.Since
			g.add(a, reference{}, every).partial = []string{cluster}
		}
	}
	for _, r := range found {
		if r.Owner != nil && selected.Has(healthscope.Key{Cluster: cluster, Group: r.Owner.Group, Kind: r.Owner.Kind, Namespace: r.Namespace, Name: r.Owner.Name}) {
			continue
		}
		ref := corev1alpha2.WorkloadReference{Kind: r.Kind, Name: r.Name, UID: types.UID(r.UID), Cluster: cluster}
		ref.APIVersion = schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
		g.add(a, reference{WorkloadReference: ref}, r)
	}
}
