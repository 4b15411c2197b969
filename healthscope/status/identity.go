package status

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// placeholder is the body of a resource, in the status context of a group, that a later update has added.
const placeholder = "nil"

// legacyGroup is an API group whose kinds have all moved to others: a context may still name it, and clusters do not.
const legacyGroup = "extensions"

// identity is what an object is. Group is meaningless while version is empty.
type identity struct {
	group, version, kind, namespace, name string
}

// matches reports whether the object of a result is the expected one. Version makes no difference; group and namespace do where
// they are known.
func (i identity) matches(k healthscope.Key) bool {
	return i.kind == k.Kind && i.name == k.Name &&
		(i.version == "" || i.group == k.Group || i.group == legacyGroup) &&
		(i.namespace == "" || k.Namespace == "" || i.namespace == k.Namespace)
}

// objectHeader is the part of an object that says what it is.
type objectHeader struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// identify returns what the object in a text of YAML or JSON is, and whether that can be read. The name is not among it:
// the context knows that.
func identify(text string) (identity, bool) {
	encoded, err := yaml.YAMLToJSON([]byte(text))
	var h objectHeader
	if text == placeholder || err != nil || k8sjson.Unmarshal(encoded, &h) != nil {
		return identity{}, false
	}
	if h.APIVersion == "" || h.Kind == "" {
		return identity{}, false
	}
	group, version, ok := strings.Cut(h.APIVersion, "/")
	if !ok {
		group, version = "", h.APIVersion
	}
	return identity{group: group, version: version, kind: h.Kind, namespace: h.Metadata.Namespace}, true
}

// parseRedacted returns the object in a text of YAML or JSON, without what may not be shown; nil when there is none.
func parseRedacted(text string) map[string]any {
	encoded, err := yaml.YAMLToJSON([]byte(text))
	var object map[string]any
	if err != nil || k8sjson.Unmarshal(encoded, &object) != nil {
		return nil
	}
	return redact(object)
}

// redact removes from an object, in place, what may not be shown.
func redact(object map[string]any) map[string]any {
	if object != nil {
		bundle.Redact(&unstructured.Unstructured{Object: object})
	}
	return object
}
