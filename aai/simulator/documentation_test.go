package simulator

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumentationListsEverything asserts that the tables of the simulator's documentation list every route, field of a fault,
// code and violation, and nothing else. It also asserts that the simulator accepts the example faults.
func TestDocumentationListsEverything(t *testing.T) {
	page, err := os.ReadFile("../../config/docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[faultJSON]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields = append(fields, name)
		}
	}
	violations := []string{
		string(UnknownProperty), string(WrongCase), string(WrongType), string(WrappedBody), string(MissingAccept), string(XMLAccept),
		string(NonCanonicalEncoding), string(UnchangedPut), string(UnchangedPatch), string(ReusedTransactionID), string(DuplicateLabel),
	}
	for heading, want := range map[string][]string{
		"route": slices.Collect(maps.Keys(New(Options{}).routes())), "code": slices.Collect(maps.Keys(errorSpecs)), "field": fields, "violation": violations,
	} {
		_, below, _ := strings.Cut(string(page), "\n| "+heading+" |")
		table, _, _ := strings.Cut(below, "\n\n")
		var names []string
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
			names = append(names, row[1])
		}
		diff(t, heading, sorted(want), sorted(names))
	}
	_, examples, _ := strings.Cut(string(page), "\n| what fails |")
	examples, _, _ = strings.Cut(examples, "\n\n")
	for _, rule := range regexp.MustCompile("`(\\{[^`]+\\})`").FindAllStringSubmatch(examples, -1) {
		out := newHarness(t, Options{}).control("POST", "/__sim/faults", "["+rule[1]+"]")
		diff(t, rule[1]+": "+out.body, 204, out.status)
	}
}
