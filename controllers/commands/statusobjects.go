package commands

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// Forms of the output of objects, as those of kubectl.
const (
	formName     = "name"
	formJSONPath = "jsonpath="
)

// objectPrinterOf returns what prints objects in a form; nil for tables.
func objectPrinterOf(form string) (printers.ResourcePrinter, error) {
	template, isPath := strings.CutPrefix(form, formJSONPath)
	switch {
	case form == formTable || form == formWide:
		return nil, nil //nolint:nilnil // Tables are not made of objects as they are.
	case form == formJSON:
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.JSONPrinter{}}, nil
	case form == formYAML:
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.YAMLPrinter{}}, nil
	case form == formName:
		return &printers.NamePrinter{}, nil
	case isPath:
		p, err := printers.NewJSONPathPrinter(template)
		if err != nil {
			return nil, errors.Wrapf(err, "--output has JSONPath %q, which cannot be used", template)
		}
		p.AllowMissingKeys(true)
		return p, nil
	}
	return nil, errors.Errorf("--output is %q; it must be table, wide, json, yaml, name or jsonpath=TEMPLATE", form)
}

// sortKey is a field that objects are sorted by.
type sortKey struct {
	text string
	path *jsonpath.JSONPath
}

// sortKeyOf reads a field: a JSONPath, which needs neither braces nor a leading dot. It returns nil for none.
func sortKeyOf(text string) (*sortKey, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // It is no failure.
	}
	field := strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}"), ".")
	k := &sortKey{text, jsonpath.New("sort-by").AllowMissingKeys(true)}
	if err := k.path.Parse("{." + field + "}"); err != nil {
		return nil, errors.Wrapf(err, "--sort-by is %q; it must be a JSONPath, such as .status.health", text)
	}
	return k, nil
}

// sort sorts objects by their field, and leaves those with the same value as they are. Those without it come first.
func (k *sortKey) sort(objects []unstructured.Unstructured) error {
	if k == nil || len(objects) == 0 {
		return nil
	}
	found := false
	values := map[string]any{}
	name := func(o unstructured.Unstructured) string { return o.GetNamespace() + "/" + o.GetName() }
	for _, o := range objects {
		results, err := k.path.FindResults(o.Object)
		if err != nil {
			return errors.Wrapf(err, "cannot sort by %q", k.text)
		}
		if len(results) > 0 && len(results[0]) > 0 {
			found = true
			values[name(o)] = valueOf(results[0][0])
		}
	}
	if !found {
		return usage(errors.Errorf("cannot sort by %q: no HealthScope has such a field", k.text))
	}
	slices.SortStableFunc(objects, func(a, b unstructured.Unstructured) int { return compare(values[name(a)], values[name(b)]) })
	return nil
}

// valueOf returns what JSONPath has found.
func valueOf(v reflect.Value) any {
	if !v.IsValid() || !v.CanInterface() {
		return nil
	}
	return v.Interface()
}

// compare compares values of JSON: numbers as such, everything else as text.
func compare(a, b any) int {
	x, isNumber := number(a)
	y, areNumbers := number(b)
	switch {
	case isNumber && areNumbers:
		return cmp.Compare(x, y)
	case a == nil || b == nil:
		return cmp.Compare(boolean(a != nil), boolean(b != nil))
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
