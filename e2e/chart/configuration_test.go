package chart

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/config/settings"
)

var (
	// chartsOwn are the fields of the configuration file that only the chart sets.
	chartsOwn = []string{
		"apiVersion", "kind", "api.bindAddress", "api.certFile", "api.keyFile", "metrics.bindAddress", "metrics.certFile", "metrics.keyFile",
	}
	// notNull are optional fields that templates merge or read, so that null differs from an absent field.
	notNull = []string{
		"fleet", "fleet.namespace", "fleet.monitorNamespace", "inventory", "api", "metrics", "tracing", "appContext", "monitor.createBundles",
	}
	fence = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

// configured returns the fields of the configuration file that values may set.
func configured(t *testing.T) []settings.Setting {
	t.Helper()
	all, err := settings.All(root)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(s settings.Setting) bool { return slices.Contains(chartsOwn, s.Path) })
}

// complete returns the example of the documentation, which has every field, without the fields that only the chart sets.
func complete(t *testing.T) map[string]any {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "config", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	return asValues(t, fence.FindStringSubmatch(string(page))[1])
}

// asValues returns a configuration file without the fields that only the chart sets.
func asValues(t *testing.T, file string) map[string]any {
	t.Helper()
	var config map[string]any
	if err := yaml.UnmarshalStrict([]byte(file), &config); err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	for _, path := range chartsOwn {
		if object, name := around(config, path); object != nil {
			delete(object, name)
		}
	}
	return config
}

// around returns the object that has, or would have, the field at a path, and the field's name. In each list on the path, it takes the first entry. It returns nil without such an object.
func around(config map[string]any, path string) (map[string]any, string) {
	section, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return config, path
	}
	name, list := strings.CutSuffix(section, "[]")
	below := config[name]
	if entries, _ := below.([]any); list && len(entries) > 0 {
		below = entries[0]
	}
	object, _ := below.(map[string]any)
	return around(object, rest)
}

// with returns the complete configuration after a change of each of its fields.
func with(t *testing.T, all []settings.Setting, change func(s settings.Setting, object map[string]any, name string)) map[string]any {
	t.Helper()
	config := complete(t)
	for _, s := range all {
		object, name := around(config, s.Path)
		if object == nil {
			t.Fatalf("the example of the documentation has nothing around %s", s.Path)
		}
		change(s, object, name)
	}
	return config
}

func values(t *testing.T, config map[string]any) string {
	t.Helper()
	data, err := yaml.Marshal(map[string]any{"config": config})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// refusal returns Helm's error for values, which Helm must refuse.
func refusal(t *testing.T, config map[string]any) string {
	t.Helper()
	text := values(t, config)
	_, err := helm.Render(t.Context(), text)
	if err == nil {
		t.Fatalf("Helm takes\n%s", text)
	}
	return err.Error()
}

// at returns the location that Helm prints for the field at a path.
func at(path string) string {
	return "at '/config" + strings.TrimSuffix("/"+strings.NewReplacer("[]", "/0", ".", "/").Replace(path), "/") + "'"
}

// TestConfigurationsOfTheProjectAreTaken checks that the chart accepts the configuration files of manifests and documentation, and passes them to the program unchanged.
func TestConfigurationsOfTheProjectAreTaken(t *testing.T) {
	files := configurations(t)
	if len(files) < 5 {
		t.Errorf("found only %d configuration files", len(files))
	}
	for title, file := range files {
		var want configv1alpha1.Configuration
		if err := yaml.UnmarshalStrict([]byte(file), &want); err != nil {
			t.Errorf("%s: %v", title, err)
			continue
		}
		configv1alpha1.SetDefaults(&want)
		got := configuration(t, render(t, values(t, asValues(t, file))), "healthscope-controller")
		for _, c := range []*configv1alpha1.Configuration{&want, &got} {
			c.API.BindAddress, c.API.CertFile, c.API.KeyFile = "", "", ""
			c.Metrics.BindAddress, c.Metrics.CertFile, c.Metrics.KeyFile = "", "", ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-file +chart):\n%s", title, diff)
		}
	}
}

