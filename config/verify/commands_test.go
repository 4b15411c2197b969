package verify

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/healthscope/healthscope/controllers/app"
)

// commands returns all commands that a user can give, without those that a command of cobra's has below it.
func commands() []*cobra.Command {
	root := app.Command()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var all []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			all = append(all, below)
			if below.Name() != "completion" {
				walk(below)
			}
		}
	}
	walk(root)
	return all
}

func TestCommandsAreDocumented(t *testing.T) {
	p := readPage(t, "commands.md")
	rows := p.rows(t, "command")
	var want []string
	for _, c := range commands() {
		want = append(want, c.CommandPath())
		for _, r := range rows {
			if code(r["command"]) == c.CommandPath() && r["what it does"] != c.Short {
				t.Errorf("%s: the row of %q must say what the program says: %q", p.name, c.CommandPath(), c.Short)
			}
		}
	}
	p.documents(t, "command", want, firstCodes(rows, "command"))
}

func TestFlagsAreDocumented(t *testing.T) {
	p := readPage(t, "commands.md")
	for _, c := range commands() {
		flags := map[string]*pflag.Flag{}
		var want []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || c.Name() == "completion" {
				return
			}
			flags["--"+f.Name] = f
			want = append(want, "--"+f.Name)
		})
		if len(want) == 0 {
			continue
		}
		rows := p.section(t, c.CommandPath()).rows(t, "flag")
		var got []string
		for _, r := range rows {
			got = append(got, code(r["flag"]))
			if f := flags[code(r["flag"])]; f != nil {
				compareFlag(t, p.name+", "+c.CommandPath(), f, r)
			}
		}
		p.documents(t, "flag of "+c.CommandPath(), want, got)
	}
}

func compareFlag(t *testing.T, where string, f *pflag.Flag, r row) {
	t.Helper()
	name, value := "`--"+f.Name+"`", "none"
	if f.Shorthand != "" {
		name += ", `-" + f.Shorthand + "`"
	}
	if f.DefValue != "" {
		value = "`" + f.DefValue + "`"
	}
	for column, want := range map[string]string{"flag": name, "type": f.Value.Type(), "default": value} {
		if r[column] != want {
			t.Errorf("%s: the %s of --%s must be %s; it is %s", where, column, f.Name, want, r[column])
		}
	}
	if !strings.HasPrefix(r["meaning"], f.Usage) {
		t.Errorf("%s: the meaning of --%s must begin as the program says it: %s", where, f.Name, f.Usage)
	}
}

func TestTheExampleOfTheVersionIsTrue(t *testing.T) {
	p := readPage(t, "commands.md").section(t, "healthscope version")
	var out, errOut bytes.Buffer
	if status := app.Main([]string{"version"}, nil, &out, &errOut); status != 0 {
		t.Fatalf("healthscope version exits with %d: %s", status, errOut.String())
	}
	_, example, _ := strings.Cut(p.fences("console")[0], "\n")
	// The go command notes down neither commit nor libraries in the program of a test.
	first, rest, _ := strings.Cut(example, "\n")
	for _, line := range []string{strings.TrimSuffix(out.String(), "\n"), first} {
		if !regexp.MustCompile(`^healthscope \S+ \(go\S+, \w+/\w+\)$`).MatchString(line) {
			t.Errorf("%s: the program prints %q, the example says %q", p.name, out.String(), example)
		}
	}
	commit, libraries, _ := strings.Cut(rest, "\n")
	if !regexp.MustCompile(`^commit [0-9a-f]{40} of \d{4}-\S+Z$`).MatchString(commit) {
		t.Errorf("%s: the example says of the commit %q", p.name, commit)
	}
	required := readFile(t, "go.mod")
	for line := range strings.Lines(libraries) {
		if !strings.Contains(required, "\t"+line) {
			t.Errorf("%s: the example says %q, and go.mod does not", p.name, line)
		}
	}
	var told, want []string
	for line := range strings.Lines(libraries) {
		name, _, _ := strings.Cut(line, " ")
		told = append(told, name)
	}
	for _, e := range literal(t, sources(t, "controllers/app"), "toldLibraries") {
		name, _ := text(e)
		want = append(want, name)
	}
	if !slices.Equal(told, want) {
		t.Errorf("%s: the example tells the versions of %q, and the program those of %q", p.name, told, want)
	}
}
