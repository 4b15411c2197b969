package rules_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
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
	for _, word := range []string{"x", "ü", "語", "🜚", "x\xe8"} {
		got := rules.Evaluate(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"status": map[string]any{"phase": "Failed", "reason": "Evicted", "message": "a" + strings.Repeat(word, 300)},
		}}, rules.Options{})
		if len(got.Message) > 256 || len(got.Message) < 253 || !utf8.ValidString(got.Message) {
			t.Errorf("many %q: a message of %d bytes, valid %v", word, len(got.Message), utf8.ValidString(got.Message))
		}
	}
}
