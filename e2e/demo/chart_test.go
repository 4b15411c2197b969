package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTheStoryWhereTheChartIsInstalled tells the story with a hub and two edges in which Helm has installed the chart: every
// program runs as its Deployment says, with the rights of its ServiceAccount.
func TestTheStoryWhereTheChartIsInstalled(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	s := settings{once: true, chart: true, bin: t.TempDir()}
	for program, source := range map[string]string{"healthscope": ".", "aai-simulator": "./aai/simulator/cmd/aai-simulator"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(s.bin, program), source)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cannot build %s: %v\n%s", program, err, out)
		}
	}
	if err := run(t.Context(), t.Output(), s); err != nil {
		t.Fatal(err)
	}
}
