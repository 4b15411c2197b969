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
	begin, end, err := find(file, "properties", "config")
	if err != nil {
		return nil, fmt.Errorf("cannot put the schema into that of the values: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, slices.Concat(file[:begin], generated, file[end:]), "", "  "); err != nil {
		return nil, fmt.Errorf("cannot lay out the schema: %w", err)
	}
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), nil
}

// find returns where the value at a path of a JSON text begins and ends.
func find(text []byte, path ...string) (begin, end int64, err error) {
	var value json.RawMessage
	if err := json.Unmarshal(text, &value); err != nil {
		return 0, 0, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text)) // It cannot fail any more.
	for _, name := range path {
		if token, _ := decoder.Token(); token != json.Delim('{') {
			return 0, 0, errors.New("it is no object")
		}
		for {
			if !decoder.More() {
				return 0, 0, errors.New("there is no " + name)
			}
			if key, _ := decoder.Token(); key == name {
				break
			}
			_ = decoder.Decode(&value)
		}
	}
	err = decoder.Decode(&value)
	return decoder.InputOffset() - int64(len(value)), decoder.InputOffset(), err
}
