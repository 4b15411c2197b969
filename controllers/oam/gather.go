package oam

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// oamKinds are OAM's own kinds of workloads, whose status names the objects that they create.
var oamKinds = []schema.GroupVersionKind{
	{Group: "core.oam.dev", Version: "v1alpha2", Kind: "ContainerizedWorkload"},
	{Group: "standard.oam.dev", Version: "v1alpha1", Kind: "PodSpecWorkload"},
}

var serviceKind = schema.GroupVersionKind{Version: "v1", Kind: "Service"}

// workloadKinds returns the kinds among which the workload of a component is searched for when status.workloads does not name it,
// in order of preference.
func workloadKinds() []schema.GroupVersionKind {
	kinds := slices.Clone(oamKinds)
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		kinds = append(kinds, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind})
	}
	return kinds
}

// Kinds returns the kinds that the manager's client reads and writes besides HealthScopes.
func Kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{ApplicationConfigurationKind, kubevela.ApplicationKind, serviceKind}
}

// gathered holds the objects that concern an ApplicationConfiguration.
type gathered struct {
	name types.NamespacedName
	// application is the ApplicationConfiguration; nil when it is gone, or about to go.
	application *unstructured.Unstructured
	components  []component
	// scopes are the existing scopes that the components name or that have references for the ApplicationConfiguration, by name.
	scopes map[string]*corev1alpha2.HealthScope
	// services are all Services of the namespace, sorted by name; none if they are not to be labelled.
	services []*watchedObject
}

// gather reads the objects that concern an ApplicationConfiguration.
func (r *reconciler) gather(ctx context.Context, name types.NamespacedName) (g gathered, err error) {
	g = gathered{name: name, services: r.watches.list(serviceKind, name.Namespace, func(*watchedObject) bool { return true })}
	application := newObject(ApplicationConfigurationKind)
	switch err := r.cached.Get(ctx, name, application); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return g, errors.Wrap(err, "cannot get it")
	case application.GetDeletionTimestamp() == nil:
		g.application = application
		if g.components, err = components(application); err != nil {
			// The project's CRD would have rejected it, so it was written with another CRD: its scopes are not known.
			log.FromContext(ctx).Error(err, "Cannot read the scopes of an ApplicationConfiguration")
		}
	}
	for i := range g.components {
		r.findWorkload(g, &g.components[i])
	}
	g.scopes, err = r.scopes(ctx, name, g.components)
	return g, err
}

// scopes returns the existing scopes that components name, and those that have references for their ApplicationConfiguration.
func (r *reconciler) scopes(ctx context.Context, application types.NamespacedName, declared []component) (map[string]*corev1alpha2.HealthScope, error) {
	var recorded corev1alpha2.HealthScopeList
	err := r.client.List(ctx, &recorded, client.InNamespace(application.Namespace), client.MatchingFields{indexRecorded: application.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, errors.Wrap(err, "cannot list the HealthScopes that have references for it")
	}
	found := map[string]*corev1alpha2.HealthScope{}
	for i := range recorded.Items {
		found[recorded.Items[i].Name] = &recorded.Items[i]
	}
	for _, c := range declared {
		for _, name := range c.scopes {
			if found[name] != nil {
				continue
			}
			scope := &corev1alpha2.HealthScope{}
			switch err := r.client.Get(ctx, client.ObjectKey{Namespace: application.Namespace, Name: name}, scope); {
			case err == nil:
				found[name] = scope
			case !apierrors.IsNotFound(err):
				return nil, errors.Wrapf(err, "cannot get HealthScope %q", name)
			}
		}
	}
	return found, nil
}

// findWorkload adds to a component its workload, unless it is known, and its Services. A workload may not exist yet.
func (r *reconciler) findWorkload(g gathered, c *component) {
	if c.workload == nil {
		if c.workload = r.findReference(g.name, c.name); c.workload == nil {
			return
		}
	}
	var named []string
	for _, o := range r.watches.list(kindOf(*c.workload), g.name.Namespace, func(o *watchedObject) bool { return o.name == c.workload.Name }) {
		named = o.services
	}
	for _, s := range g.services {
		if s.belongsTo(g.name.Name, c.name) || s.name == c.name || slices.Contains(named, s.name) {
			c.services = append(c.services, s.name)
		}
	}
}

// findReference searches for the workload of a component by its labels, and then by its name; it returns nil when there is none.
func (r *reconciler) findReference(application types.NamespacedName, component string) *reference {
	for _, matches := range []func(*watchedObject) bool{
		func(o *watchedObject) bool { return o.belongsTo(application.Name, component) },
		func(o *watchedObject) bool { return o.name == component },
	} {
		for _, kind := range workloadKinds() {
			if found := r.watches.list(kind, application.Namespace, matches); len(found) > 0 {
				return &reference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: found[0].name}
			}
		}
	}
	return nil
}
