package rsync

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// fieldManager owns the fields that rsync applies.
const fieldManager = client.FieldOwner("healthscope-rsync")

// clusters caches a client for each cluster, until the connection changes.
type clusters struct {
	access func(string) (fleet.Access, bool)

	mu      sync.Mutex
	clients map[string]*cluster
}

func newClusters(access func(string) (fleet.Access, bool)) *clusters {
	return &clusters{access: access, clients: map[string]*cluster{}}
}

// cluster takes steps in a cluster.
type cluster struct {
	client client.WithWatch
	// discoveryClient looks up which kinds are served. It does not cache.
	discoveryClient *discovery.DiscoveryClient
	// httpClient is the HTTP client of the connection for which the clients were created.
	httpClient *http.Client
	// slots limits the number of concurrent steps in the cluster. A cluster that does not answer delays no other cluster.
	slots chan struct{}
	// namespaced caches whether a schema.GroupVersionKind is namespaced. lookupSlot bounds lookups of others to one at a time.
	namespaced sync.Map
	lookupSlot chan struct{}
}

// get returns a cluster. The error for an unknown cluster is not a refusal: the cluster may be added later.
func (c *clusters) get(name string) (*cluster, error) {
	access, ok := c.access(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ok {
		delete(c.clients, name)
		return nil, errors.Errorf("there is no connection to cluster %q", name)
	}
	if known, ok := c.clients[name]; ok && known.httpClient == access.Client {
		return known, nil
	}
	created, err := newCluster(access)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot make a client for cluster %q", name)
	}
	c.clients[name] = created
	return created, nil
}

