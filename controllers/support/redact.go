package support

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// redacted replaces a secret.
const redacted = "(not shown)"

// Patterns of secrets in text.
var (
	privateKeys = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)
	// userInfo matches the user and password in a URL, up to the last @: passwords may contain any character.
	userInfo = regexp.MustCompile(`://[^\s"'<>]*@`)
	// jsonWebToken matches a JSON Web Token (RFC 7519), such as that of a ServiceAccount.
	jsonWebToken = regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}(\.[\w-]*)?`)
	bearer       = regexp.MustCompile(`(?i)\b((?:bearer|basic) +)[\w.~+/=-]{12,}`)
	// secretSetting matches a name that suggests a secret, and its value.
	secretSetting = regexp.MustCompile(`(?i)([\w.-]*(?:passwo?r?d|secret|token|credential|api[_-]?key|key-data)[\w.-]*)(\\?["']?[ \t]*[:=][ \t]*)(\\?"[^"]*(?:"|$)|'[^']*(?:'|$)|[^\s"',;}]+)`)
	// nonSecretName matches the end of names whose values are no secrets: they say where a secret is, or how long it is valid.
	nonSecretName = regexp.MustCompile(`(?i)(file|name|namespace|path|ref|expires|lifetime|seconds|kind)$`)
)

// hints are lower-case substrings, one of which is in every match of the patterns. Matching is slow, and few lines contain a hint.
var hints = []string{"://", "eyj", "bearer ", "basic ", "passw", "secret", "token", "credential", "api", "key-data"}

// redactText replaces what looks like a secret in a text. When in doubt, it redacts.
func redactText(text string) string {
	if strings.Contains(text, "PRIVATE KEY-----") {
		text = privateKeys.ReplaceAllString(text, redacted)
	}
	var redactedText strings.Builder
	redactedText.Grow(len(text))
	for line := range strings.Lines(text) {
		lower := strings.ToLower(line)
		if slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(lower, hint) }) {
			line = redactLine(line)
		}
		redactedText.WriteString(line)
	}
	return redactedText.String()
}

func redactLine(line string) string {
	line = userInfo.ReplaceAllString(line, "://"+redacted+"@")
	line = jsonWebToken.ReplaceAllString(line, redacted)
	line = bearer.ReplaceAllString(line, "${1}"+redacted)
	return secretSetting.ReplaceAllStringFunc(line, func(match string) string {
		parts := secretSetting.FindStringSubmatch(match)
		name, value := parts[1], strings.Trim(parts[3], `\"'`)
		if nonSecretName.MatchString(name) || slices.Contains([]string{"", "true", "false", "{", "|"}, value) {
			return match
		}
		return name + parts[2] + redacted
	})
}

// ownAnnotationPrefix is the prefix of the annotations that are kept. Others may contain anything, such as a copy of the object.
const ownAnnotationPrefix = "healthscope.core.oam.dev/"

// removeForeignAnnotations removes the annotations at a path whose names do not begin with ownAnnotationPrefix.
func removeForeignAnnotations(object map[string]any, path ...string) {
	annotations, _, _ := unstructured.NestedMap(object, path...)
	for name := range annotations {
		if !strings.HasPrefix(name, ownAnnotationPrefix) {
			unstructured.RemoveNestedField(object, append(path, name)...)
		}
	}
}

// redactWorkload redacts what may be secret in the pod specification of a pod or workload.
func redactWorkload(o *unstructured.Unstructured) {
	redactMetadata(o)
	removeForeignAnnotations(o.Object, "spec", "template", "metadata", "annotations")
	for _, path := range [][]string{{"spec"}, {"spec", "template", "spec"}} {
		for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
			containers, _, _ := unstructured.NestedFieldNoCopy(o.Object, append(path, list)...)
			redactValues(containers)
		}
	}
}

// redactValues redacts the value of each object that has a name and a value, such as environment variables and the headers of probes.
func redactValues(in any) {
	switch in := in.(type) {
	case []any:
		for _, item := range in {
			redactValues(item)
		}
	case map[string]any:
		if _, named := in["name"]; named && in["value"] != nil {
			in["value"] = redacted
		}
		for _, item := range in {
			redactValues(item)
		}
	}
}

// redactBundle replaces the lists of whole objects in a bundle by their number: objects that another monitor has written may contain anything.
func redactBundle(o *unstructured.Unstructured) {
	redactMetadata(o)
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	for name, value := range status {
		if list, ok := value.([]any); ok && strings.HasSuffix(name, "Statuses") {
			status[name] = strconv.Itoa(len(list)) + " objects, " + redacted
		}
	}
	if status != nil {
		o.Object["status"] = status
	}
}

// redactMetadata removes foreign annotations, and the field sets of managedFields, from an object's metadata.
func redactMetadata(o *unstructured.Unstructured) {
	removeForeignAnnotations(o.Object, "metadata", "annotations")
	fields := o.GetManagedFields() // The managers are useful, their field sets are not.
	for i := range fields {
		fields[i].FieldsV1 = nil
	}
	o.SetManagedFields(fields)
}
