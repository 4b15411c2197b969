package rules_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// objectCase is an entry of testdata/*.yaml: an object with its expected result.
type objectCase struct {
	Case   string          `json:"case"`
	State  string          `json:"state"`
	Reason string          `json:"reason"`
	Flags  []string        `json:"flags"`
	Rule   string          `json:"rule"`
	Object json.RawMessage `json:"object"`
	// Kstatus is the status that kstatus computes, if it means another state, and Because is the reason for the difference.
	Kstatus string `json:"kstatus"`
	Because string `json:"because"`

	object *unstructured.Unstructured
}

// readObjects reads the entries of testdata/*.yaml.
func readObjects(t testing.TB) []objectCase {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []objectCase
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []objectCase
		if err := yaml.UnmarshalStrict(text, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range cases {
			var object map[string]any
			if err := k8sjson.Unmarshal(cases[i].Object, &object); err != nil {
				t.Fatalf("%s: %s: %v", file, cases[i].Case, err)
			}
			cases[i].object = &unstructured.Unstructured{Object: object}
		}
		all = append(all, cases...)
	}
	if len(all) < 154 {
		t.Fatalf("%d objects were read, which is not all", len(all))
	}
	return all
}

// flagsOf lists the flags of a result by name.
func flagsOf(r healthscope.Result) []string {
	var flags []string
	for _, flag := range []struct {
		name string
		set  bool
	}{{"serving", r.Serving}, {"suspended", r.Suspended}, {"warning", r.Warning}} {
		if flag.set {
			flags = append(flags, flag.name)
		}
	}
	return flags
}

func TestObjects(t *testing.T) {
	seen := map[string]bool{}
	for _, tc := range readObjects(t) {
		t.Run(tc.Case, func(t *testing.T) {
			if seen[tc.Case] {
				t.Errorf("the name is used twice")
			}
			seen[tc.Case] = true
			got, rule := rules.Explain(tc.object, rules.Options{})
			if string(got.State) != tc.State || string(got.Reason) != tc.Reason || !slices.Equal(flagsOf(got), tc.Flags) {
				t.Errorf("got %s %q %v by %s: %s; want %s %q %v", got.State, got.Reason, flagsOf(got), rule, got.Message, tc.State, tc.Reason, tc.Flags)
			}
			if tc.Rule != "" && rule != tc.Rule {
				t.Errorf("decided by %q, want %q", rule, tc.Rule)
			}
		})
	}
}

// stateOfKstatus returns the state that corresponds to a status of kstatus.
func stateOfKstatus(s status.Status) healthscope.State {
	switch s {
	case status.CurrentStatus:
		return healthscope.Ready
	case status.InProgressStatus:
		return healthscope.Pending
	case status.FailedStatus:
		return healthscope.Failed
	case status.TerminatingStatus:
		return healthscope.Terminating
	case status.NotFoundStatus, status.UnknownStatus:
	}
	return healthscope.Unknown
}

// TestDisagreementsWithKstatus compares the rules with kstatus. Every difference must be listed with its reason, and every
// listed difference must exist.
func TestDisagreementsWithKstatus(t *testing.T) {
	disagreements := 0
	for _, tc := range readObjects(t) {
		t.Run(tc.Case, func(t *testing.T) {
			theirs, found := healthscope.Unknown, "error"
			if computed, err := status.Compute(tc.object); err == nil {
				theirs, found = stateOfKstatus(computed.Status), string(computed.Status)
			}
			ours := rules.Evaluate(tc.object, rules.Options{}).State
			switch {
			case found != "error" && theirs == ours:
				if tc.Kstatus != "" {
					t.Errorf("kstatus agrees, it says %s; the case lists a disagreement", found)
				}
			case tc.Kstatus != found || tc.Because == "":
				t.Errorf("we say %s, kstatus says %s; the case lists %q, because %q", ours, found, tc.Kstatus, tc.Because)
			default:
				disagreements++
			}
		})
	}
	t.Logf("%d intended disagreements", disagreements)
}
