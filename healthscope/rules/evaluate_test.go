package rules_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// parse reads an object from YAML, with numbers as a client of the API server has them.
func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("cannot read the test's own object: %v", err)
	}
	var object map[string]any
	if err := k8sjson.Unmarshal(encoded, &object); err != nil {
		t.Fatalf("cannot read the test's own object: %v", err)
	}
	return &unstructured.Unstructured{Object: object}
}

// resultCase is an object with the expected result, without its identity.
type resultCase struct {
	object string
	want   healthscope.Result
}

// checkResults evaluates the objects of cases and checks the results.
func checkResults(t *testing.T, cases map[string]resultCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := rules.Evaluate(parse(t, tc.object), rules.Options{})
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(healthscope.Result{}, "Key", "Version", "UID", "Owner", "Progress", "Timed")); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEvaluateSaysWhichObjectItIs(t *testing.T) {
	cases := map[string]struct {
		object string
		want   healthscope.Result
	}{
		"pod of a ReplicaSet": {
			object: `{apiVersion: v1, kind: Pod, metadata: {name: shop-6b7f-x2x4z, namespace: store, uid: u-17, ownerReferences: [
				{apiVersion: example.com/v1, kind: Watcher, name: other, uid: w},
				{apiVersion: apps/v1, kind: ReplicaSet, name: shop-6b7f, uid: r, controller: true}]},
				status: {containerStatuses: [{name: web, ready: true}]}}`,
			want: healthscope.Result{
				Key: healthscope.Key{Kind: "Pod", Namespace: "store", Name: "shop-6b7f-x2x4z"}, Version: "v1", UID: "u-17",
				Owner: &healthscope.Owner{Group: "apps", Kind: "ReplicaSet", Name: "shop-6b7f"},
			},
		},
		"deployment, no owner": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: store}}`,
			want:   healthscope.Result{Key: healthscope.Key{Group: "apps", Kind: "Deployment", Namespace: "store", Name: "shop"}, Version: "v1"},
		},
		"an owner that does not control is none": {
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: shop, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop}]}}`,
			want:   healthscope.Result{Key: healthscope.Key{Kind: "ConfigMap", Name: "shop"}, Version: "v1"},
		},
		"an owner without a name is none": {
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: shop, ownerReferences: [text, {kind: Deployment, controller: true}]}}`,
			want:   healthscope.Result{Key: healthscope.Key{Kind: "ConfigMap", Name: "shop"}, Version: "v1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := rules.Evaluate(parse(t, tc.object), rules.Options{})
			identity := healthscope.Result{Key: got.Key, Version: got.Version, UID: got.UID, Owner: got.Owner, Since: got.Since, Labels: got.Labels}
			if diff := cmp.Diff(tc.want, identity); diff != "" {
				t.Errorf("identity (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrderOfEvaluation(t *testing.T) {
	checkResults(t, map[string]resultCase{
		"deletion goes before an older status": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 5, deletionTimestamp: "2026-02-01T00:00:00Z"},
			  spec: {replicas: 2}, status: {observedGeneration: 4, replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2}}`,
			healthscope.Result{
				State: healthscope.Terminating, Reason: healthscope.ReasonDeleting, Message: "the object is being deleted",
				Serving: true, Replicas: &healthscope.Replicas{Ready: 2, Desired: 2},
			},
		},
		"deletion goes before a status that cannot be read": {
			`{apiVersion: v1, kind: Pod, metadata: {deletionTimestamp: "2026-02-01T00:00:00Z"}, status: nonsense}`,
			healthscope.Result{
				State: healthscope.Terminating, Reason: healthscope.ReasonDeleting, Message: "the object is being deleted",
				Replicas: &healthscope.Replicas{},
			},
		},
		"deletion goes before the conditions": {
			`{apiVersion: v1, kind: Namespace, metadata: {deletionTimestamp: "2026-02-01T00:00:00Z"}, status: {phase: Terminating, conditions: [{type: NamespaceContentRemaining, status: "True"}]}}`,
			healthscope.Result{State: healthscope.Terminating, Reason: healthscope.ReasonDeleting, Message: "the object is being deleted; NamespaceContentRemaining"},
		},
		"an older status goes before the rule, and what served still serves": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 7}, spec: {replicas: 2, progressDeadlineSeconds: 90},
			  status: {observedGeneration: 6, replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2}}`,
			healthscope.Result{
				State: healthscope.Pending, Reason: healthscope.ReasonStaleGeneration, Message: "the status is older than the spec",
				Serving: true, Replicas: &healthscope.Replicas{Ready: 2, Desired: 2}, ProgressDeadline: 90e9,
			},
		},
		"an older status does not serve the replicas that are wanted now": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 7}, spec: {replicas: 4},
			  status: {observedGeneration: 6, replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2}}`,
			healthscope.Result{
				State: healthscope.Pending, Reason: healthscope.ReasonStaleGeneration, Message: "the status is older than the spec",
				Replicas: &healthscope.Replicas{Ready: 2, Desired: 4},
			},
		},
		"an older status goes before the conditions": {
			`{apiVersion: acme.example/v1, kind: Gadget, metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}}`,
			healthscope.Result{
				State: healthscope.Pending, Reason: healthscope.ReasonStaleGeneration, Message: "the status is older than the spec",
			},
		},
		"a status newer than the object, read from two caches, is as good": {
			`{apiVersion: acme.example/v1, kind: Gadget, metadata: {generation: 3}, status: {observedGeneration: 4, conditions: [{type: Ready, status: "True"}]}}`,
			healthscope.Result{State: healthscope.Ready},
		},
	})
}

