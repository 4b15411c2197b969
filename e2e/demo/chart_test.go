package main

import (
	"path/filepath"
	"testing"

	"github.com/healthscope/healthscope/e2e/installation"
)

// TestTheStoryWhereTheChartIsInstalled tells the story with a hub and two edges in which Helm has installed the chart: every
// program runs as its Deployment says, with the rights of its ServiceAccount.
func TestTheStoryWhereTheChartIsInstalled(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	s := settings{once: true, chart: true, bin: t.TempDir()}
	if err := installation.Build(t.Context(), ".", s.bin); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), t.Output(), s); err != nil {
		t.Fatal(err)
	}
}
