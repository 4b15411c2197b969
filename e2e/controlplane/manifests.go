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
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns the fields that the launcher applies.
const fieldManager = "healthscope-controlplane"

// discoveryInterval is the time between two looks at the list of kinds.
const discoveryInterval = 50 * time.Millisecond

var (
	crdKind       = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	crdResource   = schema.GroupVersionResource{Group: crdKind.Group, Version: "v1", Resource: "customresourcedefinitions"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
)

// InstallManifests applies manifests (server-side, with force): paths are files with YAML or JSON documents and
// directories, of which the files *.yaml, *.yml and *.json are taken without those in subdirectories. CRDs go first, then
// namespaces, then the rest as it comes. Objects without a namespace that need one go to "default". When it returns, the
// CRDs are established and clients discover their kinds.
func (cp *ControlPlane) InstallManifests(ctx context.Context, paths ...string) error {
	var objects []*unstructured.Unstructured
	for _, path := range paths {
		found, err := readManifests(path)
		if err != nil {
			return err
		}
		objects = append(objects, found...)
	}
	ctx, cancel := bounded(ctx, installTimeout)
	defer cancel()
	return cp.apply(ctx, objects)
}

// apply applies the objects in the order of InstallManifests.
func (cp *ControlPlane) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(cp.config)
	if err != nil {
		return fmt.Errorf("cannot apply manifests: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(cp.config)
	if err != nil {
		return fmt.Errorf("cannot apply manifests: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))
	ordered := slices.Clone(objects)
	slices.SortStableFunc(ordered, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	firstOther := slices.IndexFunc(ordered, func(object *unstructured.Unstructured) bool { return rank(object) > 0 })
	if firstOther < 0 {
		firstOther = len(ordered)
	}
	crds, others := ordered[:firstOther], ordered[firstOther:]
	for _, crd := range crds {
		if err := applyObject(ctx, client, mapper, crd); err != nil {
			return err
		}
	}
	for _, crd := range crds {
		if err := cp.awaitCRD(ctx, mapper, crd); err != nil {
			return err
		}
	}
	for _, object := range others {
		if err := applyObject(ctx, client, mapper, object); err != nil {
			return err
		}
	}
	return nil
}

// awaitCRD waits until the CRD is established and, which comes later, its kind is among those that clients discover.
// The list of kinds cannot be watched.
func (cp *ControlPlane) awaitCRD(ctx context.Context, mapper meta.ResettableRESTMapper, crd *unstructured.Unstructured) error {
	var kind schema.GroupKind
	err := cp.await(ctx, crdResource, "", crd.GetName(), func(crd *unstructured.Unstructured) bool {
		kind.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
		kind.Kind, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "kind")
		return hasCondition(crd, "Established")
	})
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, discoveryInterval, requestTimeout, true, func(context.Context) (bool, error) {
		_, err := mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			mapper.Reset()
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("cannot discover kind %q of CRD %q: %w", kind.Kind, crd.GetName(), err)
	}
	return nil
}

// rank orders objects: what others depend on has a lower one.
func rank(object *unstructured.Unstructured) int {
	switch object.GroupVersionKind().GroupKind() {
	case crdKind:
		return 0
	case namespaceKind:
		return 1
	default:
		return 2
	}
}

func applyObject(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("cannot apply %s %q: %w", kind.Kind, object.GetName(), err)
	}
	resource := dynamic.ResourceInterface(client.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := object.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		resource = client.Resource(mapping.Resource).Namespace(namespace)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := resource.Apply(ctx, object.GetName(), object, options); err != nil {
		return fmt.Errorf("cannot apply %s %q: %w", kind.Kind, object.GetName(), err)
	}
	return nil
}

// readManifests reads the objects in a file, or in the files of a directory in the order of their names.
func readManifests(path string) ([]*unstructured.Unstructured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = manifestFiles(path); err != nil {
			return nil, err
		}
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read manifests: %w", err)
		}
		decoded, err := decodeManifests(file, content)
		if err != nil {
			return nil, err
		}
		objects = append(objects, decoded...)
	}
	return objects, nil
}

// manifestFiles lists the manifests in a directory. A directory without any is an error: it is not what was meant.
func manifestFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	var files []string
	for _, entry := range entries {
		extension := strings.ToLower(filepath.Ext(entry.Name()))
		isManifest := slices.Contains([]string{".yaml", ".yml", ".json"}, extension)
		if isManifest && !entry.IsDir() && entry.Name() != "kustomization.yaml" {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("cannot read manifests: no *.yaml, *.yml or *.json in directory %q", dir)
	}
	return files, nil
}

// decodeManifests decodes the YAML or JSON documents of a file; empty ones are skipped.
func decodeManifests(file string, content []byte) ([]*unstructured.Unstructured, error) {
	const bufferSize = 4096 // How far the decoder looks ahead to tell JSON from YAML.
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), bufferSize)
	var objects []*unstructured.Unstructured
	for {
		var fields map[string]any
		if err := decoder.Decode(&fields); err != nil {
			if errors.Is(err, io.EOF) {
				return objects, nil
			}
			return nil, fmt.Errorf("cannot decode manifest %q: %w", file, err)
		}
		if len(fields) == 0 {
			continue
		}
		object := &unstructured.Unstructured{Object: fields}
		if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("cannot decode manifest %q: an object lacks apiVersion, kind or metadata.name", file)
		}
		objects = append(objects, object)
	}
}
