package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// valuesTable returns the table of the chart's values, from the comments and defaults in values.yaml.
func valuesTable(file string) (table, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", file, err)
	}
	values, err := valuesIn(document.Content[0], "")
	if err != nil {
		return nil, fmt.Errorf("cannot describe the values in %q: %w", file, err)
	}
	return append(table{{"value", "default", "meaning"}}, values...), nil
}

// valuesIn returns the rows of the fields of an object. A field with commented fields below it has no default. A field without a
// comment has no row.
func valuesIn(object *yaml.Node, parent string) (table, error) {
	var rows table
	for field := range slices.Chunk(object.Content, 2) {
		path, value := parent+field[0].Value, field[1]
		comment := strings.TrimPrefix(strings.ReplaceAll(field[0].HeadComment, "\n# ", " "), "# ")
		var below table
		var err error
		if value.Kind == yaml.MappingNode && (comment == "" || commented(value)) {
			below, err = valuesIn(value, path+".")
		}
		switch {
		case err != nil:
			return nil, err
		case comment == "" && len(below) == 0:
			return nil, fmt.Errorf("%s has no comment", path)
		case comment == "":
		case len(below) > 0:
			rows = append(rows, []string{code(path), "", comment + "."})
		default:
			initial, err := defaultValue(value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			rows = append(rows, []string{code(path), code(initial), comment + "."})
		}
		rows = append(rows, below...)
	}
	return rows, nil
}

// commented reports whether a field of an object has a comment.
func commented(object *yaml.Node) bool {
	return slices.ContainsFunc(object.Content, func(n *yaml.Node) bool { return n.HeadComment != "" })
}

// defaultValue returns a value as JSON.
func defaultValue(value *yaml.Node) (string, error) {
	var decoded any
	if err := value.Decode(&decoded); err != nil {
		return "", err
	}
	data, err := json.Marshal(decoded)
	return string(data), err
}
