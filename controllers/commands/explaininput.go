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
	"sigs.k8s.io/yaml"
)

// standardInput is the name of standard input on the command line.
const standardInput = "-"

// yamlLine finds the line in an error of the YAML decoder.
var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): `)

// readObjects reads the objects in files and directories. It returns the objects that can be read, and the errors of the others.
// An item of a list that is not an object is returned unchanged.
func readObjects(names []string, in io.Reader) ([]any, []error) {
	var objects []any
	var problems []error
	for _, name := range names {
		paths, err := expandPath(name)
		if err != nil {
			problems = append(problems, err)
		}
		for _, path := range paths {
			found, errs := readFile(path, in)
			objects, problems = append(objects, found...), append(problems, errs...)
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
		return nil, errors.Wrap(err, "cannot read the objects")
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the objects")
	}
	var paths []string
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".json", ".yaml", ".yml":
			if !e.IsDir() {
				paths = append(paths, filepath.Join(name, e.Name()))
			}
		}
	}
	if len(paths) == 0 {
		return nil, errors.Errorf("cannot read the objects: there is no .yaml, .yml or .json file in directory %q", name)
	}
	return paths, nil
}

// readFile reads the objects of a file or of standard input.
func readFile(path string, in io.Reader) ([]any, []error) {
	var data []byte
	var err error
	if path == standardInput {
		path = "standard input"
		data, err = io.ReadAll(in)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, []error{errors.Wrap(err, "cannot read the objects")}
	}
	objects, problems := parseObjects(data)
	for i := range problems {
		problems[i] = errors.Wrapf(problems[i], "cannot read the objects in %q", path)
	}
	return objects, problems
}

// document is one of the YAML documents of a file.
type document struct {
	text []byte
	// line is the number of its first line, from 1.
	line int
}

// parseObjects returns the objects of a YAML or JSON text, including those in lists. The errors name documents that cannot be
// read by number and line. The objects of the other documents are returned. A text without any object is an error.
func parseObjects(data []byte) ([]any, []error) {
	var objects []any
	var problems []error
	number := 0
	for _, d := range splitDocuments(data) {
		values, err := d.values()
		for _, value := range values {
			number++
			found, flattenErr := flatten(value)
			if flattenErr != nil {
				problems = append(problems, errors.Wrapf(flattenErr, "document %d, line %d", number, d.line))
			}
			objects = append(objects, found...)
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
	converted, err := yaml.YAMLToJSON(d.text)
	if err != nil {
		return nil, d.withLine(err)
	}
	return appendDecoded(nil, converted)
}

// decodeJSON returns the values of a JSON stream, up to the first invalid one.
func (d document) decodeJSON() ([]any, error) {
	var values []any
	decoder := json.NewDecoder(bytes.NewReader(d.text))
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err == nil {
			values, err = appendDecoded(values, raw)
		}
		if err != nil {
			at := len(bytes.TrimRight(d.text, "\r\n\t "))
			if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
				at = min(at, int(syntax.Offset))
			}
			return values, errors.Wrapf(err, "line %d", d.line+bytes.Count(d.text[:at], []byte("\n")))
		}
	}
}

// appendDecoded appends a value to values, unless it is null. Numbers become int64 or float64, as in objects from a cluster.
func appendDecoded(values []any, data []byte) ([]any, error) {
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil || value == nil {
		return values, err
	}
	return append(values, value), nil
}

// withLine returns an error of the YAML decoder with its line in the file.
func (d document) withLine(err error) error {
	text, line := err.Error(), d.line
	text = strings.TrimPrefix(text, "error converting YAML to JSON: ")
	if match := yamlLine.FindStringSubmatch(text); match != nil {
		if n, err := strconv.Atoi(match[1]); err == nil {
			line += n - 1
		}
		text = text[len(match[0]):]
	}
	return errors.Errorf("line %d: %s", line, strings.TrimPrefix(text, "yaml: "))
}

// flatten returns the objects of a list, including those of nested lists, or the object itself. Any other value is an error.
func flatten(value any) ([]any, error) {
	switch value := value.(type) {
	case []any:
		return flattenItems(value, "", nil), nil
	case map[string]any:
		return flattenItems([]any{value}, "", nil), nil
	default:
		return nil, errors.Errorf("it is %s; it must be an object", jsonType(value))
	}
}

// flattenItems returns items, and replaces each list among them by its items. The items of a typed list may lack kind and
// apiVersion, which flattenItems sets from the list.
func flattenItems(items []any, kind string, apiVersion any) []any {
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
		objects = append(objects, flattenItems(nested, strings.TrimSuffix(name, "List"), object["apiVersion"])...)
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
