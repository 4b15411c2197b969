package valuesschema

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/config/settings"
)

// root is the root of the source tree.
const root = "../.."

func chart(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(root + "/charts/healthscope/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheChartsSchemaIsCurrent(t *testing.T) {
	file := chart(t)
	got, err := Update(root, []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(file, string(got)); diff != "" {
		t.Errorf("values.schema.json is out of date: run \"make generate\" (-is +should be):\n%s", diff)
	}
}

// TestUpdateReplacesOneValue asserts that Update replaces any value, and keeps the text around it in its order.
func TestUpdateReplacesOneValue(t *testing.T) {
	const before, after = "{\n  \"config\": 1,\n  \"properties\": {\n    \"a\": [],\n    \"config\": ", ",\n    \"z\": \"}<\"\n  }\n}\n"
	for _, old := range []string{`{}`, `null`, `{"properties": {"config": {"a": "}"}}}`, `[1, 2]`} {
		got, err := Update(root, []byte(before+old+after))
		if err != nil {
			t.Errorf("%s: %v", old, err)
			continue
		}
		text := string(got)
		if !strings.HasPrefix(text, before+"{\n") || !strings.HasSuffix(text, "}"+after) || !json.Valid(got) {
			t.Errorf("%s has become\n%s", old, text)
		}
		again, err := Update(root, got)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("the second time, %v, and\n%s", err, cmp.Diff(text, string(again)))
		}
	}
}

func TestUpdateOfAnotherFile(t *testing.T) {
	for file, want := range map[string]string{
		``:                              "unexpected end",
		`{}`:                            "there is no properties",
		`[]`:                            "it is no object",
		`{"properties": {}}`:            "there is no config",
		`{"properties": 3}`:             "it is no object",
		`{"properties": {"config": {}}`: "unexpected end",
		`{"properties": {"config": }}`:  "invalid character",
	} {
		if got, err := Update(root, []byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s has become %q, error %v; want %q", file, got, err, want)
		}
	}
}

// TestExceptionsAreOfFields asserts that each exception is for an existing field, so that obsolete exceptions are found.
func TestExceptionsAreOfFields(t *testing.T) {
	all, err := settings.All(root)
	if err != nil {
		t.Fatal(err)
	}
	paths := slices.Concat(filled, read)
	for path := range descriptions {
		paths = append(paths, path)
	}
	for _, path := range paths {
		if !slices.ContainsFunc(all, func(s settings.Setting) bool { return s.Path == path }) {
			t.Errorf("the configuration file has no field %q", path)
		}
	}
}
