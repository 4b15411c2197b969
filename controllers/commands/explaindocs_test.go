package commands

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExampleOfTheRulesPage runs the example of the page about rules on the objects in its output.
func TestExampleOfTheRulesPage(t *testing.T) {
	page, err := os.ReadFile("../../config/docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for i, part := range strings.Split(string(page), "```") {
		if i%2 == 1 {
			_, text, _ := strings.Cut(part, "\n")
			blocks = append(blocks, text)
		}
	}
	if len(blocks) != 3 {
		t.Fatalf("there are %d examples; there should be rules, output, and an object", len(blocks))
	}
	const others = `---
{apiVersion: example.org/v1, kind: Database, metadata: {name: stock, namespace: store}, spec: {replicas: 1}, status: {phase: Broken}}
---
{apiVersion: example.org/v1, kind: Database, metadata: {name: users, namespace: store}, spec: {replicas: 2}, status: {phase: Open, replicas: 1}}
---
{apiVersion: example.org/v1, kind: Database, metadata: {name: new, namespace: store}, spec: {replicas: 1}}
---
{apiVersion: example.org/v1, kind: Database, metadata: {name: odd, namespace: store}, spec: {replicas: 1}, status: {state: Open}}
`
	code, out, errOut := runExplain(blocks[2]+others, "-f", "-", "--config", writeFile(t, "config.yaml", blocks[0]))
	_, want, _ := strings.Cut(blocks[1], "\n")
	if diff := cmp.Diff(want, out); diff != "" || code != 1 {
		t.Errorf("exit code %d, %s, -page +program:\n%s", code, errOut, diff)
	}
}
