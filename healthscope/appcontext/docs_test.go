package appcontext_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// table returns the cells of a table in config/docs/appcontext.md. first is the heading of its first column.
func table(t *testing.T, first string) [][]string {
	t.Helper()
	data := must(os.ReadFile("../../config/docs/appcontext.md"))(t)
	_, rest, ok := strings.Cut(string(data), "\n| "+first+" |")
	if !ok {
		t.Fatalf("config/docs/appcontext.md has no table whose first column is %q", first)
	}
	var rows [][]string
	for _, line := range strings.Split(rest, "\n")[2:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

var inCode = regexp.MustCompile("`([^`]+)`")

// codes returns the text that is formatted as code in the first cells of rows, sorted.
func codes(rows [][]string) []string {
	var found []string
	for _, row := range rows {
		for _, match := range inCode.FindAllStringSubmatch(row[0], -1) {
			found = append(found, match[1])
		}
	}
	slices.Sort(found)
	return found
}

func TestThePageNamesEveryOptionAndError(t *testing.T) {
	want := map[string][]string{}
	for field := range reflect.TypeFor[appcontext.Options]().Fields() {
		want["option"] = append(want["option"], field.Name)
	}
	source := must(os.ReadFile("errors.go"))(t)
	for _, match := range regexp.MustCompile(`(?m)^\t(Err\w+) sentinelError`).FindAllStringSubmatch(string(source), -1) {
		want["error"] = append(want["error"], match[1])
	}
	for _, column := range []string{"option", "error"} {
		names := want[column]
		slices.Sort(names)
		if got := codes(table(t, column)); len(names) == 0 || !slices.Equal(got, names) {
			t.Errorf("%s: want %v, the page has %v", column, names, got)
		}
	}
}

func TestThePageNamesMethodsThatExist(t *testing.T) {
	types := map[string]reflect.Type{
		"Snapshot": reflect.TypeFor[*appcontext.Snapshot](), "App": reflect.TypeFor[appcontext.App](),
		"Cluster": reflect.TypeFor[appcontext.Cluster](), "Resource": reflect.TypeFor[appcontext.Resource](),
	}
	for _, row := range table(t, "key") {
		if len(row) < 3 {
			continue
		}
		for _, match := range inCode.FindAllStringSubmatch(row[2], -1) {
			name, method, _ := strings.Cut(match[1], ".")
			if of, ok := types[name]; !ok {
				t.Errorf("there is no type %q", name)
			} else if _, ok := of.MethodByName(method); !ok {
				t.Errorf("there is no method %q", match[1])
			}
		}
	}
}
