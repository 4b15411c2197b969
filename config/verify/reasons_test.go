package verify

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope"
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
