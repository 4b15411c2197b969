package valuesschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/healthscope/healthscope/config/settings"
)

// width is how wide a line may be before what is in it gets lines of its own.
const width = 122

// Update returns the text of values.schema.json with the schema of the configuration file at properties.config. All else stays as it is, byte for byte.
func Update(file []byte) ([]byte, error) {
	begin, end, err := find(file, "properties", "config")
	if err != nil {
		return nil, fmt.Errorf("cannot find properties.config in the schema of the values: %w", err)
	}
	all, err := settings.All()
	if err != nil {
		return nil, err
	}
	generated, err := json.Marshal(of(all))
	if err != nil {
		return nil, fmt.Errorf("cannot encode the schema: %w", err)
	}
	var out bytes.Buffer
	out.Write(file[:begin])
	line := file[bytes.LastIndexByte(file[:begin], '\n')+1 : begin]
	indent := len(line) - len(bytes.TrimLeft(line, " "))
	if err := layout(&out, generated, indent, len(line)); err != nil {
		return nil, fmt.Errorf("cannot lay out the schema: %w", err)
	}
	out.Write(file[end:])
	return out.Bytes(), nil
}

// member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// object writes an object with its members in their order.
func object(members []member) ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(m.value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// found is what an object or a list holds, and where in its text it ends.
type found struct {
	member
	end int
}

// children returns what is in an object or a list, in its order; nothing for other values.
func children(value []byte) (all []found, opening string, err error) {
	dec := json.NewDecoder(bytes.NewReader(value))
	token, err := dec.Token()
	delim, ok := token.(json.Delim)
	if err != nil || !ok {
		return nil, "", err
	}
	for dec.More() {
		var f found
		if delim == '{' {
			name, err := dec.Token()
			if err != nil {
				return nil, "", err
			}
			f.name = fmt.Sprint(name)
		}
		if err := dec.Decode(&f.value); err != nil {
			return nil, "", err
		}
		f.end = int(dec.InputOffset())
		all = append(all, f)
	}
	_, err = dec.Token() // Without it, a file that ends too early would pass.
	return all, delim.String(), err
}

// find returns where the value at a path begins and ends.
func find(file []byte, path ...string) (begin, end int, err error) {
	end = len(file)
	for _, name := range path {
		all, _, err := children(file[begin:end])
		if err != nil {
			return 0, 0, err
		}
		from := -1
		for _, f := range all {
			if f.name == name {
				from, end = begin+f.end-len(f.value), begin+f.end
			}
		}
		if from < 0 {
			return 0, 0, errors.New("there is no " + name)
		}
		begin = from
	}
	return begin, end, nil
}

// layout writes a value on one line if it fits behind the column it begins at, and otherwise one line for each thing in it.
func layout(out *bytes.Buffer, value []byte, indent, column int) error {
	all, opening, err := children(value)
	if err != nil {
		return err
	}
	if line := oneLine(value); len(all) == 0 || column+len(line) <= width {
		out.WriteString(line)
		return nil
	}
	out.WriteString(opening)
	for i, f := range all {
		if i > 0 {
			out.WriteByte(',')
		}
		head := ""
		if opening == "{" {
			head = fmt.Sprintf("%q: ", f.name)
		}
		out.WriteString("\n" + strings.Repeat(" ", indent+2) + head)
		if err := layout(out, f.value, indent+2, indent+2+len(head)); err != nil {
			return err
		}
	}
	out.WriteString("\n" + strings.Repeat(" ", indent) + map[string]string{"{": "}", "[": "]"}[opening])
	return nil
}

// oneLine returns compact JSON with a space behind colons and commas.
func oneLine(compact []byte) string {
	var out strings.Builder
	inString, escaped := false, false
	for _, c := range compact {
		out.WriteByte(c)
		switch {
		case inString:
			inString = escaped || c != '"'
			escaped = c == '\\' && !escaped
		case c == '"':
			inString = true
		case c == ',' || c == ':':
			out.WriteByte(' ')
		}
	}
	return out.String()
}
