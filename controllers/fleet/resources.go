package fleet

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
)

const (
	// maxResources bounds how many of the resources that an object names are kept.
	maxResources = 20
	// maxStatusText bounds the text of a status, in bytes.
	maxStatusText = 1 << 10
)

// Resource is what an object names in status.resources: an object that was made for it, as OAM's workloads do.
type Resource struct {
	// APIVersion, Kind and Name name the object; Namespace is empty when it is that of the object that names it.
	APIVersion, Kind, Namespace, Name string
}

// resourcesOf returns the first resources that an object names in status.resources, and how many it names. What has another
// form than OAM's is left out: other kinds have a field of that name, which may mean something else.
func resourcesOf(u *unstructured.Unstructured) (first []Resource, total int) {
	status, _ := u.Object["status"].(map[string]any)
	list, _ := status["resources"].([]any)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		text := func(field string) string {
			value, _ := entry[field].(string)
			return value
		}
		r := Resource{APIVersion: text("apiVersion"), Kind: text("kind"), Namespace: text("namespace"), Name: text("name")}
		if r.APIVersion == "" || r.Kind == "" || r.Name == "" {
			continue
		}
		if total++; total <= maxResources {
			first = append(first, Resource{intern(r.APIVersion), intern(r.Kind), intern(r.Namespace), r.Name})
		}
	}
	return first, total
}

// statusOf returns the status of an object that no rule can judge, as JSON of maxStatusText at most; empty for others.
func statusOf(u *unstructured.Unstructured, result healthscope.Result) string {
	if result.Reason != healthscope.ReasonNoRule {
		return ""
	}
	status, err := json.Marshal(u.Object["status"])
	if err != nil { // What has been read from JSON can be written as JSON.
		return ""
	}
	return healthscope.Shorten(string(status), maxStatusText)
}
