package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// installTimeout is the timeout of the installation of manifests.
const installTimeout = time.Minute

// InstallManifests installs the objects in files with YAML or JSON documents, and in the files *.yaml of directories,
// without subdirectories. It installs CRDs first, and waits until their kinds can be discovered. Then it applies the other
// objects in their order. Objects that need a namespace and have none go to "default".
func (cp *ControlPlane) InstallManifests(ctx context.Context, paths ...string) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	if _, err := envtest.InstallCRDs(cp.config, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true, MaxTime: installTimeout}); err != nil {
		return fmt.Errorf("cannot install CRDs: %w", err)
	}
	api, err := client.New(cp.config, client.Options{})
	if err != nil {
		return fmt.Errorf("cannot install manifests: %w", err)
	}
	for _, path := range paths {
		objects, err := readManifests(path)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := apply(ctx, api, object); err != nil {
				return fmt.Errorf("cannot apply %s %q of %q: %w", object.GetKind(), object.GetName(), path, err)
			}
		}
	}
	return nil
}

func apply(ctx context.Context, api client.Client, object *unstructured.Unstructured) error {
	namespaced, err := api.IsObjectNamespaced(object)
	if err != nil {
		return err
	}
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return api.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("healthscope-controlplane"), client.ForceOwnership)
}

// readManifests reads the objects, except CRDs, in a file or in the files of a directory.
func readManifests(path string) ([]*unstructured.Unstructured, error) {
	files := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
			return nil, fmt.Errorf("cannot read manifests: %w", err)
		}
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read manifests: %w", err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
		for {
			var object unstructured.Unstructured
			if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("cannot decode %q: %w", file, err)
			}
			if object.Object != nil && !slices.Contains([]string{"CustomResourceDefinition", "Kustomization"}, object.GetKind()) {
				objects = append(objects, &object)
			}
		}
	}
	return objects, nil
}
