package main

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/controllers/monitor"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// module is the prefix of the packages whose types have their fields listed. Kubernetes documents the fields of its own types.
const module = "github.com/healthscope/healthscope/"

// kindTables are the tables of one of our kinds: the columns of kubectl get, and the fields of spec and status.
type kindTables struct{ columns, spec, status table }

// tablesOfKind returns the tables of a kind. The order of the fields comes from the Go type, everything else from the CRD.
func tablesOfKind(crdFile string, kind reflect.Type) (kindTables, error) {
	data, err := os.ReadFile(crdFile)
	if err != nil {
		return kindTables{}, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		return kindTables{}, fmt.Errorf("cannot read CRD %q: %w", crdFile, err)
	}
	version := crd.Spec.Versions[0]
	schema := version.Schema.OpenAPIV3Schema
	listed := map[reflect.Type]string{}
	return kindTables{
		columns: columnsOf(version.AdditionalPrinterColumns),
		spec:    fieldsOf(kind, schema, "Spec", listed),
		status:  fieldsOf(kind, schema, "Status", listed),
	}, nil
}

// columnsOf returns the table of the columns that kubectl get prints.
func columnsOf(all []apiextensionsv1.CustomResourceColumnDefinition) table {
	columns := table{{"column", "what it shows"}, {code("NAME"), code("metadata.name")}}
	for _, c := range all {
		shows := code(strings.TrimPrefix(c.JSONPath, "."))
		if c.Priority > 0 {
			shows += ", with " + code("-o wide")
		}
		columns = append(columns, []string{code(c.Name), shows})
	}
	return columns
}

// fieldsOf returns the table of the fields of spec or status. listed holds the path at which the fields of a type are listed,
// because they are listed only once.
func fieldsOf(kind reflect.Type, s *apiextensionsv1.JSONSchemaProps, part string, listed map[reflect.Type]string) table {
	field, _ := kind.FieldByName(part)
	name := strings.ToLower(part)
	w := walk{table: table{{"field", "type", "meaning"}}, listed: listed}
	w.fields(field.Type, s.Properties[name], name)
	return w.table
}

// walk builds a table, and records where the fields of a type are listed.
type walk struct {
	table  table
	listed map[reflect.Type]string
}

func (w *walk) fields(t reflect.Type, s apiextensionsv1.JSONSchemaProps, parent string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		below, ok := s.Properties[name]
		if !ok {
			continue // The field is not in the JSON.
		}
		required := strings.HasPrefix(parent, "spec") && slices.Contains(s.Required, name)
		path := parent + "." + name
		text := meaning(name, below.Description)
		inner := innermost(f.Type)
		first, again := w.listed[inner]
		if again {
			text += " With the fields of " + code(first) + "."
		}
		w.table = append(w.table, []string{code(path), bounded(typeOf(below), bounds(below, required)), text})
		if again || inner.Kind() != reflect.Struct || !strings.HasPrefix(inner.PkgPath(), module) {
			continue
		}
		w.listed[inner] = path
		if below.Items != nil {
			below, path = *below.Items.Schema, path+"[]"
		}
		w.fields(inner, below, path)
	}
}

// bounded returns a type and the bounds of its values.
func bounded(name string, bounds []string) string {
	return strings.Join(append([]string{name}, bounds...), ", ")
}

// innermost returns the element type of pointers and lists.
func innermost(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// typeOf returns the name of the type of a field, for readers.
func typeOf(s apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.Type == "array":
		return "list of " + typeOf(*s.Items.Schema) + "s"
	case s.Type == "object" && s.AdditionalProperties != nil:
		return "map of " + typeOf(*s.AdditionalProperties.Schema) + "s"
	case s.Type == "string" && s.Format == "date-time":
		return "time"
	case s.Type == "":
		return "any"
	default:
		return s.Type
	}
}

// bounds returns the restrictions that the schema has for the values of a field.
func bounds(s apiextensionsv1.JSONSchemaProps, required bool) []string {
	var all []string
	if required {
		all = append(all, "required")
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, strings.Trim(string(v.Raw), `"`))
		}
		all = append(all, "one of "+code(values...))
	}
	if s.Minimum != nil && s.Maximum != nil {
		all = append(all, fmt.Sprintf("from %v to %v", *s.Minimum, *s.Maximum))
	}
	if s.MaxLength != nil {
		all = append(all, fmt.Sprintf("at most %d characters", *s.MaxLength))
	}
	if s.MaxItems != nil {
		all = append(all, fmt.Sprintf("at most %d entries", *s.MaxItems))
	}
	if s.Items != nil && s.Items.Schema.MaxLength != nil {
		all = append(all, fmt.Sprintf("each of at most %d characters", *s.Items.Schema.MaxLength))
	}
	if s.Default != nil {
		all = append(all, "default "+code(string(s.Default.Raw)))
	}
	return all
}

// bundleKinds returns the table of the kinds that bundles contain, and of the lists that hold them.
func bundleKinds() table {
	kinds := table{{"kind", "list"}}
	for _, kind := range monitor.DefaultKinds() {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(kind)
		o.SetName("x")
		status := bundle.Build([]*unstructured.Unstructured{o}, nil, time.Time{}, bundle.Options{})
		for name, list := range status.Lists() {
			if len(*list) > 0 {
				kinds = append(kinds, []string{code(strings.TrimSuffix(kind.Kind+"."+kind.Group, ".")), code(name)})
			}
		}
	}
	return kinds
}
