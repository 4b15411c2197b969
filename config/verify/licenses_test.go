package verify

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/licenseclassifier/v2/assets"

	"github.com/healthscope/healthscope/config/licenses"
)

// linkedLicenses are the licences that modules in the program may have, each with the reason why it is compatible with the
// project's Apache License 2.0.
var linkedLicenses = map[string]string{
	"Apache-2.0":   "the project's own",
	"MIT":          "asks for its text only, which releases carry",
	"BSD-2-Clause": "asks for its text only",
	"BSD-3-Clause": "asks for its text only, and that nobody uses its authors' names to advertise",
	"ISC":          "as MIT, in fewer words",
}

// testedLicenses are additional licences for modules that only tests use. These modules are never distributed.
var testedLicenses = map[string]string{
	"MPL-2.0": "holds for the licensed files alone, and obliges only who hands them out",
}

// minimalConfidence is the share of a licence's text that must match the published text. Names, years and layout do not count.
const minimalConfidence = 0.9

func TestLicensesAreAllowed(t *testing.T) {
	classify := classifier(t)
	linked, err := licenses.Of(t.Context(), root, ".", false)
	if err != nil {
		t.Fatal(err)
	}
	tested, err := licenses.Of(t.Context(), root, "./...", true)
	if err != nil {
		t.Fatal(err)
	}
	if len(linked) < 20 || len(tested) <= len(linked) {
		t.Fatalf("found %d modules that are linked and %d with those of tests; is the test in the right place?", len(linked), len(tested))
	}
	inProgram := map[string]bool{}
	for _, m := range linked {
		inProgram[m.Path] = true
		for _, problem := range problemsOf(m, classify, linkedLicenses) {
			t.Errorf("the program contains %s", problem)
		}
	}
	wider := maps.Clone(linkedLicenses)
	maps.Copy(wider, testedLicenses)
	for _, m := range tested {
		if inProgram[m.Path] {
			continue
		}
		for _, problem := range problemsOf(m, classify, wider) {
			t.Errorf("tests need %s", problem)
		}
	}
}

// problemsOf returns the problems with the licences of a module.
func problemsOf(m licenses.Module, classify func([]byte) []string, allowed map[string]string) []string {
	if len(m.Licenses) == 0 {
		return []string{fmt.Sprintf("%s %s, which has no file with a licence", m.Path, m.Version)}
	}
	var problems []string
	for _, f := range m.Licenses {
		found := classify(f.Text)
		if len(found) == 0 {
			problems = append(problems, fmt.Sprintf("%s %s, whose %s holds no licence that is known", m.Path, m.Version, f.Name))
		}
		for _, license := range found {
			if allowed[license] == "" {
				problems = append(problems, fmt.Sprintf("%s %s, whose %s holds %s; allowed are %s",
					m.Path, m.Version, f.Name, license, strings.Join(slices.Sorted(maps.Keys(allowed)), ", ")))
			}
		}
	}
	return problems
}

// texts loads the texts of all known licences, which takes a second.
var texts = sync.OnceValues(assets.DefaultClassifier)

// classifier returns a function that finds the licences in a text and returns their SPDX identifiers.
func classifier(t *testing.T) func([]byte) []string {
	t.Helper()
	c, err := texts()
	if err != nil {
		t.Fatalf("cannot make the classifier of licences: %v", err)
	}
	return func(text []byte) []string {
		found := map[string]bool{}
		for _, m := range c.Match(text).Matches {
			if m.MatchType == "License" && m.Confidence >= minimalConfidence {
				found[m.Name] = true
			}
		}
		return slices.Sorted(maps.Keys(found))
	}
}

// TestLicensesThatAreNotAllowedAreSeen asserts that the classifier recognizes the licences that must be rejected.
func TestLicensesThatAreNotAllowedAreSeen(t *testing.T) {
	classify := classifier(t)
	mit := licenseText(t, "MIT")
	for _, license := range []string{"GPL-2.0", "GPL-3.0", "LGPL-2.1", "LGPL-3.0", "AGPL-3.0", "SSPL-1.0", "EPL-2.0", "Elastic-2.0", "Business-Source-License-1.1", "CC-BY-SA-4.0", "MPL-2.0"} {
		text := slices.Concat(mit, []byte("\n\n"), licenseText(t, license))
		m := licenses.Module{Path: "example.org/m", Version: "v1.0.0", Licenses: []licenses.File{{Name: "LICENSE", Text: text}}}
		problems := strings.Join(problemsOf(m, classify, linkedLicenses), "\n")
		if !strings.Contains(problems, "example.org/m v1.0.0, whose LICENSE holds ") {
			t.Errorf("%s beside MIT is allowed: %q", license, problems)
		}
	}
	for name, text := range map[string]string{"no licence": "", "own words": "You may use this on Tuesdays, if you ask nicely."} {
		m := licenses.Module{Path: "example.org/m", Version: "v1.0.0", Licenses: []licenses.File{{Name: "LICENSE", Text: []byte(text)}}}
		if len(problemsOf(m, classify, linkedLicenses)) == 0 {
			t.Errorf("%s is allowed", name)
		}
	}
	if len(problemsOf(licenses.Module{Path: "example.org/m", Version: "v1.0.0"}, classify, linkedLicenses)) == 0 {
		t.Error("a module without a licence is allowed")
	}
}

// licenseText returns the text of a licence.
func licenseText(t *testing.T, license string) []byte {
	t.Helper()
	for _, name := range []string{"license.txt", "pristine.txt"} {
		if text, err := assets.ReadLicenseFile("License/" + license + "/" + name); err == nil {
			return text
		}
	}
	t.Fatalf("the classifier has no text of %s", license)
	return nil
}

// TestReleasesCarryTheLicenses asserts that releases contain the licences of all linked modules, and not one copy for each
// module.
func TestReleasesCarryTheLicenses(t *testing.T) {
	linked, err := licenses.Of(t.Context(), root, ".", false)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := licenses.Write(&out, linked); err != nil {
		t.Fatal(err)
	}
	for _, m := range linked {
		for _, f := range append(append([]licenses.File{}, m.Licenses...), m.Notices...) {
			if want := fmt.Sprintf("\n%s %s: %s\n", m.Path, m.Version, f.Name); !strings.Contains(out.String(), want) {
				t.Errorf("the licences name %q nowhere", want)
			}
			if !strings.Contains(out.String(), strings.TrimSpace(strings.ReplaceAll(string(f.Text), "\r\n", "\n"))) {
				t.Errorf("the text of %s of %s is missing", f.Name, m.Path)
			}
		}
	}
	if n := strings.Count(out.String(), "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION"); n == 0 || n > 20 {
		t.Errorf("the Apache License is in it %d times", n)
	}
}
