// Package settings lists the fields of the configuration file, for its documentation and for the schema that the Helm chart has of it. Names and kinds come
// from the Go types, what a field means and may hold from their comments and markers, and defaults from SetDefaults. It may import apis/config only.
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

// Kind is what a field holds, in the words of the documentation.
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
	// Path is its name with those of the objects around it, such as inventory.regions[].cluster.
	Path string
	// Field is the field of the Go type, such as Region.Cluster.
	Field string
	// Comment is the comment of that field.
	Comment string
	Kind    Kind
	// Required says that the object around it cannot be without it. Then it may not be empty either.
	Required bool
	// Default is its default: no word, one, or in a list any number.
	Default []string
	// Minimum and Maximum are the bounds of an integer.
	Minimum, Maximum int32
	// Values are those that a string may have; none means any.
	Values []string
	// EmptyEntries says that a string in a list may be empty.
	EmptyEntries bool
}

// All returns all fields, each object before what is in it, in the order of the types. root is the root of the source tree, where the comments are read.
// It fails when a field has a type that no other has.
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

// walk goes through a complete configuration.
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

// identity takes up apiVersion and kind, which have one value each.
func (w *walk) identity(v reflect.Value) {
	for f, value := range v.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		only := []string{value.String()}
		w.all = append(w.all, Setting{Path: name, Field: v.Type().Name() + "." + f.Name, Kind: String, Required: true, Default: only, Values: only})
	}
}

// field takes up the field at a path, and what is in it.
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
