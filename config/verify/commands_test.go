package verify

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/controllers/commands"
)

func TestTheExampleOfTheVersionIsTrue(t *testing.T) {
	p := readPage(t, "commands.md").section(t, "healthscope version")
	var out, errOut bytes.Buffer
	if status := commands.Main([]string{"version"}, nil, &out, &errOut); status != 0 {
		t.Fatalf("healthscope version exits with %d: %s", status, errOut.String())
	}
	_, example, _ := strings.Cut(p.fences("console")[0], "\n")
	// The go command notes down neither commit nor libraries in the program of a test.
	first, rest, _ := strings.Cut(example, "\n")
	for _, line := range []string{strings.TrimSuffix(out.String(), "\n"), first} {
		if !regexp.MustCompile(`^healthscope \S+ \(go\S+, \w+/\w+\)$`).MatchString(line) {
			t.Errorf("%s: the program prints %q, the example says %q", p.name, out.String(), example)
		}
	}
	commit, libraries, _ := strings.Cut(rest, "\n")
	if !regexp.MustCompile(`^commit [0-9a-f]{40} of \d{4}-\S+Z$`).MatchString(commit) {
		t.Errorf("%s: the example says of the commit %q", p.name, commit)
	}
	required := readFile(t, "go.mod")
	for line := range strings.Lines(libraries) {
		if !strings.Contains(required, "\t"+line) {
			t.Errorf("%s: the example says %q, and go.mod does not", p.name, line)
		}
	}
}
