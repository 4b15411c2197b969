package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

func TestDeadlineByAnnotation(t *testing.T) {
	object := func(value string) healthscope.Result {
		return rules.Evaluate(parse(t, `{apiVersion: acme.example/v1, kind: Gadget, metadata: {name: g, annotations: {healthscope.core.oam.dev/progress-deadline: "`+value+`"}},
			status: {conditions: [{type: Ready, status: "False"}]}}`), rules.Options{})
	}
	if got := object("30m"); got.ProgressDeadline != 30*time.Minute || got.Message != "" {
		t.Errorf("deadline is %s, message %q, want 30m and none", got.ProgressDeadline, got.Message)
	}
	for _, bad := range []string{"soon", "-5m", "0s", "600"} {
		got := object(bad)
		if got.ProgressDeadline != 0 || !strings.Contains(got.Message, rules.AnnotationProgressDeadline) || !strings.Contains(got.Message, `"`+bad+`"`) {
			t.Errorf("%s: deadline is %s, message %q, want none, and one that names the annotation and its value", bad, got.ProgressDeadline, got.Message)
		}
	}
	for kind, reason := range map[string]healthscope.Reason{"Service": healthscope.ReasonInvalidDeadline, "ConfigMap": healthscope.ReasonExists} { // The reason of the object itself comes first.
		ready := rules.Evaluate(parse(t, `{apiVersion: v1, kind: `+kind+`, metadata: {annotations: {healthscope.core.oam.dev/progress-deadline: soon}}}`), rules.Options{})
		if ready.State != healthscope.Ready || !ready.Warning || ready.Reason != reason {
			t.Errorf("%s: state is %s %s, warning %v, want Ready %s with a warning", kind, ready.State, ready.Reason, ready.Warning, reason)
		}
	}
}

func TestDeploymentsOwnWordOnProgress(t *testing.T) {
	for _, tc := range []struct {
		condition, annotation string
		want                  bool
	}{
		{`{type: Progressing, status: "True", reason: ReplicaSetUpdated}`, "", true},
		{`{type: Progressing, status: "True", reason: NewReplicaSetAvailable}`, "", false},
		{`{type: Available, status: "False"}`, "", false},
		{`{type: Progressing, status: "True", reason: ReplicaSetUpdated}`, "healthscope.core.oam.dev/progress-deadline: 90s", false},
	} {
		got := rules.Evaluate(parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1, annotations: {`+tc.annotation+`}}, spec: {replicas: 2},
			status: {observedGeneration: 1, replicas: 2, readyReplicas: 1, conditions: [`+tc.condition+`]}}`), rules.Options{})
		if got.State != healthscope.Pending || got.Timed != tc.want {
			t.Errorf("%s %s: %s, timed by Kubernetes: %v, want Pending, %v", tc.condition, tc.annotation, got.State, got.Timed, tc.want)
		}
	}
}
