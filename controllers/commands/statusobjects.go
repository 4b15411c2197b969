package commands

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// Output formats for objects, as in kubectl.
const (
	formatName     = "name"
	formatJSONPath = "jsonpath="
)

// newObjectPrinter returns a printer of objects in an output format, or nil for tables.
func newObjectPrinter(format string) (printers.ResourcePrinter, error) {
	template, isPath := strings.CutPrefix(format, formatJSONPath)
	switch {
	case format == formatTable || format == formatWide:
		return nil, nil //nolint:nilnil // Tables are printed without an object printer.
	case format == formatJSON:
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.JSONPrinter{}}, nil
	case format == formatYAML:
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.YAMLPrinter{}}, nil
	case format == formatName:
		return &printers.NamePrinter{}, nil
	case isPath:
		p, err := printers.NewJSONPathPrinter(template)
		if err != nil {
			return nil, errors.Wrapf(err, "--output has JSONPath %q, which cannot be used", template)
		}
		p.AllowMissingKeys(true)
		return p, nil
	}
	return nil, errors.Errorf("--output is %q; it must be table, wide, json, yaml, name or jsonpath=TEMPLATE", format)
}

// sortKey sorts objects by a field.
type sortKey struct {
	text string
	path *jsonpath.JSONPath
}

// parseSortKey parses a JSONPath, which needs neither braces nor a leading dot. It returns nil for an empty text.
func parseSortKey(text string) (*sortKey, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // An empty text is not an error.
	}
	field := strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}"), ".")
	k := &sortKey{text, jsonpath.New("sort-by").AllowMissingKeys(true)}
	if err := k.path.Parse("{." + field + "}"); err != nil {
		return nil, errors.Wrapf(err, "--sort-by is %q; it must be a JSONPath, such as .status.health", text)
	}
	return k, nil
}

// sort sorts objects by their field. The sort is stable, and objects without the field come first.
func (k *sortKey) sort(objects []unstructured.Unstructured) error {
	if k == nil || len(objects) == 0 {
		return nil
	}
	values := map[string]any{}
	for _, o := range objects {
		results, err := k.path.FindResults(o.Object)
		if err != nil {
			return errors.Wrapf(err, "cannot sort by %q", k.text)
		}
		if len(results) > 0 && len(results[0]) > 0 {
			values[nameOf(o)] = results[0][0].Interface()
		}
	}
	if len(values) == 0 {
		return usageError(errors.Errorf("cannot sort by %q: no HealthScope has such a field", k.text))
	}
	slices.SortStableFunc(objects, func(a, b unstructured.Unstructured) int { return compareJSON(values[nameOf(a)], values[nameOf(b)]) })
	return nil
}

// compareJSON compares JSON values: numbers by value, all other values as text. nil comes first.
func compareJSON(a, b any) int {
	x, xIsNumber := number(a)
	y, yIsNumber := number(b)
	switch {
	case xIsNumber && yIsNumber:
		return cmp.Compare(x, y)
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func number(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
