package status

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// placeholder is the body, in the status context of a group, of a resource that a later update adds.
const placeholder = "nil"

// legacyGroup is an API group whose kinds have all moved to other groups. A context may still name it, but clusters do not.
const legacyGroup = "extensions"

// identity identifies an object. group is meaningless while version is empty.
type identity struct {
	group, version, kind, namespace, name string
}

func (i identity) gvk() GVK { return GVK{Group: i.group, Version: i.version, Kind: i.kind} }

// matches reports whether the object with a key, of the same kind and name, is the expected one. The version makes no difference.
// group and namespace count where they are known.
func (i identity) matches(k healthscope.Key) bool {
	return (i.version == "" || i.group == k.Group || i.group == legacyGroup) &&
		(i.namespace == "" || k.Namespace == "" || i.namespace == k.Namespace)
}

// objectHeader is the part of an object that identifies it.
type objectHeader struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// identify returns the identity of the object in a text of YAML or JSON; empty if the text cannot be read. The identity has no
// name, because the context holds the name.
func identify(text string) identity {
	encoded, err := yaml.YAMLToJSON([]byte(text))
	var h objectHeader
	if text == placeholder || err != nil || k8sjson.Unmarshal(encoded, &h) != nil || h.APIVersion == "" || h.Kind == "" {
		return identity{}
	}
	group, version, ok := strings.Cut(h.APIVersion, "/")
	if !ok {
		group, version = "", h.APIVersion
	}
	return identity{group: group, version: version, kind: h.Kind, namespace: h.Metadata.Namespace}
}

// parseRedacted returns the redacted object in a text of YAML or JSON; nil when there is none.
func parseRedacted(text string) map[string]any {
	encoded, err := yaml.YAMLToJSON([]byte(text))
	var object map[string]any
	if err != nil || k8sjson.Unmarshal(encoded, &object) != nil {
		return nil
	}
	return redact(object)
}

// redact removes confidential data from an object, in place.
func redact(object map[string]any) map[string]any {
	bundle.Redact(&unstructured.Unstructured{Object: object})
	return object
}