func TestObjectsThatCannotBeRead(t *testing.T) {
	cases := map[string]struct{ object, message string }{
		"no kind":                         {`{apiVersion: v1, metadata: {name: x}}`, "kind is missing"},
		"kind is a number":                {`{apiVersion: v1, kind: 4}`, "kind is not a string"},
		"name is an object":               {`{apiVersion: v1, kind: ConfigMap, metadata: {name: {}}}`, "metadata.name is not a string"},
		"metadata is a list":              {`{apiVersion: v1, kind: ConfigMap, metadata: []}`, "metadata is not an object"},
		"status is a string":              {`{apiVersion: v1, kind: Pod, status: Running}`, "status is not an object"},
		"generation is a word":            {`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: two}}`, "metadata.generation is not a whole number from 0 up"},
		"replicas is an object":           {`{apiVersion: apps/v1, kind: Deployment, status: {replicas: {}}}`, "status.replicas is not a whole number from 0 up"},
		"replicas is negative":            {`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: -2}, status: {replicas: 1}}`, "spec.replicas is not a whole number from 0 up"},
		"replicas is a fraction":          {`{apiVersion: apps/v1, kind: ReplicaSet, status: {replicas: 1.5}}`, "status.replicas is not a whole number from 0 up"},
		"replicas is enormous":            {`{apiVersion: apps/v1, kind: ReplicaSet, status: {replicas: 1e300}}`, "status.replicas is not a whole number from 0 up"},
		"partition is a list":             {`{apiVersion: apps/v1, kind: StatefulSet, spec: {updateStrategy: {rollingUpdate: {partition: []}}}}`, "spec.updateStrategy.rollingUpdate.partition is not a whole number from 0 up"},
		"container statuses is a string":  {`{apiVersion: v1, kind: Pod, status: {containerStatuses: all}}`, "status.containerStatuses is not a list"},
		"a container status is a number":  {`{apiVersion: v1, kind: Pod, status: {containerStatuses: [{ready: true}, 7]}}`, "status.containerStatuses[1] is not an object"},
		"ready is a word":                 {`{apiVersion: v1, kind: Pod, status: {containerStatuses: [{ready: perhaps}]}}`, "status.containerStatuses.ready is not a boolean"},
		"phase is a boolean":              {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: true}}`, "status.phase is not a string"},
		"load balancer is a string":       {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: x}}`, "status.loadBalancer is not an object"},
		"conditions of a custom resource": {`{apiVersion: acme.example/v1, kind: Gadget, status: {conditions: good}}`, "status.conditions is not a list"},
		"conditions without a rule":       {`{apiVersion: v1, kind: Node, status: {conditions: good}}`, "status.conditions is not a list"},
		"the first of two counts":         {`{apiVersion: batch/v1, kind: Job, status: {succeeded: some, failed: few}}`, "status.failed is not a whole number from 0 up"},
		"last run at noon":                {`{apiVersion: batch/v1, kind: CronJob, status: {lastScheduleTime: noon}}`, "status.lastScheduleTime is not a time"},
		"parents is an object":            {`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, status: {parents: {}}}`, "status.parents is not a list"},
		"conditions is a string":          {`{apiVersion: apps/v1, kind: Deployment, status: {conditions: good}}`, "status.conditions is not a list"},
		"conditions of an Application":    {`{apiVersion: core.oam.dev/v1beta1, kind: Application, status: {status: running, conditions: good}}`, "status.conditions is not a list"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := rules.Evaluate(parse(t, tc.object), rules.Options{})
			if got.State != healthscope.Unknown || got.Reason != healthscope.ReasonInvalidObject || got.Message != tc.message {
				t.Errorf("got %s, %s, %q; want Unknown, InvalidObject, %q", got.State, got.Reason, got.Message, tc.message)
			}
			if got.Serving || got.Replicas != nil {
				t.Errorf("an object that cannot be read says serving %v and replicas %v", got.Serving, got.Replicas)
			}
		})
	}
}

