// Package settings lists the fields of the configuration file, for its documentation and for the schema that the Helm chart has of it. Names and kinds come
// from the Go types, defaults from SetDefaults, and what a field may hold from Validate, which is asked: nothing is said a second time. It may
// import apis/config only.
package settings

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

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
	Kind  Kind
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

var (
	index  = regexp.MustCompile(`\[\d+\]`)
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// All returns all fields, each object before what is in it, in the order of the types. It fails when a field has a type that no other has.
func All() ([]Setting, error) {
	w := walk{mustBeGiven: map[string]bool{"apiVersion": true, "kind": true}}
	open(reflect.ValueOf(&w.config).Elem())
	configv1alpha1.SetDefaults(&w.config)
	for _, err := range configv1alpha1.Validate(&w.config) {
		if err.Type == field.ErrorTypeRequired {
			w.mustBeGiven[err.Field] = true
		}
	}
	err := w.fields(reflect.ValueOf(&w.config).Elem(), "")
	return w.all, err
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

// walk goes through a configuration that has everything, and tries values in it.
type walk struct {
	config      configv1alpha1.Configuration
	mustBeGiven map[string]bool
	all         []Setting
}

func (w *walk) fields(v reflect.Value, prefix string) error {
	for f, value := range v.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if options == "inline" {
			if err := w.fields(value, prefix); err != nil {
				return err
			}
			continue
		}
		if err := w.field(value, prefix+name, v.Type().Name()+"."+f.Name); err != nil {
			return err
		}
	}
	return nil
}

// field takes up the field at a path, whose lists have indices, and what is in it.
func (w *walk) field(v reflect.Value, path, name string) error {
	s := Setting{Path: index.ReplaceAllString(path, "[]"), Field: name, Required: w.mustBeGiven[path]}
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	within := ""
	switch {
	case v.Kind() == reflect.Struct:
		s.Kind, within = Object, path+"."
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		s.Kind, within = Objects, path+"[0]."
		v = v.Index(0)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String:
		s.Kind, s.EmptyEntries = Strings, len(w.try(v, reflect.MakeSlice(v.Type(), 1, 1), path+"[0]")) == 0
		for i := range v.Len() {
			s.Default = append(s.Default, v.Index(i).String())
		}
	case v.Kind() == reflect.String:
		s.Kind, s.Values = String, w.values(v, path)
		if v.String() != "" {
			s.Default = []string{v.String()}
		}
	case v.Kind() == reflect.Bool:
		s.Kind, s.Default = Boolean, []string{strconv.FormatBool(v.Bool())}
	case v.Kind() == reflect.Int32:
		s.Kind, s.Default = Integer, []string{strconv.FormatInt(v.Int(), 10)}
		s.Minimum, s.Maximum = w.bounds(v, path)
	default:
		return fmt.Errorf("cannot describe field %q of the configuration file: its type is %s, and it has no default", path, v.Type())
	}
	w.all = append(w.all, s)
	if within == "" {
		return nil
	}
	return w.fields(v, within)
}

// try returns what is said of a path while a field has a value.
func (w *walk) try(v, value reflect.Value, path string) field.ErrorList {
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	v.Set(value.Convert(v.Type()))
	defer v.Set(was)
	var errs field.ErrorList
	for _, err := range configv1alpha1.Validate(&w.config) {
		if err.Field == path {
			errs = append(errs, err)
		}
	}
	return errs
}

// bounds returns the least and the largest integer that a field may have. All that are between its default and them are taken for valid too.
func (w *walk) bounds(v reflect.Value, path string) (least, largest int32) {
	valid := func(n int64) bool { return len(w.try(v, reflect.ValueOf(n), path)) == 0 }
	start := v.Int()
	below := sort.Search(int(start-math.MinInt32), func(n int) bool { return !valid(start - 1 - int64(n)) })
	above := sort.Search(int(math.MaxInt32-start), func(n int) bool { return !valid(start + 1 + int64(n)) })
	return int32(start - int64(below)), int32(start + int64(above))
}

// values returns the values of a field that has only some.
func (w *walk) values(v reflect.Value, path string) []string {
	var values []string
	for _, err := range w.try(v, reflect.ValueOf("no such value"), path) {
		if err.Type != field.ErrorTypeNotSupported {
			continue
		}
		for _, word := range quoted.FindAllString(err.Detail, -1) {
			if value, err := strconv.Unquote(word); err == nil {
				values = append(values, value)
			}
		}
	}
	return values
}
