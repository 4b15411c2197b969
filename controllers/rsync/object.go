package rsync

import (
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// deploymentLabel ties the objects of an app to its bundle.
const deploymentLabel = k8spluginv1alpha1.LabelDeploymentID

// labelledPaths are where a pod template's labels are: its pods carry the label too.
var labelledPaths = [][]string{
	{"spec", "template"},
	{"spec", "jobTemplate"},
	{"spec", "jobTemplate", "spec", "template"},
}

// newObject reads the object of a resource and labels it. It says nothing of what is in the object but kind and name: it
// may be a Secret.
func newObject(r deploy.Resource, bundle string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(r.Body), &o.Object); err != nil || o.Object == nil {
		return nil, refusalError{errors.Errorf("resource %q is not an object in YAML or JSON", r.Name)}
	}
	if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
		return nil, refusalError{errors.Errorf("resource %q has apiVersion %q, kind %q and metadata.name %q: none may be empty", r.Name, o.GetAPIVersion(), o.GetKind(), o.GetName())}
	}
	label(o.Object, bundle)
	for _, path := range labelledPaths {
		if template, found, err := unstructured.NestedMap(o.Object, path...); found && err == nil {
			label(template, bundle)
			if err := unstructured.SetNestedMap(o.Object, template, path...); err != nil {
				return nil, refusalError{errors.Wrapf(err, "cannot label %q", r.Name)}
			}
		}
	}
	return o, nil
}

// label adds the label to what has metadata.
func label(object map[string]any, bundle string) {
	metadata, _, _ := unstructured.NestedMap(object, "metadata")
	if metadata == nil {
		metadata = map[string]any{}
	}
	labels, _ := metadata["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
	}
	labels[deploymentLabel] = bundle
	metadata["labels"] = labels
	object["metadata"] = metadata
}

// newBundle returns the bundle of an app, as EMCO makes it, without a status.
func newBundle(p *deploy.Plan, app string) *unstructured.Unstructured {
	name := p.BundleName(app)
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind))
	o.SetName(name)
	o.SetNamespace(p.Namespace)
	o.SetLabels(map[string]string{deploymentLabel: name})
	o.Object["spec"] = map[string]any{"selector": map[string]any{"matchLabels": map[string]any{deploymentLabel: name}}}
	return o
}

// newHookBundle returns the bundle of an app's pre-install hooks, which EMCO marks: it says nothing of the app.
func newHookBundle(p *deploy.Plan, app string) *unstructured.Unstructured {
	o := newBundle(p, app)
	labels := o.GetLabels()
	labels[k8spluginv1alpha1.LabelPreInstallHook] = "true"
	o.SetLabels(labels)
	return o
}

// levelAdministrator is the level of a context that may touch all namespaces and objects of the whole cluster, as of EMCO's
// logical clouds.
const levelAdministrator = "0"

// place gives an object of a plan its namespace, and refuses places that the plan's logical cloud may not touch.
func place(p *deploy.Plan, o *unstructured.Unstructured, namespaced bool) error {
	what := fmt.Sprintf("%s %q", o.GetKind(), o.GetName())
	switch {
	case !namespaced && p.Level != levelAdministrator:
		return refusalError{errors.Errorf("%s is of the whole cluster, and the context has level %q: only level %q may touch it", what, p.Level, levelAdministrator)}
	case !namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(p.Namespace)
	case o.GetNamespace() != p.Namespace && p.Level != levelAdministrator:
		return refusalError{errors.Errorf("%s is in namespace %q, and the context has level %q: it may touch namespace %q only", what, o.GetNamespace(), p.Level, p.Namespace)}
	}
	return nil
}
