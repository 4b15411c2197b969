package verify

import (
	"strings"
	"testing"
)

// fieldsOfOthers are the fields of HealthScopes in other implementations: the CRDs of oam-kubernetes-runtime 0.4 and of KubeVela
// 1.8, the specification, and Rudr's parameters. Within one implementation, a name with the same meaning in several places is
// listed once.
var fieldsOfOthers = map[string][]string{
	"oam-kubernetes-runtime": {
		"probe-interval", "probe-timeout", "spec.workloadRefs[]", "apiVersion", "kind", "name", "uid",
		"status.conditions[]", "lastTransitionTime", "message", "reason", "status", "type",
		"status.healthConditions[]", "componentName", "diagnosis", "healthStatus", "targetWorkload", "workloadStatus",
		"status.scopeHealthCondition", "healthyWorkloads", "unhealthyWorkloads", "unknownWorkloads", "total",
	},
	"KubeVela": {
		"spec.appReferences[].appName", "spec.appReferences[].compReferences[]", "compName", "workload", "traits",
		"spec.workloadRefs[]", "namespace", "resourceVersion", "fieldPath", "spec.probe-interval", "spec.probe-timeout", "spec.manageHealthCheck",
		"status.appHealthConditions[]", "appName", "envName", "components[]", "customStatusMsg", "traits[]", "status.healthConditions[]", "status.scopeHealthCondition",
	},
	"the specification": {
		"probe-method", "probe-endpoint", "probe-timeout", "probe-interval", "failure-rate-threshold", "healthy-rate-threshold",
		"health-threshold-percentage", "required-healthy-components",
	},
	"Rudr": {
		"probeMethod", "probeEndpoint", "probeInterval", "probeTimeout", "failureRateThreshold", "healthyRateThreshold", "healthThresholdPercentage",
		"requiredHealthyComponents", "allowComponentOverlap",
	},
}

// TestFieldsOfOthersAreInTheConversionTable asserts that the page about compatibility names each of these fields in a row of its
// implementation.
func TestFieldsOfOthersAreInTheConversionTable(t *testing.T) {
	page := readPage(t, "compatibility.md").text
	for of, fields := range fieldsOfOthers {
		var said strings.Builder
		for line := range strings.Lines(page) {
			cells := strings.Split(line, " | ")
			if len(cells) == 3 && strings.TrimPrefix(cells[0], "| ") == of {
				said.WriteString(cells[1] + cells[2])
			}
		}
		for _, field := range fields {
			if !namedIn(said.String(), field) {
				t.Errorf("no row of %s names %q", of, field)
			}
		}
	}
}

// namedIn reports whether a text names a field in code: as a whole, or as the end of a path.
func namedIn(text, field string) bool {
	for _, match := range codeSpan.FindAllStringSubmatch(text, -1) {
		if code := "." + match[1]; strings.HasSuffix(code, "."+field) || strings.HasPrefix(code, "."+field+":") {
			return true
		}
	}
	return false
}
