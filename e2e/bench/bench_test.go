package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/e2e/installation"
)

// programs builds what the benchmarks run.
func programs(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	if err := installation.Build(t.Context(), filepath.Join("..", ".."), bin); err != nil {
		t.Fatal(err)
	}
	return bin
}

// lines shows what a run tells as it goes, in the test's log.
type lines struct{ t *testing.T }

func (l lines) Write(text []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(text)))
	return len(text), nil
}

// TestRun runs everything at a small scale. That results are right is checked by the program itself; how good the figures
// are is not looked at. One goes after the other: beside a benchmark, leaders of a soak may lose their Leases too often to be judged.
func TestRun(t *testing.T) {
	bin := programs(t)
	t.Run("bench", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "results.json")
		var table bytes.Buffer
		if err := run(t.Context(), []string{"--root", "../..", "--bin", bin, "--scale", "0.02", "--json", file}, &table, lines{t}); err != nil {
			t.Fatal(err)
		}
		var got report
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range rowIDs() {
			if !strings.Contains(table.String(), "\n| "+id+" ") {
				t.Errorf("the table has no row %q:\n%s", id, &table)
			}
			i := slices.IndexFunc(got.Rows, func(o outcome) bool { return o.ID == id })
			if i < 0 {
				t.Errorf("the results have no row %q", id)
				continue
			}
			if len(got.Rows[i].Figures) == 0 || len(got.Rows[i].Processes) == 0 {
				t.Errorf("row %q has no figures or no processes: %+v", id, got.Rows[i])
			}
		}
	})
	t.Run("soak", func(t *testing.T) {
		var table bytes.Buffer
		if err := run(t.Context(), []string{"soak", "--root", "../..", "--bin", bin, "--scale", "0.1", "--duration", "2m"}, &table, lines{t}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"| live heap MiB", "| descriptors", "pods changed", "API server restarted", "leader killed: 2", "Lease taken away: 2", "\n| without an explanation "} {
			if !strings.Contains(table.String(), want) {
				t.Errorf("the table says nothing of %q:\n%s", want, &table)
			}
		}
	})
}

func TestCommandLineRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a row that does not exist": {[]string{"--only", "fill,full"}, `invalid value "full" for --only`},
		"a scale of nothing":        {[]string{"--scale", "0"}, "invalid value 0 for --scale"},
		"a scale beyond the table":  {[]string{"--scale", "2"}, "invalid value 2 for --scale"},
		"an argument":               {[]string{"fill"}, `unexpected argument "fill"`},
		"a soak without end":        {[]string{"soak", "--duration", "-1s"}, "invalid value -1s for --duration"},
		"a soak without time":       {[]string{"soak", "--duration", "1s"}, "invalid value 1s for --duration"},
		"a soak without changes":    {[]string{"soak", "--rate", "0"}, "invalid value 0 for --rate"},
		"a seed that is no number":  {[]string{"soak", "--seed", "x"}, "invalid value"},
		"rows of a soak":            {[]string{"soak", "--only", "fill"}, "flag provided but not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), c.args, &out, &out)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}
