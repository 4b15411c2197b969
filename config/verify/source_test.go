package verify

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// sources returns the syntax trees of the Go files in folders of the project and below them, without tests.
func sources(t *testing.T, folders ...string) []*ast.File {
	t.Helper()
	var files []*ast.File
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			files = append(files, file)
			return err
		})
		if err != nil {
			t.Fatalf("cannot read the source: %v", err)
		}
	}
	return files
}

// inspect calls visit for all nodes of a type.
func inspect[N ast.Node](files []*ast.File, visit func(N)) {
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if found, ok := n.(N); ok {
				visit(found)
			}
			return true
		})
	}
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}

// constants returns the string constants of a type, by name.
func constants(files []*ast.File, of string) map[string]string {
	found := map[string]string{}
	inspect(files, func(s *ast.ValueSpec) {
		if kind, ok := s.Type.(*ast.Ident); !ok || kind.Name != of || len(s.Values) != len(s.Names) {
			return
		}
		for i, name := range s.Names {
			if value, ok := text(s.Values[i]); ok {
				found[name.Name] = value
			}
		}
	})
	return found
}
