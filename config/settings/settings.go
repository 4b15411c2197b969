// Package settings lists the fields of the configuration file, for its documentation and for its schema in the Helm chart. Names
// and kinds come from the Go types, meanings and bounds from their comments and markers, and defaults from SetDefaults. The
// package may import only apis/config.
package settings

import (
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
)

// Kind is the kind of a field's value, as the documentation names it.
type Kind string

// The kinds of fields.
const (
	Object  Kind = "object"
	Objects Kind = "list of objects"
	String  Kind = "string"
	Strings Kind = "list of strings"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
)

// Setting is a field of the configuration file.
type Setting struct {
	// Path is its name, prefixed with the names of the objects that contain it, such as inventory.regions[].cluster.
	Path string
	// Field is the field of the Go type, such as Region.Cluster.
	Field string
	// Comment is the comment of that field.
	Comment string
	Kind    Kind
	// Required reports whether the object that contains the field must set it. A required field must not be empty.
	Required bool
	// Default is its default: no value, one value, or for a list any number of values.
	Default []string
	// Minimum and Maximum are the bounds of an integer.
	Minimum, Maximum int32
	// Values are the allowed values of a string. If there are none, any value is allowed.
	Values []string
	// EmptyEntries reports whether a string in a list may be empty.
	EmptyEntries bool
}

// All returns all fields in the order of the types, each object before its fields. It reads the comments below root, the root of
// the source tree. It returns an error if the type of a field is not supported.
func All(root string) ([]Setting, error) {
	docs, err := commentsOf(filepath.Join(root, typesFolder))
	if err != nil {
		return nil, fmt.Errorf("cannot read the types of the configuration file: %w", err)
	}
	w := walk{docs: docs}
	config := Complete()
	err = w.fields(reflect.ValueOf(&config).Elem(), "")
	return w.all, err
}

// Complete returns a configuration that has every section, one entry in every list of sections, and all defaults.
func Complete() configv1alpha1.Configuration {
	var c configv1alpha1.Configuration
	open(reflect.ValueOf(&c).Elem())
	configv1alpha1.SetDefaults(&c)
	return c
}

// open adds every section that has no default, and one entry to every list of sections, so that their fields are found.
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

// walk collects the fields of a complete configuration.
type walk struct {
	docs map[string]comment
	all  []Setting
}

func (w *walk) fields(v reflect.Value, prefix string) error {
	for f, value := range v.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if options == "inline" {
			w.identity(value)
			continue
		}
		if err := w.field(value, prefix+name, v.Type().Name()+"."+f.Name); err != nil {
			return err
		}
	}
	return nil
}

// identity adds apiVersion and kind, which have one allowed value each.
func (w *walk) identity(v reflect.Value) {
	for f, value := range v.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		only := []string{value.String()}
		w.all = append(w.all, Setting{Path: name, Field: v.Type().Name() + "." + f.Name, Kind: String, Required: true, Default: only, Values: only})
	}
}

// field adds the field at a path, and the fields in it.
func (w *walk) field(v reflect.Value, path, name string) error {
	c := w.docs[name]
	s := Setting{Path: path, Field: name, Comment: c.text, Required: !c.has("optional")}
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	within := ""
	switch {
	case v.Kind() == reflect.Struct:
		s.Kind, within = Object, path+"."
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		s.Kind, within = Objects, path+"[]."
		v = v.Index(0)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		s.Kind, s.EmptyEntries = Strings, !c.has("kubebuilder:validation:items:MinLength")
		for i := range v.Len() {
			s.Default = append(s.Default, v.Index(i).String())
		}
	case v.Kind() == reflect.String:
		s.Kind = String
		if v.String() != "" {
			s.Default = []string{v.String()}
		}
		if values := w.docs[v.Type().Name()].markers["kubebuilder:validation:Enum"]; values != "" {
			s.Values = strings.Split(values, ";")
		}
	case v.Kind() == reflect.Bool:
		s.Kind, s.Default = Boolean, []string{strconv.FormatBool(v.Bool())}
	case v.Kind() == reflect.Int32:
		s.Kind, s.Default = Integer, []string{strconv.FormatInt(v.Int(), 10)}
		s.Minimum, s.Maximum = c.bound("Minimum", math.MinInt32), c.bound("Maximum", math.MaxInt32)
	default:
		return fmt.Errorf("cannot describe field %q of the configuration file: its type is %s, and it has no default", path, v.Type())
	}
	w.all = append(w.all, s)
	if within == "" {
		return nil
	}
	return w.fields(v, within)
}
