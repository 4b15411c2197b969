package rules_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// objectCase is an entry of testdata: an object with its result. A case of a rule is an entry of testdata/*.yaml; testdata/operators has statuses
// as operators write them.
type objectCase struct {
	Case     string             `json:"case"`
	State    healthscope.State  `json:"state"`
	Reason   healthscope.Reason `json:"reason"`
	Message  string             `json:"message"`
	Flags    []string           `json:"flags"`
	Replicas string             `json:"replicas"`
	Deadline string             `json:"deadline"`
	Since    string             `json:"since"`
	Rule     string             `json:"rule"`
	Object   json.RawMessage    `json:"object"`
	// Operator writes the status, and Source is where its form comes from.
	Operator string `json:"operator"`
	Source   string `json:"source"`
	// Kstatus is the status that kstatus computes, if it means another state, and Because is the reason for the difference.
	Kstatus string `json:"kstatus"`
	Because string `json:"because"`

	object *unstructured.Unstructured
}

// readCases reads the entries of a file.
func readCases(t testing.TB, file string) []objectCase {
	t.Helper()
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
	return cases
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
		all = append(all, readCases(t, file)...)
	}
	if len(all) < 356 {
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
	}{{"serving", r.Serving}, {"suspended", r.Suspended}, {"warning", r.Warning}, {"timed", r.Timed}} {
		if flag.set {
			flags = append(flags, flag.name)
		}
	}
	return flags
}

// caseOf returns a result in the form of an entry.
func caseOf(r healthscope.Result) objectCase {
	c := objectCase{State: r.State, Reason: r.Reason, Message: r.Message, Flags: flagsOf(r)}
	if r.Replicas != nil {
		c.Replicas = fmt.Sprintf("%d/%d", r.Replicas.Ready, r.Replicas.Desired)
	}
	if r.ProgressDeadline != 0 {
		c.Deadline = r.ProgressDeadline.String()
	}
	if !r.Since.IsZero() {
		c.Since = r.Since.Format(time.RFC3339)
	}
	return c
}

// identityOf returns a result that only identifies an object, as apimachinery reads it.
func identityOf(object *unstructured.Unstructured) healthscope.Result {
	kind := object.GroupVersionKind()
	identity := healthscope.Result{
		Key: healthscope.Key{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}, Version: kind.Version, UID: string(object.GetUID()),
	}
	if owner := metav1.GetControllerOf(object); owner != nil {
		identity.Owner = &healthscope.Owner{Group: schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group, Kind: owner.Kind, Name: owner.Name}
	}
	return identity
}

// TestObjects compares results with the entries. What an entry does not have is empty in the result; its rule is compared if it has one. No
// object is changed, because objects come from caches that other code reads.
func TestObjects(t *testing.T) {
	seen := map[string]bool{}
	for _, tc := range readObjects(t) {
		t.Run(tc.Case, func(t *testing.T) {
			if seen[tc.Case] {
				t.Errorf("the name is used twice")
			}
			seen[tc.Case] = true
			before := tc.object.DeepCopy()
			got, rule := rules.Explain(tc.object, rules.Options{})
			if diff := cmp.Diff(tc, caseOf(got), cmpopts.IgnoreUnexported(objectCase{}), cmpopts.IgnoreFields(objectCase{}, "Case", "Rule", "Object", "Kstatus", "Because")); diff != "" {
				t.Errorf("result by %q (-want +got):\n%s", rule, diff)
			}
			if tc.Rule != "" && rule != tc.Rule {
				t.Errorf("decided by %q, want %q", rule, tc.Rule)
			}
			identity := healthscope.Result{Key: got.Key, Version: got.Version, UID: got.UID, Owner: got.Owner, Labels: got.Labels}
			if diff := cmp.Diff(identityOf(tc.object), identity); diff != "" {
				t.Errorf("identity (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.object); diff != "" {
				t.Errorf("the object has changed (-before +after):\n%s", diff)
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

// TestOperators asserts that one good condition or phase does not override the rest of the status.
func TestOperators(t *testing.T) {
	cases := readCases(t, filepath.Join("testdata", "operators", "operators.yaml"))
	operators := map[string]bool{}
	sources := []string{"recording", "test data", "documentation", "API types", "issues"}
	for _, tc := range cases {
		operators[tc.Operator] = true
		t.Run(tc.Operator+"/"+tc.Case, func(t *testing.T) {
			if !slices.Contains(sources, tc.Source) {
				t.Errorf("source is %q, which is none of %q", tc.Source, sources)
			}
			got, rule := rules.Explain(tc.object, rules.Options{})
			if got.State != tc.State || tc.Reason != "" && got.Reason != tc.Reason {
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
