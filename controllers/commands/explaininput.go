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

// readObjects reads the objects in files and directories. It returns what can be read, and the errors of what cannot.
// An object that is none, in a list, is returned as what it is.
func readObjects(names []string, in io.Reader) ([]any, []error) {
	var objects []any
	var problems []error
	for _, name := range names {
		paths, err := expand(name)
		if err != nil {
			problems = append(problems, err)
		}
		for _, path := range paths {
			found, wrong := readFile(path, in)
			objects, problems = append(objects, found...), append(problems, wrong...)
		}
	}
	return objects, problems
}

// expand returns a file itself, and of a directory the files with objects, as kubectl does: not those of directories below it.
func expand(name string) ([]string, error) {
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

// parseObjects returns the objects of a YAML or JSON text, those within lists one by one. Documents that
// cannot be read are named by number and line in the errors; the others count. A text without any object is an error.
func parseObjects(data []byte) ([]any, []error) {
	var objects []any
	var problems []error
	number := 0
	for _, d := range splitDocuments(data) {
		values, err := d.values()
		for _, value := range values {
			number++
			found, wrong := listed(value)
			if wrong != nil {
				problems = append(problems, errors.Wrapf(wrong, "document %d, line %d", number, d.line))
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
		word, _, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
		if word == "---" || word == "..." {
			documents = append(documents, document{line: n})
			line = append([]byte("   "), line[len(word):]...)
		}
		current := &documents[len(documents)-1]
		current.text = append(current.text, line...)
	}
	return documents
}

// values returns the values of a document: of YAML one, of JSON as many as follow each other. null is no value.
// An error says in which line.
func (d document) values() ([]any, error) {
	text := bytes.TrimSpace(d.text)
	if len(text) > 0 && (text[0] == '{' || text[0] == '[') {
		values, err := d.stream()
		// What begins as JSON may be YAML, whose keys need no quotes.
		if after := bytes.TrimSpace(text[1:]); err == nil || len(after) > 0 && after[0] == '"' {
			return values, err
		}
	}
	converted, err := yaml.YAMLToJSON(d.text)
	if err != nil {
		return nil, d.located(err)
	}
	return decoded(nil, converted)
}

// stream returns the values of a stream of JSON, up to the first one that is wrong.
func (d document) stream() ([]any, error) {
	var values []any
	decoder := json.NewDecoder(bytes.NewReader(d.text))
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err == nil {
			values, err = decoded(values, raw)
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

// decoded appends a value to values, unless it is null. Numbers become int64 or float64, as in objects from a cluster.
func decoded(values []any, data []byte) ([]any, error) {
	var value any
	if err := utiljson.Unmarshal(data, &value); err != nil || value == nil {
		return values, err
	}
	return append(values, value), nil
}

// located returns an error of the YAML decoder with the line of the file.
func (d document) located(err error) error {
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

// listed returns the objects of a list one by one, also of lists in it, and anything else itself.
func listed(value any) ([]any, error) {
	switch value := value.(type) {
	case []any:
		return unpacked(value, "", nil), nil
	case map[string]any:
		return unpacked([]any{value}, "", nil), nil
	default:
		return nil, errors.Errorf("it is %s; it must be an object", kindOf(value))
	}
}

// unpacked returns items with those of the lists among them in place of these. Objects in a list of
// one kind do not say what they are; the list does, by kind and apiVersion.
func unpacked(items []any, kind string, apiVersion any) []any {
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
		below, _ := object["items"].([]any)
		name, _ := object["kind"].(string)
		objects = append(objects, unpacked(below, strings.TrimSuffix(name, "List"), object["apiVersion"])...)
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

// kindOf says what a value of JSON is.
func kindOf(value any) string {
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
