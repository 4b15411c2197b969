package verify

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
)

// troubleshootingPage is where every word is that kubectl describe prints.
const troubleshootingPage = "troubleshooting.md"

// eventConstant matches the names of constants that are reasons of events.
var eventConstant = regexp.MustCompile("^(event|ReasonToken)[A-Z]")

// eventAction is the one constant of that form that is no reason.
const eventAction = "eventAction"

// eventsElsewhere are events that a library makes.
var eventsElsewhere = []string{"LeaderElection", "StatusContested"}

func TestEveryEventIsInTroubleshooting(t *testing.T) {
	p := readPage(t, troubleshootingPage).section(t, "Events")
	words := map[string]bool{}
	inspect(sources(t, "controllers/fleet", "controllers/enrol", "controllers/monitor", "controllers/oam"), func(s *ast.ValueSpec) {
		for i, name := range s.Names {
			if i < len(s.Values) && eventConstant.MatchString(name.Name) && name.Name != eventAction {
				word, _ := text(s.Values[i])
				words[word] = true
			}
		}
	})
	for _, reachability := range fleet.Reachabilities() {
		words[string(reachability)] = true
	}
	for _, e := range scope.Events {
		words[string(e.Reason)] = true
	}
	for _, e := range scope.Conditions[corev1alpha2.ConditionInventorySynced] {
		words[string(e.Reason)] = true
	}
	rows := p.rows(t, "event")
	p.documents(t, "event", slices.Concat(slices.Sorted(maps.Keys(words)), eventsElsewhere), firstCodes(rows, "event"))
	for _, r := range rows {
		if r["on"] == "" || r["meaning"] == "" || r["what to do"] == "" {
			t.Errorf("%s: %s needs an object, a meaning, and what to do", p.name, r["event"])
		}
	}
}

// TestTroubleshootingIsFound from where somebody may be who sees such a word.
func TestTroubleshootingIsFound(t *testing.T) {
	wanted := map[string]string{"README.md": "config/docs/" + troubleshootingPage}
	for _, name := range []string{"README.md", healthScopePage, resourceBundleStatePage, "reasons.md", "clusters.md", "operations.md"} {
		wanted["config/docs/"+name] = troubleshootingPage
	}
	for _, p := range allPages(t) {
		if want, ok := wanted[p.name]; ok && !slices.ContainsFunc(p.links(), func(link string) bool { return strings.HasPrefix(link, want) }) {
			t.Errorf("%s: link to %s", p.name, want)
		}
	}
	for name, crd := range crdOf {
		if says := readCRD(t, crd).Spec.Versions[0].Schema.OpenAPIV3Schema.Description; !strings.Contains(says, "/config/docs/"+troubleshootingPage) {
			t.Errorf("%s: kubectl explain does not lead to %s; it says: %s", name, troubleshootingPage, says)
		}
	}
}
