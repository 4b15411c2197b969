package simulator

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|(.*)$")

// documented returns the rows of a table of the simulator's page: the word in the first column, and the rest.
func documented(t *testing.T, heading string) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../config/docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(page), "\n| "+heading+" |")
	if !found {
		t.Fatalf("the page has no table with the first heading %q", heading)
	}
	table, _, _ := strings.Cut(below, "\n\n")
	rows := map[string]string{}
	for _, match := range firstCell.FindAllStringSubmatch(table, -1) {
		if _, twice := rows[match[1]]; twice {
			t.Errorf("%q is documented twice", match[1])
		}
		rows[match[1]] = match[2]
	}
	return rows
}

func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func TestThePageNamesEveryRoute(t *testing.T) {
	var routes []string
	for _, r := range New(Options{}).routes() {
		routes = append(routes, r.pattern)
	}
	diff(t, "routes", sorted(routes), names(documented(t, "route")))
}

func TestThePageNamesEveryFieldOfFaults(t *testing.T) {
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[faultJSON]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields = append(fields, name)
		}
	}
	page := documented(t, "field")
	diff(t, "fields", sorted(fields), names(page))
	for field, values := range map[string][]string{
		"drop":   {string(DropBeforeCommit), string(DropAfterCommit), string(DropMidBody)},
		"manner": {string(MannerReset), string(MannerHang)},
	} {
		for _, value := range values {
			if !strings.Contains(page[field], "`"+value+"`") {
				t.Errorf("the row of %q does not name %q", field, value)
			}
		}
	}
}

func TestThePageNamesEveryCode(t *testing.T) {
	page := documented(t, "code")
	for code, spec := range errorSpecs {
		row := page[string(code)]
		delete(page, string(code))
		if !strings.HasPrefix(row, " "+strconv.Itoa(spec.http)+" |") {
			t.Errorf("%s with status %d is documented as %q", code, spec.http, row)
		}
	}
	diff(t, "codes that do not exist", map[string]string{}, page)
}

func TestThePageNamesEveryViolation(t *testing.T) {
	diff(t, "violations", sorted([]string{
		string(UnknownProperty), string(WrongCase), string(WrongType), string(WrappedBody), string(MissingAccept), string(XMLAccept),
		string(NonCanonicalEncoding), string(UnchangedPut), string(UnchangedPatch), string(ReusedTransactionID), string(DuplicateLabel),
	}), names(documented(t, "violation")))
}

// The examples of rules on the page must be rules.
func TestTheRulesOnThePageAreTaken(t *testing.T) {
	page, err := os.ReadFile("../../config/docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| what fails |")
	table, _, _ = strings.Cut(table, "\n\n")
	rules := regexp.MustCompile("`(\\{[^`]+\\})`").FindAllStringSubmatch(table, -1)
	if len(rules) < 5 {
		t.Fatalf("the page has %d rules", len(rules))
	}
	for _, rule := range rules {
		h := newHarness(t, Options{})
		out := h.control("POST", "/__sim/faults", "["+rule[1]+"]")
		diff(t, rule[1]+": "+out.body, 204, out.status)
	}
}
