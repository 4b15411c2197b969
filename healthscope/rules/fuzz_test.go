package rules_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/healthscope/healthscope/healthscope/rules"
)

// inexact matches numbers that may have another value as floating-point numbers.
var inexact = regexp.MustCompile(`\d{15}|\d[eE]`)

// FuzzEvaluate asserts that any object has a state, a message of limited length in one line, and a rule that decided, and that
// there is no panic.
func FuzzEvaluate(f *testing.F) {
	for _, tc := range readObjects(f) {
		f.Add([]byte(tc.Object))
	}
	f.Add([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":null,"spec":[],"status":{"replicas":"3","conditions":[null,1,{"type":1}]}}`))
	f.Add([]byte(`{"kind":"Pod","status":{"containerStatuses":[{"ready":1,"state":{"waiting":[]}}],"phase":0}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var asClient, asPlain map[string]any
		if k8sjson.Unmarshal(data, &asClient) != nil || json.Unmarshal(data, &asPlain) != nil {
			return
		}
		got, rule := rules.Explain(&unstructured.Unstructured{Object: asClient}, rules.Options{})
		if !got.State.Valid() || len(got.Message) > 256 || !utf8.ValidString(got.Message) || strings.ContainsAny(got.Message, "\n\r\t") {
			t.Errorf("state %q with message %q", got.State, got.Message)
		}
		if rule == "" {
			t.Errorf("%s, %s, and no word by which rule", got.State, got.Reason)
		}
		if inexact.Match(data) {
			return
		}
		if again := rules.Evaluate(&unstructured.Unstructured{Object: asPlain}, rules.Options{}); again.State != got.State || again.Reason != got.Reason {
			t.Errorf("whole numbers as integers give %s, %s; as fractions %s, %s: %s", got.State, got.Reason, again.State, again.Reason, again.Message)
		}
	})
}