func TestEmptyObjectsAreUnknown(t *testing.T) {
	for name, object := range map[string]*unstructured.Unstructured{"nil": nil, "no content": {}, "no fields": {Object: map[string]any{}}} {
		t.Run(name, func(t *testing.T) {
			want := healthscope.Result{State: healthscope.Unknown, Reason: healthscope.ReasonInvalidObject, Message: "the object is empty"}
			if diff := cmp.Diff(want, rules.Evaluate(object, rules.Options{})); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNumbersInAnyForm(t *testing.T) {
	for name, three := range map[string]any{
		"int64": int64(3), "int": 3, "int32": int32(3), "float64": 3.0, "json.Number": json.Number("3"), "string": "3", "string with a fraction": "3.0",
	} {
		t.Run(name, func(t *testing.T) {
			got := rules.Evaluate(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"generation": three},
				"spec":   map[string]any{"replicas": three},
				"status": map[string]any{"observedGeneration": three, "replicas": three, "readyReplicas": three, "updatedReplicas": three, "availableReplicas": three},
			}}, rules.Options{})
			want := &healthscope.Replicas{Ready: 3, Desired: 3}
			if got.State != healthscope.Ready || cmp.Diff(want, got.Replicas) != "" {
				t.Errorf("got %s with replicas %v: %s", got.State, got.Replicas, got.Message)
			}
		})
	}
}

func TestMessagesAreBoundedAtARune(t *testing.T) {
	for name, word := range map[string]string{"ASCII": "x", "two bytes": "ü", "three bytes": "語", "four bytes": "🜚", "half a rune each": "x\xe8"} {
		t.Run(name, func(t *testing.T) {
			got := rules.Evaluate(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Pod",
				"status": map[string]any{"phase": "Failed", "reason": "Evicted", "message": "a" + strings.Repeat(word, 300)},
			}}, rules.Options{})
			if len(got.Message) > 256 || len(got.Message) < 253 || !utf8.ValidString(got.Message) {
				t.Errorf("a message of %d bytes, valid %v", len(got.Message), utf8.ValidString(got.Message))
			}
		})
	}
}

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
