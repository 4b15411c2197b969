package rules_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// operatorCase is an entry of testdata/operators: a status that an operator writes, with the state that a person expects.
type operatorCase struct {
	Operator string          `json:"operator"`
	Source   string          `json:"source"`
	Case     string          `json:"case"`
	State    string          `json:"state"`
	Reason   string          `json:"reason"`
	Flags    []string        `json:"flags"`
	Object   json.RawMessage `json:"object"`
}

// readOperators reads the entries of testdata/operators.
func readOperators(t *testing.T) []operatorCase {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "operators", "operators.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []operatorCase
	if err := yaml.UnmarshalStrict(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestOperators asserts that one good condition or phase does not override the rest of the status.
func TestOperators(t *testing.T) {
	cases := readOperators(t)
	operators := map[string]bool{}
	sources := []string{"recording", "test data", "documentation", "API types", "issues"}
	for _, tc := range cases {
		operators[tc.Operator] = true
		t.Run(tc.Operator+"/"+tc.Case, func(t *testing.T) {
			if !slices.Contains(sources, tc.Source) {
				t.Errorf("source is %q, which is none of %q", tc.Source, sources)
			}
			var object map[string]any
			if err := k8sjson.Unmarshal(tc.Object, &object); err != nil {
				t.Fatal(err)
			}
			got, rule := rules.Explain(&unstructured.Unstructured{Object: object}, rules.Options{})
			if string(got.State) != tc.State || tc.Reason != "" && string(got.Reason) != tc.Reason {
				t.Errorf("got %s %s by %s: %s; want %s %s", got.State, got.Reason, rule, got.Message, tc.State, tc.Reason)
			}
			if tc.Flags != nil && !slices.Equal(flagsOf(got), tc.Flags) {
				t.Errorf("flags are %q, want %q", flagsOf(got), tc.Flags)
			}
			if got.State != healthscope.Ready && got.Message == "" {
				t.Error("the message is empty")
			}
		})
	}
	if len(operators) < 30 || len(cases) < 60 {
		t.Errorf("%d statuses of %d operators were read, want at least 60 of 30", len(cases), len(operators))
	}
}
