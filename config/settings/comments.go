package settings

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// typesFolder is the folder with the types of the configuration file, relative to the root of the source tree.
const typesFolder = "apis/config/v1alpha1"

// comment is the comment of a type or of a field.
type comment struct {
	// text is the part for readers.
	text string
	// markers are the lines for programs, such as +optional: the text after the equals sign, by the text before it.
	markers map[string]string
}

func (c comment) has(marker string) bool {
	_, found := c.markers[marker]
	return found
}

// bound returns the number in a validation marker. It returns otherwise if the marker is absent or not a number.
func (c comment) bound(name string, otherwise int32) int32 {
	n, err := strconv.ParseInt(c.markers["kubebuilder:validation:"+name], 10, 32)
	if err != nil {
		return otherwise
	}
	return int32(n)
}

// Comments returns the comments of the types in a folder, without markers, and those of their fields as Type.Field.
func Comments(folder string) (map[string]string, error) {
	all, err := commentsOf(folder)
	texts := map[string]string{}
	for name, c := range all {
		texts[name] = c.text
	}
	return texts, err
}

// commentsOf returns the comments of all types in a folder, and those of their fields as Type.Field.
func commentsOf(folder string) (map[string]comment, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	comments := map[string]comment{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			declaration, ok := n.(*ast.GenDecl)
			if !ok {
				return true
			}
			for _, spec := range declaration.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					comments[t.Name.Name] = read(declaration.Doc)
					addFields(comments, t)
				}
			}
			return false
		})
	}
	return comments, nil
}

func addFields(comments map[string]comment, t *ast.TypeSpec) {
	structure, ok := t.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, field := range structure.Fields.List {
		for _, ident := range field.Names {
			comments[t.Name.Name+"."+ident.Name] = read(field.Doc)
		}
	}
}

// read separates the text of a comment from its markers.
func read(doc *ast.CommentGroup) comment {
	c := comment{markers: map[string]string{}}
	for line := range strings.Lines(doc.Text()) {
		if marker, ok := strings.CutPrefix(strings.TrimSpace(line), "+"); ok {
			name, value, _ := strings.Cut(marker, "=")
			c.markers[name] = value
		} else {
			c.text += line
		}
	}
	return c
}
