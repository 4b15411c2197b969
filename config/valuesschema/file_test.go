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

func chart(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../charts/healthscope/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheChartsSchemaIsCurrent(t *testing.T) {
	file := chart(t)
	got, err := Update([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(file, string(got)); diff != "" {
		t.Errorf("values.schema.json is out of date: run \"make generate\" (-is +should be):\n%s", diff)
	}
}

// TestUpdateReplacesOneValue: whatever is there is replaced, and what is around it stays, however it is written.
func TestUpdateReplacesOneValue(t *testing.T) {
	const before, after = "{ \"config\": 1,\n \"properties\" : {\"a\":[ {\"config\":2} ],\n    \"config\":\t", ",\"z\":\"}\"}\n}\n \n"
	for _, old := range []string{`{}`, `null`, `{"properties": {"config": {"a": "}"}}}`, `[1, 2]`} {
		got, err := Update([]byte(before + old + after))
		if err != nil {
			t.Errorf("%s: %v", old, err)
			continue
		}
		text := string(got)
		if !strings.HasPrefix(text, before+"{\n") || !strings.HasSuffix(text, "}"+after) || !json.Valid(got) {
			t.Errorf("%s has become\n%s", old, text)
		}
		again, err := Update(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Errorf("the second time, %v, and\n%s", err, cmp.Diff(text, string(again)))
		}
	}
}

func TestUpdateOfAnotherFile(t *testing.T) {
	for file, want := range map[string]string{
		``:                              "EOF",
		`{}`:                            "there is no properties",
		`[]`:                            "there is no properties",
		`{"properties": {}}`:            "there is no config",
		`{"properties": 3}`:             "there is no config",
		`{"properties": {"config": {}}`: "EOF",
		`{"properties": {"config": }}`:  "invalid character",
	} {
		if got, err := Update([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s has become %q, error %v; want %q", file, got, err, want)
		}
	}
}

func TestLayout(t *testing.T) {
	long := `"` + strings.Repeat("x", 100) + `"`
	for value, want := range map[string]string{
		`{}`:                 `{}`,
		`[1,"a:,\"b,",null]`: `[1, "a:,\"b,", null]`,
		`{"a":{"b":[]}}`:     `{"a": {"b": []}}`,
		`{"a":` + long + `,"b":{"c":[1,2],"d":false}}`:               "{\n    \"a\": " + long + ",\n    \"b\": {\"c\": [1, 2], \"d\": false}\n  }",
		`[` + long + `,{"b":` + long[:60] + `","c":[` + long + `]}]`: "[\n    " + long + ",\n    {\n      \"b\": " + long[:60] + "\",\n      \"c\": [" + long + "]\n    }\n  ]",
	} {
		var out bytes.Buffer
		if err := layout(&out, []byte(value), 2, 2); err != nil {
			t.Errorf("%s: %v", value, err)
		} else if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}

// TestExceptionsAreOfFields: an exception for a field that is no more would be forgotten.
func TestExceptionsAreOfFields(t *testing.T) {
	all, err := settings.All()
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
