package recorder

import (
	"encoding/json"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// The levels of EMCO's readiness keys: of an app in a cluster, and of a resource.
const (
	levelReady           = "resourcesready"
	levelResourceReady   = "resready"
	levelResourceSuccess = "ressuccess"
)

const (
	// hookAnnotation is on objects that Helm would run as hooks, and jobLabel on the pods of Jobs.
	hookAnnotation, jobLabel = "helm.sh/hook", "job-name"
)

// readyKinds are the kinds whose readiness EMCO records.
var readyKinds = map[string]bool{"Service": true, "Deployment": true, "StatefulSet": true, "DaemonSet": true, "Job": true, "Pod": true}

// readyKeys returns the values of EMCO's readiness keys by their level below the place of a bundle. An app is ready in
// a cluster when every resource that is applied there is in the bundle and Ready. A resource that is missing is not ready yet.
func readyKeys(b *fleet.Bundle, status json.RawMessage, at appcontext.Cluster) (map[string]bool, error) {
	order, err := at.ResourceOrder()
	if err != nil {
		return nil, errors.Wrapf(err, "cannot say which resources of bundle %q are ready", b.Name)
	}
	keys := map[string]bool{}
	members := map[string]healthscope.Member{}
	for _, m := range b.Members {
		members[m.Name+"+"+m.Kind] = m
	}
	ready := b.Unlisted.Total == b.Unlisted.Ready
	for _, name := range order {
		r, _ := at.Resource(name)
		if _, kind, _ := r.Split(); !readyKinds[kind] {
			continue
		}
		m, found := members[name]
		if found {
			keys[resourceLevel(name, levelResourceReady)] = m.Counts == healthscope.Ready
		}
		ready = ready && (found && m.Counts == healthscope.Ready || !found && b.Truncated)
	}
	if b.Labels[k8spluginv1alpha1.LabelPreInstallHook] != "true" {
		keys[levelReady] = ready
	}
	for name, succeeded := range hookSuccesses(status) {
		if _, there := at.Resource(name); there {
			keys[resourceLevel(name, levelResourceSuccess)] = succeeded
		}
	}
	return keys, nil
}

// resourceLevel returns the level of a readiness key of a resource.
func resourceLevel(resource, level string) string { return "resource/" + resource + "/" + level }

// hookSuccesses returns whether each hook in a status has succeeded, by the name of its resource.
func hookSuccesses(status json.RawMessage) map[string]bool {
	var lists struct {
		JobStatuses []batchv1.Job
		PodStatuses []corev1.Pod
	}
	all := map[string]bool{}
	if json.Unmarshal(status, &lists) != nil {
		return all // What waits for a hook continues to wait.
	}
	for _, j := range lists.JobStatuses {
		if metav1.HasAnnotation(j.ObjectMeta, hookAnnotation) {
			all[j.Name+"+Job"] = slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
				return c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue
			})
		}
	}
	for _, p := range lists.PodStatuses {
		if metav1.HasAnnotation(p.ObjectMeta, hookAnnotation) || metav1.HasLabel(p.ObjectMeta, jobLabel) {
			all[p.Name+"+Pod"] = p.Status.Phase == corev1.PodSucceeded
		}
	}
	return all
}
