package chart

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the table of values into the chart's page")

// value is a line of values.yaml: its path, the comment above it, and its default as JSON.
type value struct{ path, comment, initial string }

// readValues reads the lines of values.yaml that are keys.
func readValues(t *testing.T, text string) []value {
	t.Helper()
	var values any
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	var all []value
	var path []string
	comment := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		key, _, isKey := strings.Cut(trimmed, ":")
		switch {
		case strings.HasPrefix(trimmed, "# "):
			comment = trimmed[2:]
		case isKey:
			depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
			path = append(path[:depth:depth], key)
			all = append(all, value{strings.Join(path, "."), comment, defaultOf(t, values, path)})
			comment = ""
		default:
			comment = ""
		}
	}
	return all
}

func defaultOf(t *testing.T, values any, path []string) string {
	t.Helper()
	for _, key := range path {
		fields, _ := values.(map[string]any)
		values = fields[key]
	}
	data, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// tableOf returns the table of the values that have a comment. Of those that lead to others there is no default.
func tableOf(t *testing.T, all []value) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| value | default | meaning |\n|---|---|---|\n")
	for _, v := range all {
		below := func(other value) bool { return strings.HasPrefix(other.path, v.path+".") && other.comment != "" }
		within := func(other value) bool { return strings.HasPrefix(v.path, other.path+".") && other.comment != "" }
		leads := slices.ContainsFunc(all, below)
		switch {
		case v.comment == "" && !leads && !slices.ContainsFunc(all, within):
			t.Errorf("values.yaml: say in a comment what %s is", v.path)
		case v.comment == "":
		case leads:
			fmt.Fprintf(&table, "| `%s` | | %s. |\n", v.path, v.comment)
		default:
			fmt.Fprintf(&table, "| `%s` | `%s` | %s. |\n", v.path, v.initial, v.comment)
		}
	}
	return table.String()
}

// TestThePageHasTheValues: the table in the chart's page is what values.yaml says.
func TestThePageHasTheValues(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(helm.Chart(), "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(helm.Chart(), "README.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), "## Values\n\n")
	table, after, _ := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatal("charts/healthscope/README.md: add a section Values")
	}
	want := tableOf(t, readValues(t, string(data)))
	if *update {
		if err := os.WriteFile(page, []byte(strings.TrimRight(before+"## Values\n\n"+want+"\n"+after, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(table)); diff != "" {
		t.Errorf("charts/healthscope/README.md, Values: run \"go test ./e2e/chart -run Page -update\" (-values.yaml +page):\n%s", diff)
	}
}