// configurations returns the configuration files below config, by their location.
func configurations(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, "config"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		switch {
		case err != nil:
			return err
		case filepath.Ext(path) == ".md":
			for i, match := range fence.FindAllStringSubmatch(string(data), -1) {
				if strings.Contains(match[1], "\nkind: "+configv1alpha1.Kind+"\n") {
					files[fmt.Sprintf("%s, example %d", path, i+1)] = match[1]
				}
			}
		case filepath.Base(path) == "configuration.yaml":
			var m corev1.ConfigMap
			if err := yaml.UnmarshalStrict(data, &m); err != nil {
				return err
			}
			files[path] = m.Data["config.yaml"]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestTheSchemaTakesWhatTheProgramTakes checks the limits of valid values: the chart accepts each, and the program reads it from the ConfigMap.
func TestTheSchemaTakesWhatTheProgramTakes(t *testing.T) {
	all := configured(t)
	integers := only(all, func(s settings.Setting) bool { return s.Kind == settings.Integer })
	optional := func(holdsObjects, topmost bool) []settings.Setting {
		return only(all, func(s settings.Setting) bool {
			return !s.Required && !slices.Contains(notNull, s.Path) && topmost != strings.Contains(s.Path, ".") &&
				holdsObjects == (s.Kind == settings.Object || s.Kind == settings.Objects)
		})
	}
	null := func(_ settings.Setting, object map[string]any, name string) { object[name] = nil }
	for title, config := range map[string]map[string]any{
		"all is said":          complete(t),
		"nothing is said":      {},
		"the least numbers":    with(t, integers, func(s settings.Setting, object map[string]any, name string) { object[name] = s.Minimum }),
		"the largest numbers":  with(t, integers, func(s settings.Setting, object map[string]any, name string) { object[name] = s.Maximum }),
		"null for sections":    with(t, optional(true, true), null),
		"null within sections": with(t, optional(true, false), null),
		"null for a value":     with(t, optional(false, true), null),
		"null for values":      with(t, optional(false, false), null),
		"empty, of some values": with(t, all, func(s settings.Setting, object map[string]any, name string) {
			if len(s.Values) > 0 {
				object[name] = ""
			}
		}),
	} {
		objects, err := helm.Render(t.Context(), values(t, config))
		if err != nil {
			t.Errorf("%s: %v", title, err)
			continue
		}
		configuration(t, objects, "healthscope-controller")
		configuration(t, objects, "healthscope-monitor")
	}
}

// only returns the fields for which keep returns true.
func only(all []settings.Setting, keep func(settings.Setting) bool) []settings.Setting {
	return slices.DeleteFunc(slices.Clone(all), func(s settings.Setting) bool { return !keep(s) })
}

// TestNumbersAreTakenForText checks that numbers and booleans are accepted in text fields, as in the configuration file.
func TestNumbersAreTakenForText(t *testing.T) {
	c := configuration(t, render(t, `
config:
  clusterName: 42
  monitor: {namespaces: [7]}
  inventory:
    url: http://aai
    regions: [{cluster: 1.5, cloudOwner: true, cloudRegionId: 9007199254740991, tenantId: -1}]
  healthCheckExprs: [{apiVersion: v1, kind: Pod, current: true}]
`), "healthscope-controller")
	region := c.Inventory.Regions[0]
	got := []string{c.ClusterName, c.Monitor.Namespaces[0], region.Cluster, region.CloudOwner, region.CloudRegionID, region.TenantID, c.HealthCheckExprs[0].Current}
	if diff := cmp.Diff([]string{"42", "7", "1.5", "true", "9007199254740991", "-1", "true"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if said := refusal(t, map[string]any{"clusterName": uint64(9007199254740993)}); !strings.Contains(said, at("clusterName")+": maximum") {
		t.Errorf("a number that Helm rounds: %s", said)
	}
}

// TestMisspeltFieldsAreRefused adds misspelt copies of every field.
func TestMisspeltFieldsAreRefused(t *testing.T) {
	all := configured(t)
	said := refusal(t, with(t, all, func(_ settings.Setting, object map[string]any, name string) {
		object[name+"x"], object[strings.ToUpper(name)] = object[name], object[name]
	}))
	for _, s := range all {
		dot := strings.LastIndex(s.Path, ".")
		object, name := s.Path[:max(dot, 0)], s.Path[dot+1:]
		_, line, _ := strings.Cut(said, at(object)+": additional properties ")
		line, _, _ = strings.Cut(line, "\n")
		for _, misspelt := range []string{name + "x", strings.ToUpper(name)} {
			if !strings.Contains(line, "'"+misspelt+"'") {
				t.Errorf("%s: %q is not refused: %s", s.Path, misspelt, line)
			}
		}
	}
}

// TestWrongTypesAreRefused checks each depth separately, because a value of a wrong type hides the fields in it.
func TestWrongTypesAreRefused(t *testing.T) {
	wrong := map[settings.Kind]any{
		settings.Object: []any{}, settings.Objects: map[string]any{}, settings.Strings: "text",
		settings.String: []any{"text"}, settings.Integer: "5", settings.Boolean: "true",
	}
	levels := map[int][]settings.Setting{}
	for _, s := range configured(t) {
		depth := strings.Count(s.Path, ".")
		levels[depth] = append(levels[depth], s)
	}
	for depth := range maps.Keys(levels) {
		said := refusal(t, with(t, levels[depth], func(s settings.Setting, object map[string]any, name string) { object[name] = wrong[s.Kind] }))
		for _, s := range levels[depth] {
			if !strings.Contains(said, at(s.Path)+": ") {
				t.Errorf("%s may be %v", s.Path, wrong[s.Kind])
			}
		}
	}
	said := refusal(t, with(t, configured(t), func(s settings.Setting, object map[string]any, name string) {
		switch s.Kind {
		case settings.Strings:
			object[name] = []any{[]any{}}
		case settings.Objects:
			entries, _ := object[name].([]any)
			object[name] = []any{entries[0], "text"}
		default: // It has no entries.
		}
	}))
	for _, s := range configured(t) {
		entry := map[settings.Kind]string{settings.Strings: "/0'", settings.Objects: "/1'"}[s.Kind]
		if entry != "" && !strings.Contains(said, strings.TrimSuffix(at(s.Path), "'")+entry) {
			t.Errorf("%s may have entries of any type", s.Path)
		}
	}
}

// TestWhatIsOutOfBoundsIsRefused checks the bounds of numbers, the allowed values, required fields, and null where it differs from an absent field.
func TestWhatIsOutOfBoundsIsRefused(t *testing.T) {
	integer := func(s settings.Setting) bool { return s.Kind == settings.Integer }
	always := func(value any) func(settings.Setting) any { return func(settings.Setting) any { return value } }
	for title, c := range map[string]struct {
		concerns func(settings.Setting) bool
		value    func(settings.Setting) any
		want     string
	}{
		"too small":            {integer, func(s settings.Setting) any { return int64(s.Minimum) - 1 }, ": minimum"},
		"too large":            {integer, func(s settings.Setting) any { return int64(s.Maximum) + 1 }, ": maximum"},
		"another value":        {func(s settings.Setting) bool { return len(s.Values) > 0 }, always("other"), ": value must be one of"},
		"empty":                {func(s settings.Setting) bool { return s.Required && s.Kind == settings.String }, always(""), ": minLength"},
		"null though required": {func(s settings.Setting) bool { return s.Required }, always(nil), ": got null"},
		"null for a section": {func(s settings.Setting) bool {
			return slices.Contains(notNull, s.Path) && !strings.Contains(s.Path, ".")
		}, always(nil), ": got null"},
		"null within one": {func(s settings.Setting) bool {
			return slices.Contains(notNull, s.Path) && strings.Contains(s.Path, ".")
		}, always(nil), ": got null"},
	} {
		all := only(configured(t), c.concerns)
		said := refusal(t, with(t, all, func(s settings.Setting, object map[string]any, name string) { object[name] = c.value(s) }))
		for _, s := range all {
			if !strings.Contains(said, at(s.Path)+c.want) {
				t.Errorf("%s: %s may be %v", title, s.Path, c.value(s))
			}
		}
	}
	required := only(configured(t), func(s settings.Setting) bool { return s.Required })
	said := refusal(t, with(t, required, func(_ settings.Setting, object map[string]any, name string) { delete(object, name) }))
	for _, s := range required {
		dot := strings.LastIndex(s.Path, ".")
		_, line, _ := strings.Cut(said, at(s.Path[:dot])+": missing propert")
		if line, _, _ = strings.Cut(line, "\n"); !strings.Contains(line, "'"+s.Path[dot+1:]+"'") {
			t.Errorf("%s may be left out", s.Path)
		}
	}
}
