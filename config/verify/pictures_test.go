package verify

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPicturesShowInLightAndDark: a picture is read by XML's rules, has a page of its own behind it, and each of its parts has a style in both.
func TestPicturesShowInLightAndDark(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(docs, "*.svg"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no picture: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		light, dark, found := strings.Cut(string(data), "@media (prefers-color-scheme: dark)")
		if !found {
			t.Errorf("%s: it has no style for a dark page", file)
		}
		dark, shapes, _ := strings.Cut(dark, "</style>")
		if !strings.Contains(shapes, `class="page"`) {
			t.Errorf("%s: it has no page behind it", file)
		}
		for class := range classesOf(t, file, string(data)) {
			if !strings.Contains(light, "."+class+" ") || !strings.Contains(dark, "."+class+" ") && !strings.Contains(dark, "."+class+",") {
				t.Errorf("%s: give the class %q a style for light pages and one for dark ones", file, class)
			}
		}
	}
}

// classesOf returns the classes of the parts of a picture.
func classesOf(t *testing.T, file, text string) map[string]bool {
	t.Helper()
	classes := map[string]bool{}
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return classes
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		element, _ := token.(xml.StartElement)
		for _, a := range element.Attr {
			if a.Name.Local == "class" {
				classes[a.Value] = true
			}
		}
	}
}
