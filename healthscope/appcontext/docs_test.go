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
	data, err := os.ReadFile("../../config/docs/appcontext.md")
	noError(t, err)
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

func TestThePageNamesEveryOption(t *testing.T) {
	var fields []string
	for field := range reflect.TypeFor[appcontext.Options]().Fields() {
		fields = append(fields, field.Name)
	}
	slices.Sort(fields)
	if got := codes(table(t, "option")); !slices.Equal(got, fields) {
		t.Errorf("want the options %v, the page has %v", fields, got)
	}
}

func TestThePageNamesEveryError(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	noError(t, err)
	var names []string
	for _, match := range regexp.MustCompile(`(?m)^\t(Err\w+) sentinelError`).FindAllStringSubmatch(string(source), -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	if got := codes(table(t, "error")); len(names) == 0 || !slices.Equal(got, names) {
		t.Errorf("want the errors %v, the page has %v", names, got)
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
