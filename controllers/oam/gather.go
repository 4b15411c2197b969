package oam

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// workloadKinds are the kinds among which the workload of a component is looked for when status.workloads does not name it, in that order.
var workloadKinds = []schema.GroupVersionKind{
	{Group: "core.oam.dev", Version: "v1alpha2", Kind: "ContainerizedWorkload"},
	{Group: "standard.oam.dev", Version: "v1alpha1", Kind: "PodSpecWorkload"},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
}

var serviceKind = schema.GroupVersionKind{Version: "v1", Kind: "Service"}

// Kinds are the kinds that are read besides HealthScopes.
func Kinds() []schema.GroupVersionKind {
	return append([]schema.GroupVersionKind{Kind, kubevela.ApplicationKind, serviceKind}, workloadKinds...)
}

// metadata is the metadata of the objects of a namespace, by kind, as far as they have been read.
type metadata map[schema.GroupVersionKind][]metav1.PartialObjectMetadata

// objects are those that a decision is about, as they were read for it.
type objects struct {
	// application is the ApplicationConfiguration; nil when it is gone.
	application *unstructured.Unstructured
	scopes      map[string]*corev1alpha2.HealthScope
	services    []metav1.PartialObjectMetadata
}

// gather reads what concerns an ApplicationConfiguration.
func (r *reconciler) gather(ctx context.Context, name types.NamespacedName) (g gathered, read objects, err error) {
	g = gathered{name: name.Name, workloads: map[string]workload{}, scopes: map[string]scopeState{}, labelled: map[string][]string{}}
	application := newObject()
	switch err := r.cached.Get(ctx, name, application); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return g, read, errors.Wrap(err, "cannot get it")
	case application.GetDeletionTimestamp() == nil:
		read.application = application
		if g.components, err = components(application); err != nil {
			// The CRD does not let it be written, so that this is another CRD's: nothing is known of its scopes.
			log.FromContext(ctx).Error(err, "Cannot read the scopes of an ApplicationConfiguration")
		}
	}
	var scopes corev1alpha2.HealthScopeList
	if err := r.client.List(ctx, &scopes, client.InNamespace(name.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return g, read, errors.Wrap(err, "cannot list the HealthScopes of its namespace")
	}
	read.scopes = make(map[string]*corev1alpha2.HealthScope, len(scopes.Items))
	for i := range scopes.Items {
		read.scopes[scopes.Items[i].Name], g.scopes[scopes.Items[i].Name] = &scopes.Items[i], readScope(&scopes.Items[i])
	}
	known := metadata{}
	if r.options.LabelServices {
		if read.services, err = r.list(ctx, known, serviceKind, name.Namespace); err != nil {
			return g, read, err
		}
		for i := range read.services {
			g.labelled[read.services[i].Name] = labelledBy(&read.services[i], fieldManager(name.Name))
		}
	}
	for _, c := range g.components {
		w, err := r.find(ctx, known, name, c)
		if err != nil {
			return g, read, err
		}
		if w != nil {
			g.workloads[c.name] = *w
		}
	}
	return g, read, nil
}

// find returns the workload of a component; nil when it is not there yet.
func (r *reconciler) find(ctx context.Context, known metadata, application types.NamespacedName, c component) (*workload, error) {
	ref := c.workload
	if ref == nil {
		var err error
		if ref, err = r.lookFor(ctx, known, application, c.name); ref == nil || err != nil {
			return nil, err
		}
	}
	w := &workload{reference: *ref}
	if !r.options.LabelServices {
		return w, nil
	}
	named, err := r.servicesOf(ctx, *ref, application.Namespace)
	if err != nil {
		return nil, err
	}
	for _, s := range known[serviceKind] {
		if isOf(s, application.Name, c.name) || s.Name == c.name || slices.Contains(named, s.Name) {
			w.services = append(w.services, s.Name)
		}
	}
	return w, nil
}

// lookFor looks for the workload of a component by its labels, and then by its name.
func (r *reconciler) lookFor(ctx context.Context, known metadata, application types.NamespacedName, component string) (*reference, error) {
	for _, matches := range []func(metav1.PartialObjectMetadata) bool{
		func(o metav1.PartialObjectMetadata) bool { return isOf(o, application.Name, component) },
		func(o metav1.PartialObjectMetadata) bool { return o.Name == component },
	} {
		for _, kind := range workloadKinds {
			objects, err := r.list(ctx, known, kind, application.Namespace)
			if err != nil {
				return nil, err
			}
			if at := slices.IndexFunc(objects, matches); at >= 0 {
				return &reference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: objects[at].Name}, nil
			}
		}
	}
	return nil, nil
}

// isOf reports whether an object has the labels that OAM's runtimes give to what belongs to a component.
func isOf(o metav1.PartialObjectMetadata, application, component string) bool {
	return o.Labels[corev1alpha2.LabelApplication] == application && o.Labels[corev1alpha2.LabelComponent] == component
}

// servicesOf returns the names of the Services that a workload of OAM names in status.resources.
func (r *reconciler) servicesOf(ctx context.Context, ref reference, namespace string) ([]string, error) {
	if !slices.Contains(workloadKinds[:2], ref.gvk()) {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(ref.gvk())
	err := r.live.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"metadata.name": ref.Name})
	if isNotServed(err) {
		return nil, nil
	}
	if err != nil || len(list.Items) == 0 {
		return nil, errors.Wrapf(err, "cannot list %s %q", ref.Kind, ref.Name)
	}
	var names []string
	resources, _, _ := unstructured.NestedSlice(list.Items[0].Object, "status", "resources") // What has another form names nothing.
	for _, item := range resources {
		entry, _ := item.(map[string]any)
		if name, ok := entry["name"].(string); ok && entry["kind"] == "Service" && entry["apiVersion"] == "v1" {
			names = append(names, name)
		}
	}
	return names, nil
}

// list returns the metadata of the objects of a kind in a namespace, which it reads once; none when the kind is not served.
func (r *reconciler) list(ctx context.Context, known metadata, kind schema.GroupVersionKind, namespace string) ([]metav1.PartialObjectMetadata, error) {
	if objects, ok := known[kind]; ok {
		return objects, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := r.live.List(ctx, list, client.InNamespace(namespace)); err != nil && !isNotServed(err) {
		return nil, errors.Wrapf(err, "cannot list objects of kind %s", kind.Kind)
	}
	slices.SortFunc(list.Items, func(a, b metav1.PartialObjectMetadata) int { return strings.Compare(a.Name, b.Name) })
	known[kind] = list.Items
	return list.Items, nil
}

// isNotServed reports whether an error says that a kind is not served.
func isNotServed(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// labelledBy returns the scopes whose label a field manager has set on a Service.
func labelledBy(service *metav1.PartialObjectMetadata, manager string) []string {
	var scopes []string
	for _, entry := range service.ManagedFields {
		if entry.Manager != manager || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels map[string]any `json:"f:labels"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for key := range fields.Metadata.Labels {
			if scope, ok := strings.CutPrefix(key, "f:"+corev1alpha2.LabelScopePrefix); ok {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes
}
