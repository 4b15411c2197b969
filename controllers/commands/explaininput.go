package commands

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// standardInput is the name of standard input on the command line.
const standardInput = "-"

// yamlLine finds the line in an error of the YAML decoder.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// readObjects reads the objects in files and directories. It returns the objects that can be read, and the errors of the others.
// An item of a list that is not an object is returned unchanged.
func readObjects(names []string, in io.Reader) (objects []any, problems []error) {
	for _, name := range names {
		paths, err := expandPath(name)
		if err != nil {
			problems = append(problems, errors.Wrap(err, "cannot read the objects"))
		}
		for _, path := range paths {
			var data []byte
			if path == standardInput {
				path = "standard input"
				data, err = io.ReadAll(in)
			} else {
				data, err = os.ReadFile(path)
			}
			if err != nil {
				problems = append(problems, errors.Wrap(err, "cannot read the objects"))
				continue
			}
			found, errs := parseObjects(data)
			objects = append(objects, found...)
			for _, err := range errs {
				problems = append(problems, errors.Wrapf(err, "cannot read the objects in %q", path))
			}
		}
	}
	return objects, problems
}

// expandPath returns the path of a file, or the paths of the YAML and JSON files in a directory. Like kubectl, it ignores subdirectories.
func expandPath(name string) ([]string, error) {
	if name == standardInput {
		return []string{name}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".json" || ext == ".yaml" || ext == ".yml") {
			paths = append(paths, filepath.Join(name, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, errors.Errorf("there is no .yaml, .yml or .json file in directory %q", name)
	}
	return paths, nil
}

// document is one of the YAML documents of a file.
type document struct {
	text []byte
	// line is the number of its first line, from 1.
	line int
}

// parseObjects returns the objects of a YAML or JSON text, including those in lists. The errors name documents that cannot be
// read by number and line. The objects of the other documents are returned. A text without any object is an error.
func parseObjects(data []byte) (objects []any, problems []error) {
	number := 0
	for _, d := range splitDocuments(data) {
		values, err := d.values()
		for _, value := range values {
			number++
			switch value := value.(type) {
			case []any:
				objects = append(objects, flatten(value, "", nil)...)
			case map[string]any:
				objects = append(objects, flatten([]any{value}, "", nil)...)
			default:
				problems = append(problems, errors.Errorf("document %d, line %d: it is %s; it must be an object", number, d.line, jsonType(value)))
			}
		}
		if err != nil {
			number++
			problems = append(problems, errors.Errorf("document %d, %w", number, err))
		}
	}
	if number == 0 {
		return nil, []error{errors.New("there is none")}
	}
	return objects, problems
}

// splitDocuments splits a text into its YAML documents; some may be empty. JSON has no line that looks like a separator.
func splitDocuments(data []byte) []document {
	documents := []document{{line: 1}}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		marker, _, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
		if marker == "---" || marker == "..." {
			documents = append(documents, document{line: n})
			line = append([]byte("   "), line[len(marker):]...)
		}
		current := &documents[len(documents)-1]
		current.text = append(current.text, line...)
	}
	return documents
}

// values returns the value of a YAML document, or all values of a JSON stream. null is no value. An error names the line.
func (d document) values() ([]any, error) {
	text := bytes.TrimSpace(d.text)
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		values, err := d.decodeJSON()
		// What begins as JSON may be YAML, whose keys need no quotes.
		if after := bytes.TrimSpace(text[1:]); err == nil || len(after) > 0 && after[0] == '"' {
			return values, err
		}
	}
	var value any
	if err := utilyaml.Unmarshal(d.text, &value); err != nil {
		return nil, d.withLine(err)
	}
	if value == nil {
		return nil, nil
	}
	return []any{value}, nil
}

// decodeJSON returns the values of a JSON stream, up to the first invalid one. Numbers become int64 or float64, as in objects from a cluster.
func (d document) decodeJSON() ([]any, error) {
	var values []any
	decoder := json.NewDecoder(bytes.NewReader(d.text))
	for {
		var raw json.RawMessage
		var value any
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err == nil {
			err = utiljson.Unmarshal(raw, &value)
		}
		if err != nil {
			at := len(bytes.TrimRight(d.text, "\r\n\t "))
			if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
				at = min(at, int(syntax.Offset))
			}
			return values, errors.Wrapf(err, "line %d", d.line+bytes.Count(d.text[:at], []byte("\n")))
		}
		if value != nil {
			values = append(values, value)
		}
	}
}

// withLine returns an error of the YAML decoder with its line in the file.
func (d document) withLine(err error) error {
	text, line := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), d.line
	if match := yamlLine.FindStringSubmatch(text); match != nil {
		n, _ := strconv.Atoi(match[1]) // The expression matches only digits.
		line, text = line+n-1, text[len(match[0]):]
	}
	return errors.Errorf("line %d: %s", line, strings.TrimPrefix(text, "yaml: "))
}

// flatten returns items, and replaces each list among them by its items. The items of a typed list may lack kind and
// apiVersion, which flatten sets from the list.
func flatten(items []any, kind string, apiVersion any) []any {
	var objects []any
	for _, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			objects = append(objects, item)
			continue
		}
		if kind != "" && object["kind"] == nil && object["apiVersion"] == nil {
			object["kind"], object["apiVersion"] = kind, apiVersion
		}
		if !isList(object) {
			objects = append(objects, object)
			continue
		}
		nested, _ := object["items"].([]any)
		name, _ := object["kind"].(string)
		objects = append(objects, flatten(nested, strings.TrimSuffix(name, "List"), object["apiVersion"])...)
	}
	return objects
}

// isList reports whether an object is a list of others. There are kinds of objects whose names end like those of lists.
func isList(object map[string]any) bool {
	kind, _ := object["kind"].(string)
	items, ok := object["items"]
	if !strings.HasSuffix(kind, "List") || !ok || object["spec"] != nil || object["status"] != nil {
		return false
	}
	metadata, _ := object["metadata"].(map[string]any)
	_, listed := items.([]any)
	return (listed || items == nil) && metadata["name"] == nil
}

// jsonType returns the type of a JSON value that is not an object.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "a number"
	}
}
