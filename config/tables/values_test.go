package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func valuesOf(t *testing.T, text string) (table, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return valuesTable(file)
}

// TestValuesTable checks one value of each kind.
func TestValuesTable(t *testing.T) {
	got, err := valuesOf(t, `# What can be set

# The name
name: ""
image:
  # The tag, of
  # an image
  tag: v1
# The program
program:
  # How many
  replicas: 1
  # What it may take
  limits: {memory: 1Gi, cpu: 1}
`)
	want := table{
		{"value", "default", "meaning"},
		{"`name`", "`\"\"`", "The name."},
		{"`image.tag`", "`\"v1\"`", "The tag, of an image."},
		{"`program`", "", "The program."},
		{"`program.replicas`", "`1`", "How many."},
		{"`program.limits`", "`{\"cpu\":1,\"memory\":\"1Gi\"}`", "What it may take."},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, table (-want +got):\n%s", err, diff)
	}
}

func TestEveryValueHasAComment(t *testing.T) {
	if got, err := valuesOf(t, "image:\n  # The tag\n  tag: v1\n  digest: x\n"); err == nil || !strings.Contains(err.Error(), "image.digest has no comment") {
		t.Errorf("got %v and the error %v", got, err)
	}
}
