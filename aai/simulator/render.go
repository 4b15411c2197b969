package simulator

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
)

// object is a JSON object that keeps the order of its fields, because A&AI writes them in schema order.
// Values are string, bool, int, int64, []string, nil, object and []object.
type object []field

type field struct {
	name  string
	value any
}

// jsonWriter writes documents. Its encoder does not escape <, > and &, as A&AI does not.
type jsonWriter struct {
	bytes.Buffer

	scalars *json.Encoder
}

func newJSONWriter() *jsonWriter {
	w := &jsonWriter{}
	w.scalars = json.NewEncoder(&w.Buffer)
	w.scalars.SetEscapeHTML(false)
	return w
}

// value writes one value.
func (w *jsonWriter) value(v any) error {
	switch v := v.(type) {
	case object:
		return w.list('{', '}', len(v), func(i int) error {
			if err := w.scalar(v[i].name); err != nil {
				return err
			}
			w.WriteByte(':')
			return w.value(v[i].value)
		})
	case []object:
		return w.list('[', ']', len(v), func(i int) error { return w.value(v[i]) })
	default:
		return w.scalar(v)
	}
}

func (w *jsonWriter) list(opening, closing byte, n int, item func(int) error) error {
	w.WriteByte(opening)
	for i := range n {
		if i > 0 {
			w.WriteByte(',')
		}
		if err := item(i); err != nil {
			return err
		}
	}
	w.WriteByte(closing)
	return nil
}

func (w *jsonWriter) scalar(v any) error {
	if err := w.scalars.Encode(v); err != nil {
		return fmt.Errorf("cannot encode %T: %w", v, err)
	}
	w.Truncate(w.Len() - 1) // the encoder ends each value with a newline
	return nil
}

// elements writes v as the XML element that JAXB makes of it: a list repeats the element, nil is left out.
func elements(b *strings.Builder, name string, v any) {
	switch v := v.(type) {
	case nil:
	case object:
		open, _, _ := strings.Cut(name, " ") // the root carries a namespace attribute
		b.WriteString("<" + name + ">")
		for _, f := range v {
			elements(b, f.name, f.value)
		}
		b.WriteString("</" + open + ">")
	case []object:
		for _, item := range v {
			elements(b, name, item)
		}
	case []string:
		for _, item := range v {
			elements(b, name, item)
		}
	default:
		b.WriteString("<" + name + ">" + escaped(fmt.Sprint(v)) + "</" + name + ">")
	}
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}

// wireFormat is the media type of an answer.
type wireFormat int

const (
	jsonFormat wireFormat = iota
	xmlFormat
)

func (f wireFormat) mediaType() string {
	if f == xmlFormat {
		return "application/xml"
	}
	return "application/json"
}

// encode renders a document whose root element, needed by XML only, is named root.
func (f wireFormat) encode(root string, o object) ([]byte, error) {
	if f == jsonFormat {
		w := newJSONWriter()
		err := w.value(o)
		return w.Bytes(), err
	}
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`)
	elements(&b, root, o)
	return []byte(b.String()), nil
}
