package verify

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/config/settings"
)

func TestTheConfigurationExampleIsComplete(t *testing.T) {
	p := readPage(t, "configuration.md")
	var example map[string]any
	if err := yaml.Unmarshal([]byte(p.fences("yaml")[0]), &example); err != nil {
		t.Fatal(err)
	}
	all, err := settings.All(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if !holds(example, strings.Split(s.Path, ".")) {
			t.Errorf("%s: add %s to the example", p.name, s.Path)
		}
	}
}

// holds reports whether there is a value at a path. Of each list on the path, it looks only at the first entry.
func holds(value any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	name, list := strings.CutSuffix(path[0], "[]")
	object, _ := value.(map[string]any)
	below, ok := object[name]
	if list {
		entries, _ := below.([]any)
		if len(entries) == 0 {
			return false
		}
		below = entries[0]
	}
	return ok && holds(below, path[1:])
}
