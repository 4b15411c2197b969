package commands

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// allCommands returns a command and those below it, without those that cobra adds.
func allCommands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, below := range c.Commands() {
		all = append(all, allCommands(below)...)
	}
	return all
}

func TestEveryHelpHasExamplesThatParse(t *testing.T) {
	t.Parallel()
	left := maps.Clone(examples)
	for _, c := range allCommands(NewCommand())[1:] {
		text := c.Example
		if text == "" {
			t.Errorf("%q has no example", c.CommandPath())
		}
		delete(left, c.CommandPath())
		for line := range strings.Lines(text) {
			words := strings.Fields(line)
			root := NewCommand() // Flags keep their values.
			found, args, err := root.Find(words[1:])
			if err != nil || words[0] != "healthscope" || !strings.HasPrefix(found.CommandPath(), c.CommandPath()) {
				t.Errorf("%q is no example of %q: %v", line, c.CommandPath(), err)
				continue
			}
			if err := found.ParseFlags(args); err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			if err := found.ValidateRequiredFlags(); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("there are examples of commands that do not exist: %q", slices.Collect(maps.Keys(left)))
	}
}

func TestColorFlag(t *testing.T) {
	h := newStatusHub(t)
	const green, red = "\x1b[32mhealthy\x1b[0m", "\x1b[31munhealthy\x1b[0m"
	t.Setenv("NO_COLOR", "1")
	for mode, want := range map[string]bool{"always": true, "never": false, "auto": false} {
		_, out, errOut := runStatus(t, h.URL, "--color", mode)
		if strings.Contains(out, green) != want || strings.Contains(out, red) != want || strings.Contains(out, "\x1b") != want {
			t.Errorf("--color %s: %s%s", mode, out, errOut)
		}
	}
}

func TestContextsAreCompleted(t *testing.T) {
	clearKubeconfig(t)
	file := writeFile(t, "kubeconfig", contexts)
	for _, args := range [][]string{
		{"clusters", "add", "x", "--hub-kubeconfig", file, "--hub-context", ""}, {"clusters", "remove", "x", "--hub-kubeconfig", file, "--hub-context", ""},
		{"status", "--kubeconfig", file, "--context", ""}, {"clusters", "--hub-kubeconfig", file, "--hub-context", ""}, {"clusters", "add", "x", "--kubeconfig", file, "--context", ""},
	} {
		code, out, errOut := run(t, append([]string{cobra.ShellCompRequestCmd}, args...)...)
		if code != exitOK || !strings.Contains(out, "\nhub\n") {
			t.Errorf("%q: exit code %d, %s%s", args, code, out, errOut)
		}
	}
	// Without a cluster there are no names, and nothing that a shell would take for one.
	for _, args := range [][]string{{"status", ""}, {"status", "-n", ""}, {"clusters", "remove", ""}} {
		if code, out, _ := run(t, append([]string{cobra.ShellCompRequestCmd}, args...)...); code != exitOK || out != ":4\n" {
			t.Errorf("%q: exit code %d, %s", args, code, out)
		}
	}
}
