package assets

import (
	"os"
	"strings"
	"testing"
)

func TestFindBuildModule(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	module, versions, err := findBuildModule(here)
	if err != nil {
		t.Fatalf("findBuildModule: %v", err)
	}
	if !strings.HasSuffix(module, "/e2e/controlplane/build") {
		t.Errorf("module: %q", module)
	}
	flags, err := versions.linkerFlags()
	if err != nil {
		t.Fatalf("linkerFlags: %v", err)
	}
	if !strings.HasPrefix(flags, "-s -w ") || !strings.Contains(flags, "gitVersion="+versions.Kubernetes+" ") {
		t.Errorf("linker flags: %q", flags)
	}
	outside := t.TempDir()
	if _, _, err := findBuildModule(outside); err == nil || !strings.Contains(err.Error(), outside) {
		t.Errorf("outside of a checkout: want an error that names the directory, got %v", err)
	}
}
