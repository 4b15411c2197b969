package assets

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseVersions(t *testing.T) {
	cases := map[string]struct {
		goMod   string
		want    Versions
		wantErr string
	}{
		"a block, with replacements and comments": {
			goMod: `module example
replace (
	k8s.io/kubernetes => k8s.io/kubernetes v9.9.9
)
require (
	go.etcd.io/etcd/server/v3 v3.7.3
	k8s.io/kubernetes v1.37.2 // the one that counts
	sigs.k8s.io/kwok v0.8.0
	go.etcd.io/etcd/api/v3 v3.0.0 // indirect
)`,
			want: Versions{Kubernetes: "v1.37.2", Etcd: "v3.7.3", Kwok: "v0.8.0"},
		},
		"single lines": {
			goMod: "require k8s.io/kubernetes v1.40.0\nrequire go.etcd.io/etcd/server/v3 v3.7.0\r\nrequire sigs.k8s.io/kwok v0.9.0",
			want:  Versions{Kubernetes: "v1.40.0", Etcd: "v3.7.0", Kwok: "v0.9.0"},
		},
		"one is missing": {
			goMod:   "require (\n k8s.io/kubernetes v1.37.2\n go.etcd.io/etcd/server/v3 v3.7.3\n)",
			wantErr: `version of module "sigs.k8s.io/kwok"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseVersions(tc.goMod)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("want an error with %q, got %v", tc.wantErr, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("parseVersions: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseVersions(f *testing.F) {
	f.Add("require (\n\tk8s.io/kubernetes v1.37.2\n\tgo.etcd.io/etcd/server/v3 v3.7.3\n\tsigs.k8s.io/kwok v0.8.0\n)")
	f.Add("require")
	f.Fuzz(func(t *testing.T, goMod string) {
		versions, err := parseVersions(goMod)
		if err != nil {
			return
		}
		for _, version := range []string{versions.Kubernetes, versions.Etcd, versions.Kwok} {
			if version == "" || !strings.Contains(goMod, version) {
				t.Fatalf("version %q is not in the file", version)
			}
		}
	})
}

func TestFindBuildModuleInThisCheckout(t *testing.T) {
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
}

func TestFindBuildModuleOutsideOfACheckout(t *testing.T) {
	outside := t.TempDir()
	if _, _, err := findBuildModule(outside); err == nil || !strings.Contains(err.Error(), outside) {
		t.Errorf("want an error that names the directory, got %v", err)
	}
}

func TestLinkerFlags(t *testing.T) {
	flags, err := Versions{Kubernetes: "v1.37.2"}.linkerFlags()
	if err != nil {
		t.Fatalf("linkerFlags: %v", err)
	}
	const version = "k8s.io/component-base/version."
	want := "-s -w -X " + version + "gitVersion=v1.37.2 -X " + version + "gitMajor=1 -X " + version + "gitMinor=37"
	if diff := cmp.Diff(want, flags); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := (Versions{Kubernetes: "v1"}).linkerFlags(); err == nil || !strings.Contains(err.Error(), `"v1"`) {
		t.Errorf("want an error that names the version, got %v", err)
	}
}
