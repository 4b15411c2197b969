package valuesschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/healthscope/healthscope/config/settings"
)

// Update returns the text of values.schema.json with the schema of the configuration file at properties.config. It keeps the
// order of all members. root is the root of the source tree.
func Update(root string, file []byte) ([]byte, error) {
	all, err := settings.All(root)
	if err != nil {
		return nil, err
	}
	generated, err := json.Marshal(of(all))
	if err != nil {
		return nil, fmt.Errorf("cannot encode the schema: %w", err)
	}
	replaced, err := replace(file, generated, "properties", "config")
	if err != nil {
		return nil, fmt.Errorf("cannot put the schema into that of the values: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, replaced, "", "  "); err != nil {
		return nil, fmt.Errorf("cannot lay out the schema: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// object is a JSON object whose members keep their order.
type object []member

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		out.Write(slices.Concat(name, []byte(":"), m.value))
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *object) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if token, err := dec.Token(); err != nil || token != json.Delim('{') {
		return errors.Join(errors.New("it is no object"), err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		m := member{name: fmt.Sprint(name)}
		if err := dec.Decode(&m.value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	return nil
}

// replace returns an object in which the value at a path is replaced.
func replace(value, by json.RawMessage, path ...string) (json.RawMessage, error) {
	if len(path) == 0 {
		return by, nil
	}
	var o object
	if err := json.Unmarshal(value, &o); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(o, func(m member) bool { return m.name == path[0] })
	if i < 0 {
		return nil, errors.New("there is no " + path[0])
	}
	var err error
	if o[i].value, err = replace(o[i].value, by, path[1:]...); err != nil {
		return nil, err
	}
	return o.MarshalJSON()
}
