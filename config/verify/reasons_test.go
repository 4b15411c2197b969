package verify

import (
	"go/ast"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// TestEveryReasonIsExplained, and given by something in the code besides: it is declared, explained, and used.
func TestEveryReasonIsExplained(t *testing.T) {
	explained := map[string]bool{}
	for _, e := range healthscope.Explanations {
		if explained[string(e.Reason)] || e.Meaning == "" || e.Advice == "" {
			t.Errorf("%s: explain it once: say what it means, and what to do about it", e.Reason)
		}
		explained[string(e.Reason)] = true
		for state := range strings.SplitSeq(e.States, ", ") {
			if !healthscope.State(strings.TrimSuffix(state, " (warning)")).Valid() {
				t.Errorf("%s: %q is no state", e.Reason, state)
			}
		}
	}
	uses := map[string]int{}
	inspect(sources(t, "healthscope", "controllers"), func(i *ast.Ident) { uses[i.Name]++ })
	for name, reason := range constants(sources(t, "healthscope"), "Reason") {
		if !explained[reason] {
			t.Errorf("explain %s in healthscope.Explanations", name)
		}
		if uses[name] < 3 {
			t.Errorf("remove %s: nothing gives it", name)
		}
	}
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
