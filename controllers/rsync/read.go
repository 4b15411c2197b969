package rsync

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope/deploy"
)

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
