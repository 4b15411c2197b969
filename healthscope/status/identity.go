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

// is says whether the object of a result is the expected one. Version makes no difference; group and namespace do where
// they are known.
func (i identity) is(k healthscope.Key) bool {
	return i.kind == k.Kind && i.name == k.Name &&
		(i.version == "" || i.group == k.Group || i.group == legacyGroup) &&
		(i.namespace == "" || k.Namespace == "" || i.namespace == k.Namespace)
}

// header is the part of an object that says what it is.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// identify returns what the object in a text of YAML or JSON is, and whether that can be read. The name is not among it:
// the context knows that by itself.
func identify(text string) (identity, bool) {
	h, ok := scan(text)
	if !ok {
		encoded, err := yaml.YAMLToJSON([]byte(text))
		if text == placeholder || err != nil || k8sjson.Unmarshal(encoded, &h) != nil {
			return identity{}, false
		}
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

// scan reads the header of an object in YAML as tools write it, line by line, which takes a fraction of the time of
// parsing it. It says false for whatever is written in another way, or might be.
func scan(text string) (header, bool) {
	var s scanner
	for line := range strings.SplitSeq(text, "\n") {
		if !s.line(line) {
			return header{}, false
		}
	}
	return s.header, s.header.APIVersion != "" && s.header.Kind != ""
}

// scanner is the working state of scan.
type scanner struct {
	header header
	// inMetadata is true between the key metadata and the next key at the top; indent is how far its fields are indented.
	inMetadata bool
	indent     int
	// taken is how far the key was indented whose value the last line gave, plus one; 0 when it gave none.
	taken int
}

// line reads a line. It returns false when it takes a parser to understand it.
func (s *scanner) line(line string) bool {
	inner := strings.TrimLeft(line, " ")
	depth := len(line) - len(inner)
	if inner == "" || inner[0] == '#' {
		return true // Comments may be indented in any way.
	}
	if s.taken > 0 && depth >= s.taken || spans(line) {
		return false // The value goes on.
	}
	s.taken = 0
	if s.indent == 0 {
		s.indent = depth
	}
	key, value, ok := cutField(inner)
	if !ok {
		return depth > 0
	}
	if depth == 0 {
		s.inMetadata, s.indent = key == "metadata", 0
	}
	target := s.target(key, depth)
	if target == nil {
		return depth > 0 || key != "metadata" || value == ""
	}
	if *target != "" || !isWord(value) {
		return false
	}
	*target, s.taken = value, depth+1
	return true
}

// cutField splits a line into the key and the value of a field, and says whether it is one.
func cutField(line string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(strings.TrimSuffix(line, "\r"), ":")
	return key, strings.TrimSpace(value), ok && isWord(key) && (value == "" || value[0] == ' ')
}

// target returns where the value of a key goes; nil for those that do not matter.
func (s *scanner) target(key string, depth int) *string {
	switch {
	case depth == 0 && key == "apiVersion":
		return &s.header.APIVersion
	case depth == 0 && key == "kind":
		return &s.header.Kind
	case s.inMetadata && depth > 0 && depth == s.indent && key == "namespace":
		return &s.header.Metadata.Namespace
	default:
		return nil
	}
}

// spans says whether a line may begin or end something that spans lines whatever their indentation: a quoted text, or a
// flow.
func spans(line string) bool {
	return strings.Count(line, `"`)%2 != 0 || strings.Count(line, `'`)%2 != 0 || strings.Contains(line, `\`) ||
		strings.Count(line, "{") != strings.Count(line, "}") || strings.Count(line, "[") != strings.Count(line, "]")
}

// isWord says whether a text is a plain scalar, in YAML, that is a string and nothing else: names and versions.
func isWord(text string) bool {
	for i, r := range text {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789./-_", r)) {
			return false
		}
	}
	switch strings.ToLower(text) {
	case "", "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return false
	}
	return true
}

// parse returns the object in a text of YAML or JSON, without what may not be shown; nil when there is none.
func parse(text string) map[string]any {
	encoded, err := yaml.YAMLToJSON([]byte(text))
	var object map[string]any
	if err != nil || k8sjson.Unmarshal(encoded, &object) != nil {
		return nil
	}
	return strip(object)
}

// strip removes from an object, in place, what may not be shown.
func strip(object map[string]any) map[string]any {
	if object != nil {
		bundle.Strip(&unstructured.Unstructured{Object: object})
	}
	return object
}
