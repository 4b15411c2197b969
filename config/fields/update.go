package fields

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// Update writes the tables into the pages of the source tree at root.
func Update(root string) error {
	crds := filepath.Join(root, "config", "crd")
	for page, tablesOf := range map[string]func() (tables, error){
		"healthscope.md": func() (tables, error) {
			return ofKind(filepath.Join(crds, "core.oam.dev_healthscopes.yaml"), reflect.TypeFor[corev1alpha2.HealthScope]())
		},
		"resourcebundlestate.md": func() (tables, error) {
			return ofKind(filepath.Join(crds, "k8splugin.io_resourcebundlestates.yaml"), reflect.TypeFor[k8spluginv1alpha1.ResourceBundleState]())
		},
		"configuration.md": func() (tables, error) {
			return ofConfiguration(filepath.Join(root, "apis", "config", "v1alpha1"))
		},
	} {
		t, err := tablesOf()
		if err != nil {
			return err
		}
		if err := write(filepath.Join(root, "config", "docs", page), t); err != nil {
			return fmt.Errorf("cannot update %q: %w", page, err)
		}
	}
	return nil
}

func write(page string, t tables) error {
	before, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	after, err := update(string(before), t)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(after), 0o644) //nolint:gosec // It is a file of the source tree, which everybody may read.
}
