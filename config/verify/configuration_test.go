package verify

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/app"
)

// required and none stand in a table for the default of a field that must be given, and of one that then has no value.
const (
	required = "required"
	none     = "none"
)

var index = regexp.MustCompile(`\[\d+\]`)

// setting is a field of the configuration file.
type setting struct{ path, kind, value string }

// settings returns all fields of the configuration file with their defaults.
func settings() []setting {
	var c configv1alpha1.Configuration
	open(reflect.ValueOf(&c).Elem())
	configv1alpha1.SetDefaults(&c)
	mustBeGiven := map[string]bool{"apiVersion": true, "kind": true}
	for _, err := range configv1alpha1.Validate(&c) {
		if err.Type == field.ErrorTypeRequired {
			mustBeGiven[index.ReplaceAllString(err.Field, "[]")] = true
		}
	}
	all := settingsOf(reflect.ValueOf(c), "")
	for i := range all {
		if mustBeGiven[all[i].path] {
			all[i].value = required
		}
	}
	return all
}

// open puts a section where one may be but has no default, and one into every list of them, so that what is in them is found.
func open(v reflect.Value) {
	for _, f := range v.Fields() {
		switch {
		case f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct:
			f.Set(reflect.New(f.Type().Elem()))
			open(f.Elem())
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			open(f.Index(0))
		case f.Kind() == reflect.Struct:
			open(f)
		}
	}
}

func settingsOf(v reflect.Value, prefix string) []setting {
	var all []setting
	for i := range v.NumField() {
		name, options, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		value := v.Field(i)
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		path := prefix + name
		switch {
		case options == "inline":
			all = append(all, settingsOf(value, prefix)...)
		case value.Kind() == reflect.Struct:
			all = append(all, setting{path, "object", none})
			all = append(all, settingsOf(value, path+".")...)
		case value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct:
			all = append(all, setting{path, "list of objects", none})
			all = append(all, settingsOf(value.Index(0), path+"[].")...)
		default:
			all = append(all, plainSetting(path, value))
		}
	}
	return all
}

func plainSetting(path string, v reflect.Value) setting {
	var words []string
	kind := "string"
	switch v.Kind() {
	case reflect.Slice:
		kind = "list of strings"
		for i := range v.Len() {
			words = append(words, v.Index(i).String())
		}
	case reflect.Int32:
		kind, words = "integer", []string{strconv.FormatInt(v.Int(), 10)}
	case reflect.Bool:
		kind, words = "boolean", []string{strconv.FormatBool(v.Bool())}
	default:
		if v.String() != "" {
			words = []string{v.String()}
		}
	}
	if len(words) == 0 {
		return setting{path, kind, none}
	}
	return setting{path, kind, "`" + strings.Join(words, "`, `") + "`"}
}

func TestConfigurationIsDocumented(t *testing.T) {
	p := readPage(t, "configuration.md")
	rows := p.rows(t, "field")
	var want []string
	for _, s := range settings() {
		want = append(want, s.path)
		for _, r := range rows {
			if code(r["field"]) != s.path {
				continue
			}
			if r["type"] != s.kind || r["default"] != s.value {
				t.Errorf("%s: %s has type %s and default %s; the row says %s and %s", p.name, s.path, s.kind, s.value, r["type"], r["default"])
			}
			if r["meaning"] == "" {
				t.Errorf("%s: say what %s means", p.name, s.path)
			}
		}
	}
	p.documents(t, "field", want, firstCodes(rows, "field"))
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
	for _, s := range settings() {
		if !holds(plain, strings.Split(s.path, ".")) {
			t.Errorf("%s: add %s to the example, which should be complete", p.name, s.path)
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
	if status := app.Main([]string{"controller", "--config", path}, nil, &out, &errOut); status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	for _, word := range []string{configv1alpha1.APIVersion, configv1alpha1.Kind, path} {
		if !strings.Contains(errOut.String(), word) {
			t.Errorf("the error does not name %q: %s", word, errOut.String())
		}
	}
}
