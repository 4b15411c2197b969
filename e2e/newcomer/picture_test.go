package newcomer

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// picture is the image at the top of the README. It shows commands of the README with their output. `make picture` draws it
// again.
const picture = "config/docs/session.svg"

var redraw = flag.Bool("picture", false, "draw "+picture+" from what the commands of the README print")

// The dimensions of the picture, in pixels. Only columns is in characters.
const (
	columns      = 104
	width        = 852
	lineHeight   = 20
	margin       = 20
	pictureStyle = `
    .page { fill: #ffffff; stroke: #d0d7de }
    .typed { fill: #1f2328; font-weight: 600 }
    .printed { fill: #57606a }
    .good { fill: #1a7f37; font-weight: 600 }
    .bad { fill: #cf222e; font-weight: 600 }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; stroke: #30363d }
      .typed { fill: #f0f6fc }
      .printed { fill: #9da7b3 }
      .good { fill: #3fb950 }
      .bad { fill: #ff7b72 }
    }
  `
)

// healthWord matches the words that have a colour.
var healthWord = regexp.MustCompile(`\b(un)?healthy\b`)

// pictured returns the steps that the picture shows, from the first Deployment to the cause, without the commands that wait. It
// returns nil if these steps are missing.
func pictured(steps []step) []step {
	var found []step
	for _, s := range steps {
		if len(found) == 0 && !strings.HasPrefix(s.command, "kubectl create deployment ") || strings.HasPrefix(s.command, "kubectl wait ") {
			continue
		}
		if found = append(found, s); strings.Contains(s.command, ".cause}") {
			return found
		}
	}
	return nil
}

// checkPicture compares the picture with the output of the commands. With the flag -picture, it draws the picture first.
func checkPicture(t *testing.T, steps []step) {
	t.Helper()
	shown := pictured(steps)
	if shown == nil {
		t.Fatal("README.md has not the steps that its picture shows")
	}
	file := filepath.Join("..", "..", picture)
	if *redraw {
		check(t, os.WriteFile(file, []byte(draw(shown)), 0o644))
	}
	drawn, err := textsOf(read(t, picture))
	check(t, err)
	var want []string
	for _, s := range shown {
		want = append(append(want, typed(s.command)...), s.output...)
	}
	if diff := cmp.Diff(lasting(want), lasting(drawn)); diff != "" {
		t.Errorf("%s is out of date: run \"make picture\" (-printed +drawn):\n%s", picture, diff)
	}
}

// typed returns the lines of a command as a terminal shows them.
func typed(command string) []string { return strings.Split("$ "+command, "\n") }

// draw returns steps as an SVG. Each line is one text element, also if the line is broken.
func draw(steps []step) string {
	var body strings.Builder
	y := margin
	write := func(class, line string) {
		fmt.Fprintf(&body, `  <text class=%q xml:space="preserve">`, class)
		for _, part := range broken(line) {
			y += lineHeight
			fmt.Fprintf(&body, `<tspan x="%d" y="%d">%s</tspan>`, margin, y, colored(part))
		}
		body.WriteString("</text>\n")
	}
	for _, s := range steps {
		for _, line := range typed(s.command) {
			write("typed", line)
		}
		for _, line := range s.output {
			write("printed", line)
		}
		y += lineHeight / 2
	}
	height := y + margin
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-labelledby="title" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">
  <title id="title">A Deployment under a HealthScope: kubectl shows that it is healthy, and after its pods are gone, that it is unhealthy and why.</title>
  <style>%s</style>
  <rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>
%s</svg>
`, width, height, pictureStyle, width-1, height-1, body.String())
}

// broken breaks a line that is too long after a blank, or after columns characters if there is no blank.
func broken(line string) []string {
	var parts []string
	for len(line) > columns {
		end := strings.LastIndexByte(line[:columns], ' ') + 1
		if end == 0 {
			end = columns
		}
		parts, line = append(parts, line[:end]), line[end:]
	}
	return append(parts, line)
}

func colored(text string) string {
	return healthWord.ReplaceAllStringFunc(html.EscapeString(text), func(word string) string {
		class := map[string]string{"healthy": "good", "unhealthy": "bad"}[word]
		return fmt.Sprintf("<tspan class=%q>%s</tspan>", class, word)
	})
}

// textsOf returns the texts of an SVG.
func textsOf(svg string) ([]string, error) {
	var texts []string
	inside := false
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err != nil {
			return nil, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == "text" {
				inside, texts = true, append(texts, "")
			}
		case xml.EndElement:
			inside = inside && token.Name.Local != "text"
		case xml.CharData:
			if inside {
				texts[len(texts)-1] += string(token)
			}
		}
	}
}

func TestDraw(t *testing.T) {
	long := strings.Repeat("a word ", 40)
	svg := draw([]step{{command: "kubectl get hs <<EOF\nin & out\nEOF", output: []string{"NAME  HEALTH", "web   unhealthy  <nil>", long}}})
	got, err := textsOf(svg)
	want := []string{"$ kubectl get hs <<EOF", "in & out", "EOF", "NAME  HEALTH", "web   unhealthy  <nil>", long}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, texts (-want +got):\n%s", err, diff)
	}
	if strings.Count(svg, `<tspan x=`) != len(want)+2 {
		t.Errorf("the long line is not broken twice:\n%s", svg)
	}
}
