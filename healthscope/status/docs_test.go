package status_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope/status"
)

// page is the reference page of this package.
func page(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../config/docs/status.md")
	noError(t, err)
	return string(data)
}

// section returns the text under a heading of the page, up to the next heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page(t), "# "+heading+"\n")
	if !ok {
		t.Fatalf("the page has no heading %q", heading)
	}
	text, _, _ := strings.Cut(rest, "\n#")
	return text
}

// firstColumn returns the code spans in the first column of a table.
func firstColumn(text string) []string {
	var codes []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(text, -1) {
		codes = append(codes, match[1])
	}
	return codes
}

func TestParametersAreDocumented(t *testing.T) {
	got := firstColumn(section(t, "Queries"))
	slices.Sort(got)
	check(t, "parameters", status.Parameters(), got)
	for parameter, heading := range map[string]string{"type": "Types", "output": "Outputs"} {
		for _, value := range firstColumn(section(t, heading)) {
			if _, err := parseQuery(parameter + "=" + value); err != nil {
				t.Errorf("%s=%s is documented: %v", parameter, value, err)
			}
		}
		_, err := parseQuery(parameter + "=x")
		_, allowed, _ := strings.Cut(err.Error(), "allowed: ")
		check(t, parameter, strings.Split(allowed, ", "), firstColumn(section(t, heading)))
	}
	for _, parameter := range status.EMCOParameters() {
		if !strings.Contains(section(t, "EMCO 22.12"), "`"+parameter+"`") {
			t.Errorf("the parameter %q of EMCO is not documented", parameter)
		}
	}
}

func TestReasonsAreDocumented(t *testing.T) {
	source, err := os.ReadFile("health.go")
	noError(t, err)
	var want []string
	for _, match := range regexp.MustCompile(`(?m)^\tReason\w+ healthscope\.Reason = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, match[1])
	}
	if len(want) < 11 {
		t.Fatalf("found %d reasons in the source", len(want))
	}
	check(t, "reasons", want, firstColumn(section(t, "Reasons")))
}

// names returns the JSON names of a type's fields, and of those of the types in it.
func names(of reflect.Type, found map[string]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		names(of.Elem(), found)
	case reflect.Struct:
		for field := range of.Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				found[name] = true
			}
			names(field.Type, found)
		}
	default:
	}
}

func TestFieldsAreDocumented(t *testing.T) {
	text := page(t)
	found := map[string]bool{}
	names(reflect.TypeFor[status.Document](), found)
	names(reflect.TypeFor[status.InstanceDocument](), found)
	for _, of := range []any{status.EMCOGroup{}, status.EMCONetwork{}, status.EMCOApps{}, status.EMCOClusters{}, status.EMCOResources{}} {
		names(reflect.TypeOf(of), found)
	}
	if len(found) < 40 {
		t.Fatalf("found %d fields", len(found))
	}
	for name := range found {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the page does not name the field %q", name)
		}
	}
}

// TestExamplesAreDocuments checks that the examples are documents of this package, without unknown fields.
func TestExamplesAreDocuments(t *testing.T) {
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(page(t), -1)
	if len(examples) != 3 {
		t.Fatalf("found %d examples", len(examples))
	}
	for i, into := range []any{&status.Document{}, &status.Document{}, &status.InstanceDocument{}} {
		d := json.NewDecoder(strings.NewReader(examples[i][1]))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Errorf("example %d: %v", i, err)
			continue
		}
		var want bytes.Buffer
		noError(t, json.Compact(&want, []byte(examples[i][1])))
		check(t, "example, written again", want.String()+"\n", wire(t, into))
	}
}
