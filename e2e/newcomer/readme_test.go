package newcomer

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// step is a command on a page, with the output that the page shows.
type step struct {
	line    int
	command string
	// output are the lines below the command. If there are none, the output of the command is not compared.
	output []string
}

var (
	heredoc = regexp.MustCompile(`<<'?(\w+)'?`)
	// Ages, the names that Kubernetes generates, and current counts differ in each output.
	age        = regexp.MustCompile(`\b(\d+[dhms])+( ago)?\b|\bnow\b`)
	madeUpName = regexp.MustCompile(`\b([a-z][a-z0-9-]*)-[bcdf-hj-np-tv-z0-9]{8,10}-[bcdf-hj-np-tv-z0-9]{5}\b`)
	counted    = regexp.MustCompile(`\bused: pods=\d+`)
	// variable matches the names of variables that a page sets.
	variable = regexp.MustCompile(`^[A-Z]+$`)
	blanks   = regexp.MustCompile(`\s+`)
)

// readSteps returns the commands in the console blocks of a page, in their order.
func readSteps(text string) ([]step, error) {
	var steps []step
	console, end := false, ""
	for n, line := range strings.Split(text, "\n") {
		last := len(steps) - 1
		command, begins := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			if end != "" {
				return nil, fmt.Errorf("line %d: the input of the command in line %d does not end with %q", n+1, steps[last].line, end)
			}
			console = line == "```console"
		case !console:
		case end != "":
			steps[last].command += "\n" + line
			if line == end {
				end = ""
			}
		case begins:
			steps = append(steps, step{line: n + 1, command: command})
			if match := heredoc.FindStringSubmatch(command); match != nil {
				end = match[1]
			}
		case last < 0:
			return nil, fmt.Errorf("line %d: the block does not begin with a command", n+1)
		default:
			steps[last].output = append(steps[last].output, line)
		}
	}
	return steps, nil
}

// lasting returns lines without the parts that differ in each output: ages, generated names, counts, the width of columns, and
// blank lines.
func lasting(lines []string) []string {
	var result []string
	for _, line := range lines {
		line = counted.ReplaceAllString(line, "used: pods=<count>")
		// Names are replaced first, because the end of a name, such as 4d55s, can look like an age.
		line = age.ReplaceAllString(madeUpName.ReplaceAllString(line, "$1-<name>"), "<age>")
		if line = strings.TrimSpace(blanks.ReplaceAllString(line, " ")); line != "" {
			result = append(result, line)
		}
	}
	return result
}

// difference compares the output of a command with the output that the page shows. It returns an empty string if they are the
// same.
func (s step) difference(printed string) string {
	if s.output == nil {
		return ""
	}
	return cmp.Diff(lasting(s.output), lasting(strings.Split(printed, "\n")))
}

// read returns a page, by its path from the root of the source tree.
func read(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// section returns a section of a page. Blank lines before it keep the line numbers of the page.
func section(page, title string) string {
	before, text, _ := strings.Cut(page, "\n## "+title+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return strings.Repeat("\n", strings.Count(before, "\n")+2) + text
}

func TestReadSteps(t *testing.T) {
	got, err := readSteps("text\n$ not a command\n```console\n$ a <<EOF\nin\nEOF\nout\n$ b   # why\n```\n```sh\n$ c\n```\n```console\n$ d\n```\n")
	want := []step{{4, "a <<EOF\nin\nEOF", []string{"out"}}, {8, "b   # why", nil}, {14, "d", nil}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(step{})); err != nil || diff != "" {
		t.Errorf("%v, steps (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{"```console\nout\n```", "```console\n$ a <<EOF\nin\n```"} {
		if got, err := readSteps(text); err == nil {
			t.Errorf("%q has the steps %v, want an error", text, got)
		}
	}
}

func TestDifference(t *testing.T) {
	shown := step{output: []string{"NAME   AGE   CULPRIT", `vfw    12s   pod "fw0-sink-86cdc5548d-thgr4"`}}
	for printed, same := range map[string]bool{
		"NAME AGE  CULPRIT\nvfw  1m3s pod \"fw0-sink-66967654d5-x2kzp\"\n": true,
		"NAME AGE  CULPRIT\nvfw  1m3s pod \"fw0-sink-66967654d5-4d55s\"\n": true,
		"NAME AGE  CULPRIT\nvfw  1m3s pod \"fw0-web-66967654d5-x2kzp\"\n":  false,
		"NAME AGE  CULPRIT\nvfw2 1m3s pod \"fw0-sink-66967654d5-x2kzp\"\n": false,
		"NAME AGE  CULPRIT\n": false,
	} {
		if diff := shown.difference(printed); (diff == "") != same {
			t.Errorf("%q is the same: %t, want %t", printed, diff == "", same)
		}
	}
	if diff := (step{}).difference("anything"); diff != "" {
		t.Errorf("where the README shows no output, there is a difference: %s", diff)
	}
}

// TestTheReadmeIsShort checks that the README has at most 150 lines.
func TestTheReadmeIsShort(t *testing.T) {
	const most = 150
	if lines := strings.Count(read(t, "README.md"), "\n"); lines > most {
		t.Errorf("README.md has %d lines, want at most %d", lines, most)
	}
}