func newCluster(access fleet.Access) (*cluster, error) {
	// The requests of a RESTMapper ignore contexts, so its client needs a timeout.
	timeoutClient := &http.Client{Transport: access.Client.Transport, Timeout: stepTimeout}
	mapper, err := apiutil.NewDynamicRESTMapper(access.Config, timeoutClient)
	if err != nil {
		return nil, err
	}
	api, err := client.NewWithWatch(access.Config, client.Options{HTTPClient: access.Client, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(access.Config, timeoutClient)
	if err != nil {
		return nil, err
	}
	return &cluster{
		client: api, discoveryClient: kinds, httpClient: access.Client,
		slots: make(chan struct{}, maxSteps), lookupSlot: make(chan struct{}, 1),
	}, nil
}

// take takes a step once. Deleting an object of a kind that is not served succeeds: its CRD was deleted, and all objects with it.
// Deleting an object that the context is not allowed to have succeeds too, because it was never applied.
func (c *cluster) take(ctx context.Context, o *objects, s deploy.Step) error {
	m, err := c.manifestOf(ctx, o, s)
	deletes := s.Verb == deploy.VerbDelete || s.Verb == deploy.VerbDeleteHook || s.Verb == deploy.VerbDeleteBundle
	if err == nil && deletes {
		err = c.delete(ctx, m)
	}
	if deletes && (is[notServedError](err) || is[refusalError](err)) {
		return nil
	}
	if err != nil || deletes {
		return err
	}
	switch s.Verb {
	case deploy.VerbDefine:
		return c.define(ctx, m)
	case deploy.VerbApply:
		if s.Resource.Approval == "" {
			return c.apply(ctx, m, m.metadata())
		}
		return c.approve(ctx, m, s.Resource.Approval)
	case deploy.VerbApplyBundle, deploy.VerbApplyHookBundle:
		return c.apply(ctx, m, m.metadata())
	default:
		return refusalError{errors.Errorf("step %q cannot be taken in a cluster", s.Verb)}
	}
}

// manifestOf returns the manifest of the object that a step is about.
func (c *cluster) manifestOf(ctx context.Context, o *objects, s deploy.Step) (*manifest, error) {
	switch s.Verb {
	case deploy.VerbApplyBundle, deploy.VerbApplyHookBundle, deploy.VerbDeleteBundle:
		m, err := newBundle(o.plan, s.App, s.Verb == deploy.VerbApplyHookBundle)
		if err == nil {
			_, err = c.isNamespaced(ctx, m.GroupVersionKind)
		}
		return m, err
	default:
		return c.manifest(ctx, o, s.App, s.Resource)
	}
}

// manifest returns the manifest of a resource.
func (c *cluster) manifest(ctx context.Context, all *objects, app string, r deploy.Resource) (*manifest, error) {
	parsed, err := all.get(app, r)
	if err != nil {
		return nil, err
	}
	namespaced, err := c.isNamespaced(ctx, parsed.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	o := parsed.DeepCopy()
	if err := setNamespace(all.plan, o, namespaced); err != nil {
		return nil, err
	}
	return newManifest(o, all.plan.CorrectDrift)
}

// isNamespaced looks up a kind, and reports whether it is namespaced. It does so in a goroutine, because the client's RESTMapper
// ignores contexts and sends its requests one after the other: in a cluster that does not answer, steps would wait for all lookups,
// even after ctx has ended. At most one lookup is in flight. Callers do not share the result of one that has begun before they
// called: a CRD may have been created since.
func (c *cluster) isNamespaced(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	if namespaced, isKnown := c.namespaced.Load(kind); isKnown {
		return namespaced == true, nil
	}
	select {
	case c.lookupSlot <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	namespaced, found := false, make(chan error, 1)
	go func() {
		defer func() { <-c.lookupSlot }()
		var err error
		if namespaced, err = apiutil.IsGVKNamespaced(kind, c.client.RESTMapper()); err == nil {
			c.namespaced.Store(kind, namespaced)
		}
		found <- err
	}()
	select {
	case err := <-found:
		if meta.IsNoMatchError(err) {
			err = c.explainNotFound(ctx, kind, err)
		}
		return namespaced, errors.Wrapf(err, "cannot find kind %q", kind.Kind)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// explainNotFound returns the reason why a kind was not found, which a RESTMapper does not tell. It returns a notServedError if no
// version of the kind is served, and cause if one is. If that is not known, for example because an aggregated API server does not
// answer, it returns an error that is not a refusal.
func (c *cluster) explainNotFound(ctx context.Context, kind schema.GroupVersionKind, cause error) error {
	served, err := c.isServed(ctx, kind.GroupKind())
	switch {
	case err != nil:
		return errors.Errorf("cannot find out whether kind %q is served: %s", kind.Kind, err.Error())
	case served:
		return cause
	default:
		return notServedError{cause}
	}
}

// isServed reports whether the API server serves a kind in any version. Legacy discovery, unlike aggregated discovery, includes
// versions whose API servers do not answer.
func (c *cluster) isServed(ctx context.Context, kind schema.GroupKind) (bool, error) {
	api := c.discoveryClient.WithLegacyWithContext(ctx)
	versions := []metav1.GroupVersionForDiscovery{{GroupVersion: "v1"}} // The core group is not among the others.
	if kind.Group != "" {
		groups, err := api.ServerGroupsWithContext(ctx)
		if err != nil {
			return false, err
		}
		if len(groups.Groups) == 0 {
			return false, errors.New("the answer has no API group: it is not that of an API server")
		}
		versions = nil
		for _, group := range groups.Groups {
			if group.Name == kind.Group {
				versions = group.Versions
			}
		}
	}
	for _, version := range versions {
		resources, err := api.ServerResourcesForGroupVersionWithContext(ctx, version.GroupVersion)
		switch {
		case err != nil:
			return false, err
		case kind.Group == "" && len(resources.APIResources) == 0: // The client returns no error for a path that is not served.
			return false, errors.New("the answer has no kind of the core group: it is not that of an API server")
		case slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }):
			return true, nil
		}
	}
	return false, nil
}

// define creates a CRD unless it exists, and fails with an error that is retried until its kind is served. The API server does not
// serve a CRD while another CRD has its names: this is a refusal.
func (c *cluster) define(ctx context.Context, m *manifest) error {
	have := m.object()
	err := c.client.Get(ctx, m.ObjectKey, have)
	if isAbsent(err) {
		if err := c.apply(ctx, m, m.metadata()); err != nil {
			return err
		}
		err = c.client.Get(ctx, m.ObjectKey, have)
	}
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(have.Object, crd); err != nil {
		return refusalError{errors.Wrapf(err, "cannot read CRD %q", m.Name)}
	}
	names := apihelpers.FindCRDCondition(crd, apiextensionsv1.NamesAccepted)
	switch {
	case apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established):
		return nil
	case names != nil && names.Status == apiextensionsv1.ConditionFalse:
		return refusalError{errors.Errorf("CRD %q is not established: %s", m.Name, names.Message)}
	default:
		return errors.Errorf("CRD %q is not established yet", m.Name)
	}
}

// delete deletes an object if it exists and carries the label of its app. A precondition protects an object that another one has
// replaced since it was read. delete waits neither for finalizers nor for dependents that are deleted first.
func (c *cluster) delete(ctx context.Context, m *manifest) error {
	have := m.metadata()
	err := c.client.Get(ctx, m.ObjectKey, have)
	switch {
	case isAbsent(err):
		return nil
	case apierrors.IsNotFound(err):
		return c.explainNotFound(ctx, m.GroupVersionKind, err)
	case err != nil:
		return err
	case have.Labels[deploymentLabel] != m.app:
		return nil // It belongs to another app.
	case have.DeletionTimestamp != nil:
		return nil
	}
	err = c.client.Delete(ctx, m.metadata(), client.Preconditions{UID: &have.UID}, client.PropagationPolicy(m.propagation))
	if isAbsent(err) {
		return nil
	}
	return retryableConflict(err)
}

// isAbsent reports whether the API server responds that the object does not exist. The response for a path that is not served, and
// that of another server, has the same code, but does not mean that the object is absent.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err)
}

// read returns an object that a context names, in JSON. It refuses Secrets, because users with access to etcd need not have the
// right to read Secrets.
func (c *cluster) read(ctx context.Context, p *deploy.Plan, r deploy.Resource) ([]byte, error) {
	o, err := newReference(r)
	if err != nil {
		return nil, err
	}
	if o.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		return nil, refusalError{errors.Errorf("Secret %q is not read: its values would be in etcd", o.GetName())}
	}
	namespaced, err := c.isNamespaced(ctx, o.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := setNamespace(p, o, namespaced); err != nil {
		return nil, err
	}
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return nil, err
	}
	o.SetManagedFields(nil)
	return o.MarshalJSON()
}

// newReference parses a resource of a context that is to be read. Instead of an object, it holds the kind, name and namespace of
// one.
func newReference(r deploy.Resource) (*unstructured.Unstructured, error) {
	var reference struct {
		GVK       schema.GroupVersionKind
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	}
	if err := yaml.Unmarshal([]byte(r.Body), &reference); err != nil {
		return nil, refusalError{errors.Errorf("resource %q does not name an object in JSON", r.Name)}
	}
	if reference.GVK.Version == "" || reference.GVK.Kind == "" || reference.Name == "" {
		return nil, refusalError{errors.Errorf("resource %q has GVK.Version %q, GVK.Kind %q and name %q: none may be empty", r.Name, reference.GVK.Version, reference.GVK.Kind, reference.Name)}
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(reference.GVK)
	o.SetName(reference.Name)
	o.SetNamespace(reference.Namespace)
	return o, nil
}
