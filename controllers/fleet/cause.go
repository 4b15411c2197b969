package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// maxPods is the maximum number of pods, and of ReplicaSets, of one workload that are read.
const maxPods = 100

// PodsHint says what to do when the pods of a workload cannot be read.
const PodsHint = "the hub may not list its pods; in a member, repeat healthscope clusters add with --workloads"

var (
	podResource        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	replicaSetResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
)

// workloads are the kinds whose pods can be read, with their resources.
var workloads = map[schema.GroupKind]schema.GroupVersionResource{
	{Group: "apps", Kind: "Deployment"}:  {Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Kind: "StatefulSet"}: {Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "apps", Kind: "DaemonSet"}:   {Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "apps", Kind: "ReplicaSet"}:  replicaSetResource,
	{Group: "batch", Kind: "Job"}:        {Group: "batch", Version: "v1", Resource: "jobs"},
}

// PodDiagnosis is the state of a workload according to its pods.
type PodDiagnosis struct {
	// Reason and Message are those of the pod that makes the workload Failed while none of its pods works; empty when there is none.
	Reason  healthscope.Reason
	Message string
	// Cause names the ReplicaSet or pod that causes the workload's state; empty when none does. It is PodsHint when the hub may not list them.
	Cause string
}

// HasPods reports whether JudgePods can find the pods of a kind.
func HasPods(kind schema.GroupKind) bool {
	_, ok := workloads[kind]
	return ok
}

// JudgePods reads the ReplicaSets and pods of one workload and judges the workload by them, as Judge does for those in
// bundles. It caches nothing. The caller sets the deadline.
func (o *Objects) JudgePods(ctx context.Context, workload healthscope.Key, policy healthscope.Policy, now time.Time) (PodDiagnosis, error) {
	resource, ok := workloads[schema.GroupKind{Group: workload.Group, Kind: workload.Kind}]
	o.mu.Lock()
	var client dynamic.Interface
	if known := o.clusters[workload.Cluster]; known != nil && known.state.Answers() {
		client = known.clients.Load().client
	}
	o.mu.Unlock()
	if !ok || client == nil {
		return PodDiagnosis{}, nil
	}
	// The hub has the right to list, and not to get.
	found, err := client.Resource(resource).Namespace(workload.Namespace).List(ctx, fromCache(metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", workload.Name).String(), Limit: 1}))
	if err != nil || len(found.Items) == 0 {
		return PodDiagnosis{}, errors.Wrapf(err, "cannot list %s %q", workload.Kind, workload.Name)
	}
	selector, err := selectorOf(&found.Items[0])
	if err != nil || selector == "" {
		return PodDiagnosis{}, errors.Wrapf(err, "cannot read the selector of %s %q", workload.Kind, workload.Name)
	}
	objects, err := listDependents(ctx, client, workload, selector)
	if apierrors.IsForbidden(err) {
		return PodDiagnosis{Cause: PodsHint}, nil
	}
	if err != nil {
		return PodDiagnosis{}, err
	}
	return o.diagnose(append(objects, found.Items[0]), workload, policy, now), nil
}

// fromCache lets the API server answer a list from the current content of its watch cache. A consistent list waits up to
// 0.1 s until etcd confirms that the cache is current, and the write of the scope's status waits with it. Version 0 would
// ignore the limit, so the version is 1: every cache is at least that new, and an API server without a cache reads etcd.
// See https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions.
func fromCache(options metav1.ListOptions) metav1.ListOptions {
	options.ResourceVersion, options.ResourceVersionMatch = "1", metav1.ResourceVersionMatchNotOlderThan
	return options
}

// listDependents returns the pods of a workload, and the ReplicaSets of a Deployment.
func listDependents(ctx context.Context, client dynamic.Interface, workload healthscope.Key, selector string) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	resources := []schema.GroupVersionResource{podResource}
	if workload.Kind == "Deployment" {
		resources = append(resources, replicaSetResource)
	}
	for _, resource := range resources {
		list, err := client.Resource(resource).Namespace(workload.Namespace).List(ctx, fromCache(metav1.ListOptions{LabelSelector: selector, Limit: maxPods}))
		if err != nil {
			return nil, errors.Wrapf(err, "cannot list the %s of %s %q", resource.Resource, workload.Kind, workload.Name)
		}
		objects = append(objects, list.Items...)
	}
	return objects, nil
}

// diagnose judges a workload together with its pods and ReplicaSets. objects contains all of them.
func (o *Objects) diagnose(objects []unstructured.Unstructured, workload healthscope.Key, policy healthscope.Policy, now time.Time) (diagnosis PodDiagnosis) {
	results := make([]healthscope.Result, 0, len(objects))
	nothingWorks := false
	for i := range objects {
		r := rules.Evaluate(&objects[i], rules.Options{User: o.userRules})
		r.Cluster = workload.Cluster
		results = append(results, r)
		nothingWorks = nothingWorks || r.Key == workload && r.NothingWorks()
	}
	for _, m := range healthscope.Judge(results, policy, now).Members {
		if m.Key != workload {
			continue
		}
		diagnosis.Cause = m.Cause
		if nothingWorks && m.State == healthscope.Failed && m.Reason != healthscope.ReasonPendingTimeout {
			diagnosis.Reason, diagnosis.Message = m.Reason, m.Message
		}
	}
	return diagnosis
}

// selectorOf returns the selector of a workload's pods; empty when it has none.
func selectorOf(workload *unstructured.Unstructured) (string, error) {
	spec, found, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err != nil || !found {
		return "", err
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &selector); err != nil {
		return "", err
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return "", fmt.Errorf("spec.selector: %w", err)
	}
	return parsed.String(), nil
}
