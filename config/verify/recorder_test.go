package verify

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
)

func TestTheStatesOfTheRecorderAreDocumented(t *testing.T) {
	p := readPage(t, "recorder.md")
	states := constants(sources(t, "controllers/recorder"), "state")
	maps.DeleteFunc(states, func(_, word string) bool { return word == "" })
	p.documents(t, "state of a bundle", slices.Sorted(maps.Values(states)), firstCodes(p.rows(t, "state of a bundle"), "state of a bundle"))
}

func TestTheMetricsOfTheRecorderAreOnItsPage(t *testing.T) {
	p := readPage(t, "recorder.md")
	var want []string
	for name := range metrics() {
		if strings.HasPrefix(name, "healthscope_recorder_") {
			want = append(want, name)
		}
	}
	p.documents(t, "metric", want, firstCodes(p.rows(t, "metric"), "metric"))
}

func TestTheExamplesOfTheRecorderCanBeUsed(t *testing.T) {
	p := readPage(t, "recorder.md")
	examples := p.fences("yaml")
	if len(examples) != 2 {
		t.Fatalf("%s has %d examples, want that of the controller and that of the monitor", p.name, len(examples))
	}
	for i, text := range examples {
		var c configv1alpha1.Configuration
		if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		configv1alpha1.SetDefaults(&c)
		if errs := configv1alpha1.Validate(&c); len(errs) > 0 {
			t.Errorf("%s: %v", p.name, errs)
		}
		if i == 0 && c.Recorder == nil || i == 1 && len(c.Monitor.TrustedNamespaces) == 0 {
			t.Errorf("%s: example %d does not set what it is about", p.name, i)
		}
	}
}
