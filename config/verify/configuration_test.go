package verify

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/config/settings"
	"github.com/healthscope/healthscope/controllers/commands"
)

// settingsOf returns the fields of the configuration file.
func settingsOf(t *testing.T) []settings.Setting {
	t.Helper()
	all, err := settings.All(root)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheConfigurationExampleIsCompleteAndValid(t *testing.T) {
	p := readPage(t, "configuration.md")
	blocks := p.fences("yaml")
	if len(blocks) != 1 {
		t.Fatalf("%s has %d examples; it should have one", p.name, len(blocks))
	}
	var c configv1alpha1.Configuration
	if err := yaml.UnmarshalStrict([]byte(blocks[0]), &c); err != nil {
		t.Fatalf("%s: the example cannot be read: %v", p.name, err)
	}
	given := c.TypeMeta
	configv1alpha1.SetDefaults(&c)
	c.TypeMeta = given
	for _, err := range configv1alpha1.Validate(&c) {
		t.Errorf("%s: the example is not valid: %v", p.name, err)
	}
	var plain map[string]any
	if err := yaml.Unmarshal([]byte(blocks[0]), &plain); err != nil {
		t.Fatal(err)
	}
	for _, s := range settingsOf(t) {
		if !holds(plain, strings.Split(s.Path, ".")) {
			t.Errorf("%s: add %s to the example, which should be complete", p.name, s.Path)
		}
	}
}

// holds says whether there is something at a path, in the first entry of each list on the way.
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

func TestAConfigurationFileMustSayWhatItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("clusterName: hub\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if status := commands.Main([]string{"controller", "--config", path}, nil, &out, &errOut); status != 2 {
		t.Errorf("exit status %d, want 2", status)
	}
	for _, word := range []string{configv1alpha1.APIVersion, configv1alpha1.Kind, path} {
		if !strings.Contains(errOut.String(), word) {
			t.Errorf("the error does not name %q: %s", word, errOut.String())
		}
	}
}
