package rsync

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// fieldManager owns the fields that rsync applies.
const fieldManager = client.FieldOwner("healthscope-rsync")

// clusters holds a client for each cluster, as long as the connection is the same.
type clusters struct {
	access func(string) (fleet.Access, bool)

	mu      sync.Mutex
	clients map[string]cluster
}

func newClusters(access func(string) (fleet.Access, bool)) *clusters {
	return &clusters{access: access, clients: map[string]cluster{}}
}

// cluster takes steps in a cluster.
type cluster struct {
	client client.Client
	// watcher watches, without the limit of time that the client's requests have.
	watcher client.WithWatch
	// discovery has room for one: who looks up a kind.
	discovery chan struct{}
	// http is the connection that the client was made for.
	http *http.Client
}

// get returns a cluster. One that is not known may become so, and counts as one without an answer.
func (c *clusters) get(name string) (cluster, error) {
	access, ok := c.access(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ok {
		delete(c.clients, name)
		return cluster{}, errors.Errorf("there is no connection to cluster %q", name)
	}
	if known, ok := c.clients[name]; ok && known.http == access.Client {
		return known, nil
	}
	// The questions of a mapper do not end with a context, so that the client ends them.
	limited := &http.Client{Transport: access.Client.Transport, Timeout: stepTimeout}
	api, err := client.New(rest.CopyConfig(access.Config), client.Options{HTTPClient: limited})
	if err != nil {
		return cluster{}, errors.Wrapf(err, "cannot make a client for cluster %q", name)
	}
	watcher, err := client.NewWithWatch(rest.CopyConfig(access.Config), client.Options{HTTPClient: access.Client, Mapper: api.RESTMapper()})
	if err != nil {
		return cluster{}, errors.Wrapf(err, "cannot make a client for cluster %q", name)
	}
	made := cluster{client: api, watcher: watcher, discovery: make(chan struct{}, 1), http: access.Client}
	c.clients[name] = made
	return made, nil
}

// take takes a step once.
func (c cluster) take(ctx context.Context, p *deploy.Plan, s deploy.Step) error {
	switch s.Verb {
	case deploy.VerbApplyBundle:
		return c.withBundle(ctx, newBundle(p, s.App), c.apply)
	case deploy.VerbApplyHookBundle:
		return c.withBundle(ctx, newHookBundle(p, s.App), c.apply)
	case deploy.VerbDeleteBundle:
		return c.withBundle(ctx, newBundle(p, s.App), c.delete)
	default:
	}
	o, err := c.object(ctx, p, s.App, s.Resource)
	if err != nil {
		return err
	}
	switch s.Verb {
	case deploy.VerbDefine:
		return c.define(ctx, o)
	case deploy.VerbApply:
		if err := c.apply(ctx, o); err != nil || s.Resource.Approval == "" {
			return err
		}
		return c.approve(ctx, o, s.Resource.Approval)
	case deploy.VerbDelete, deploy.VerbDeleteHook:
		return c.delete(ctx, o)
	default:
		return refusalError{errors.Errorf("step %q cannot be taken in a cluster", s.Verb)}
	}
}

// object returns the object of a resource, labelled and in its namespace.
func (c cluster) object(ctx context.Context, p *deploy.Plan, app string, r deploy.Resource) (*unstructured.Unstructured, error) {
	o, err := newObject(r, p.BundleName(app))
	if err != nil {
		return nil, err
	}
	namespaced, err := c.discover(ctx, o)
	if err != nil {
		return nil, err
	}
	return o, place(p, o, namespaced)
}

// withBundle does something with a bundle once its kind is known.
func (c cluster) withBundle(ctx context.Context, bundle *unstructured.Unstructured, do func(context.Context, *unstructured.Unstructured) error) error {
	if _, err := c.discover(ctx, bundle); err != nil {
		return err
	}
	return do(ctx, bundle)
}

// discover looks up the kind of an object, and reports whether it is namespaced. The client's mapper knows no context and
// asks one question after the other, so that steps would wait for all those of a cluster that gives no answer, also when
// they are to end. One question at most is left behind.
func (c cluster) discover(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	select {
	case c.discovery <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	type kind struct {
		namespaced bool
		err        error
	}
	found := make(chan kind, 1)
	go func() {
		defer func() { <-c.discovery }()
		namespaced, err := c.client.IsObjectNamespaced(o)
		found <- kind{namespaced, err}
	}()
	select {
	case k := <-found:
		return k.namespaced, errors.Wrapf(k.err, "cannot find kind %q", o.GetKind())
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// define makes a CRD unless there is one, and fails as without an answer until its kind is served.
func (c cluster) define(ctx context.Context, o *unstructured.Unstructured) error {
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(o.GroupVersionKind())
	err := c.client.Get(ctx, client.ObjectKeyFromObject(o), have)
	if apierrors.IsNotFound(err) {
		if err := c.apply(ctx, o); err != nil {
			return err
		}
		err = c.client.Get(ctx, client.ObjectKeyFromObject(o), have)
	}
	if err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(have.Object, "status", "conditions")
	for _, condition := range conditions {
		if m, ok := condition.(map[string]any); ok && m["type"] == string(apiextensionsv1.Established) && m["status"] == string(metav1.ConditionTrue) {
			return nil
		}
	}
	return errors.Errorf("CRD %q is not established yet", o.GetName())
}

// delete deletes an object if it is there and carries the label of its app, and what is there has not become another one.
func (c cluster) delete(ctx context.Context, o *unstructured.Unstructured) error {
	have := &metav1.PartialObjectMetadata{}
	have.SetGroupVersionKind(o.GroupVersionKind())
	err := c.client.Get(ctx, client.ObjectKeyFromObject(o), have)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case have.Labels[deploymentLabel] != o.GetLabels()[deploymentLabel]:
		return nil // It is another's.
	case have.DeletionTimestamp != nil:
		return nil
	}
	err = c.client.Delete(ctx, o, client.Preconditions{UID: &have.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return client.IgnoreNotFound(err)
}

// notReady reads the objects of an app, judges them, and returns why the app is not Ready; empty when it is.
func (c cluster) notReady(ctx context.Context, p *deploy.Plan, t deploy.Target, judge func([]*unstructured.Unstructured) healthscope.Verdict) (string, error) {
	objects := make([]*unstructured.Unstructured, 0, len(t.Resources))
	for _, r := range t.Resources {
		o, err := c.object(ctx, p, t.App, r)
		if err != nil {
			return "", err
		}
		have := &unstructured.Unstructured{}
		have.SetGroupVersionKind(o.GroupVersionKind())
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(o), have); err != nil {
			return "", err
		}
		objects = append(objects, have)
	}
	for _, m := range judge(objects).Members {
		if m.Counts != healthscope.Ready {
			return fmt.Sprintf("%s/%s is %s: %s", m.Kind, m.Name, m.State, m.Reason), nil
		}
	}
	return "", nil
}
