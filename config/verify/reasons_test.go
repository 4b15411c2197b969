package verify

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// notGiven stands in the row of a reason that the code knows and does not give.
const notGiven = "This version does not give it."

func TestReasonsAreDocumented(t *testing.T) {
	p := readPage(t, "reasons.md").section(t, "Reasons of HealthScope")
	rows := p.rows(t, "reason")
	reasons := constants(sources(t, "healthscope"), "Reason")
	p.documents(t, "reason", slices.Sorted(maps.Values(reasons)), firstCodes(rows, "reason"))
	given := reasonsThatAreGiven(t, reasons)
	for _, r := range rows {
		reason := code(r["reason"])
		for state := range strings.SplitSeq(r["state"], ", ") {
			if !healthscope.State(strings.TrimSuffix(state, " (warning)")).Valid() {
				t.Errorf("%s: %q, in the row of %s, is no state", p.name, state, reason)
			}
		}
		if r["meaning"] == "" || r["what to do"] == "" {
			t.Errorf("%s: say what %s means, and what to do about it", p.name, reason)
		}
		if strings.Contains(r["what to do"], notGiven) == given[reason] {
			t.Errorf("%s: the row of %s must say %q if nothing in the code gives it, and only then", p.name, reason, notGiven)
		}
	}
}

// reasonsThatAreGiven says which reasons something in the code uses, besides the place where they are declared.
func reasonsThatAreGiven(t *testing.T, reasons map[string]string) map[string]bool {
	t.Helper()
	uses := map[string]int{}
	inspect(sources(t, "healthscope", "controllers"), func(i *ast.Ident) { uses[i.Name]++ })
	given := map[string]bool{}
	for name, value := range reasons {
		given[value] = uses[name] > 1
	}
	return given
}

func TestReasonsOfKubernetesAreDocumented(t *testing.T) {
	p := readPage(t, "reasons.md").section(t, "Reasons of Kubernetes")
	got := firstCodes(p.rows(t, "reason"), "reason")
	p.documents(t, "reason of a container that waits", keys(literal(t, sources(t, "healthscope/rules"), "hopeless")), got)
	for _, reason := range got {
		pod := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "x", "namespace": "default"},
			"status": map[string]any{"phase": "Running", "containerStatuses": []any{
				map[string]any{"name": "c", "ready": false, "state": map[string]any{"waiting": map[string]any{"reason": reason}}},
			}},
		}}
		if r := rules.Evaluate(pod, rules.Options{}); r.State != healthscope.Failed || string(r.Reason) != reason {
			t.Errorf("%s says that a pod that waits for %s is Failed; it is %s, %s", p.name, reason, r.State, r.Reason)
		}
	}
}
