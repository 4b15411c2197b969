package fleet

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
)

const (
	// maxResources is the maximum number of resources in status.resources that are kept of an object.
	maxResources = 20
	// maxStatusText is the maximum length of a status, in bytes.
	maxStatusText = 1 << 10
)

// Resource is an entry of an object's status.resources: an object that was created for it, as by OAM's workloads.
type Resource struct {
	// APIVersion, Kind and Name name the object; Namespace is empty when it is that of the object that names it.
	APIVersion, Kind, Namespace, Name string
}

// resourcesOf returns the first maxResources entries of an object's status.resources, and the number of all entries. It ignores
// entries that are not in OAM's form: other kinds have a field of that name with another meaning.
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

// statusOf returns the status of an object for which there is no rule, as JSON of maxStatusText bytes at most; empty for others.
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
