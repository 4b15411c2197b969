package main

import (
	"reflect"
	"strings"
	"testing"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// TestTablesOfKind checks one line of each kind.
func TestTablesOfKind(t *testing.T) {
	tables, err := tablesOfKind("../crd/core.oam.dev_healthscopes.yaml", reflect.TypeFor[corev1alpha2.HealthScope]())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]table{"columns": tables.columns, "spec": tables.spec, "status": tables.status}
	for heading, lines := range map[string][]string{
		"columns": {"| `HEALTH` | `status.health` |", "| `CULPRIT` | `status.firstCulprit`, with `-o wide` |"},
		"spec": {
			"| `spec.workloadRefs[].resourceVersion` | string | Accepted for KubeVela and without effect. |",
			"| `spec.apps[].name` | string, required, at most 253 characters | The name of the application within the scope. |",
			"| `spec.rollup.healthyPercentage` | integer, from 1 to 100 | The share of members that must be healthy, in percent. Without it: 100. |",
			"| `spec.rollup.required` | list of strings, at most 500 entries, each of at most 253 characters | Apps that must exist and in which all members must be healthy, whatever the percentage. |",
		},
		"status": {
			"| `status.healthConditions[].targetWorkload` | object | The reference, with the uid of what was found. With the fields of `spec.workloadRefs`. |",
			"| `status.culprits[].since` | time | When it entered the state. |",
			"| `status.apps[].clusters[].ready` | integer | The number of them that are Ready. |",
		},
	} {
		for _, want := range lines {
			if !strings.Contains(got[heading].String(), want+"\n") {
				t.Errorf("%s has no line %s", heading, want)
			}
		}
		for _, not := range []string{"targetWorkload.kind", "matchLabels", "status.conditions[]."} {
			if strings.Contains(got[heading].String(), not) {
				t.Errorf("%s has %s, which is described elsewhere", heading, not)
			}
		}
	}
}
