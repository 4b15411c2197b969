package kubevela

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ApplicationKind is the kind of KubeVela's Applications.
var ApplicationKind = schema.GroupVersionKind{Group: "core.oam.dev", Version: "v1beta1", Kind: "Application"}

// MaxApplied bounds the objects of one Application that are looked at: as many as a scope may refer to itself.
const MaxApplied = 5000

// localCluster is KubeVela's name for the cluster that it runs in itself, which may also be left out.
const localCluster = "local"

// Application holds the parts of an Application that matter for its health. It does not hold KubeVela's own view of the
// health: KubeVela judges an Application only while its workflow runs.
type Application struct {
	// Applied are the objects that the workflow has applied and that may be workloads, in the order of the status.
	Applied []Applied
	// Others is the number of objects that the workflow has applied and that are no workloads by their kinds.
	Others int
	// Problem says why the status cannot be read as a whole; empty when it can.
	Problem string
}

// Applied is an object that an Application has applied.
type Applied struct {
	schema.GroupVersionKind

	// Cluster is the name of the cluster; empty for the one that the Application is in.
	Cluster string
	// Namespace is the namespace of the object; empty when it is in none.
	Namespace string
	// Name is the name of the object.
	Name string
	// Env is the environment of KubeVela that the object is for; empty when there is none.
	Env string
}

// applicationStatus are those fields of an Application's status that are read.
type applicationStatus struct {
	AppliedResources []appliedResource `json:"appliedResources"`
	Policies         []policyStatus    `json:"policy"`
}

type appliedResource struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Cluster    string `json:"cluster"`
	Creator    string `json:"creator"`
}

// policyStatus is the status of a policy, whose form depends on the type.
type policyStatus struct {
	Type   string `json:"type"`
	Status any    `json:"status"`
}

// envBindingStatus is the status of a policy of type env-binding. It says where environments are.
type envBindingStatus struct {
	Envs []struct {
		Env        string `json:"env"`
		Placements []struct {
			Cluster   string `json:"cluster"`
			Namespace string `json:"namespace"`
		} `json:"placements"`
	} `json:"envs"`
}

// ReadApplication reads an Application.
func ReadApplication(object map[string]any) *Application {
	a := &Application{}
	content, _ := object["status"].(map[string]any)
	var status applicationStatus
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status); err != nil {
		a.Problem = fmt.Sprintf("cannot read the status of the Application: %v", err)
		return a
	}
	envs := environments(status.Policies)
	for _, r := range status.AppliedResources {
		gvk := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
		switch {
		case r.Creator != "workflow":
		case isAuxiliary(gvk.GroupKind()):
			a.Others++
		case len(a.Applied) == MaxApplied:
			a.Problem = fmt.Sprintf("the Application has applied more than %d objects, and only the first %d are looked at", MaxApplied, MaxApplied)
		default:
			location := placement{clusterOf(r.Cluster), r.Namespace}
			a.Applied = append(a.Applied, Applied{
				GroupVersionKind: gvk, Cluster: location.cluster, Namespace: r.Namespace, Name: r.Name, Env: cmp.Or(envs[location], envs[placement{location.cluster, ""}]),
			})
		}
	}
	return a
}

// placement is a namespace of a cluster; an empty namespace means all namespaces.
type placement struct {
	cluster, namespace string
}

// environments returns the environments of the policies by placement.
func environments(policies []policyStatus) map[placement]string {
	envs := map[placement]string{}
	for _, p := range policies {
		content, ok := p.Status.(map[string]any)
		var status envBindingStatus
		if p.Type != "env-binding" || !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status) != nil {
			continue
		}
		for _, env := range status.Envs {
			for _, p := range env.Placements {
				envs[placement{clusterOf(p.Cluster), p.Namespace}] = env.Env
			}
		}
	}
	return envs
}

// clusterOf returns the name of a cluster; empty for the one that the Application is in.
func clusterOf(name string) string {
	if name == localCluster {
		return ""
	}
	return name
}

// podKinds are Kubernetes' own kinds that run pods.
var podKinds = []schema.GroupKind{
	{Kind: "Pod"}, {Kind: "ReplicationController"},
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"}, {Group: "apps", Kind: "ReplicaSet"},
	{Group: "batch", Kind: "Job"}, {Group: "batch", Kind: "CronJob"},
}

// isAuxiliary reports whether a kind is a built-in kind that runs no pods, such as a Service or a Secret. Such an object
// belongs to a workload or to a trait, so that it need not be watched.
func isAuxiliary(kind schema.GroupKind) bool {
	return (!strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io")) && !slices.Contains(podKinds, kind)
}
