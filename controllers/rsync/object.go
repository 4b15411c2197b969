package rsync

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// deploymentLabel connects the objects of an app with its bundle.
const deploymentLabel = k8spluginv1alpha1.LabelDeploymentID

// annotationPropagation is the annotation with which the author of an object requests, with the value Foreground, that the object
// is deleted after its dependents.
const annotationPropagation = "healthscope.core.oam.dev/deletion-propagation"

// podTemplatePaths are the paths of the templates of pods and jobs in an object. Their labels get the label too, so that the pods
// carry it.
var podTemplatePaths = [][]string{
	{"spec", "template"},
	{"spec", "jobTemplate"},
	{"spec", "jobTemplate", "spec", "template"},
}

// manifest is an object as it is sent to a cluster, with its label and namespace.
type manifest struct {
	schema.GroupVersionKind
	client.ObjectKey

	// app is the value of the deploymentLabel.
	app string
	// correctDrift is true when fields that others have set in it are reset.
	correctDrift bool
	// propagation decides when the dependents of the object are deleted.
	propagation metav1.DeletionPropagation
	// data is the complete object in JSON.
	data []byte
}

// newManifest returns the manifest of an object.
func newManifest(o *unstructured.Unstructured, correctDrift bool) (*manifest, error) {
	data, err := o.MarshalJSON()
	if err != nil {
		return nil, refusalError{errors.Wrapf(err, "cannot encode %s %q", o.GetKind(), o.GetName())}
	}
	propagation, err := propagationOf(o)
	if err != nil {
		return nil, refusalError{err}
	}
	return &manifest{
		GroupVersionKind: o.GroupVersionKind(), ObjectKey: client.ObjectKeyFromObject(o), app: o.GetLabels()[deploymentLabel],
		correctDrift: correctDrift, propagation: propagation, data: bytes.TrimSpace(data),
	}, nil
}

// propagationOf returns how the deletion of an object propagates to its dependents. The default is Background.
func propagationOf(o *unstructured.Unstructured) (metav1.DeletionPropagation, error) {
	value, isSet := o.GetAnnotations()[annotationPropagation]
	switch {
	case !isSet:
		return metav1.DeletePropagationBackground, nil
	case value != string(metav1.DeletePropagationForeground):
		return "", errors.Errorf("%s %q has annotation %s %q: it must be %s, or be left out", o.GetKind(), o.GetName(), annotationPropagation, value, metav1.DeletePropagationForeground)
	default:
		return metav1.DeletePropagationForeground, nil
	}
}

// checkPath rejects a name or namespace that is not a path segment: some clients would address another object with it, and others
// would fail without an answer.
func checkPath(o *unstructured.Unstructured) error {
	for _, field := range [][2]string{{"name", o.GetName()}, {"namespace", o.GetNamespace()}} {
		if problems := content.IsPathSegmentName(field[1]); len(problems) > 0 {
			return refusalError{errors.Errorf("%s has metadata.%s %q, which %s", o.GetKind(), field[0], field[1], strings.Join(problems, ", "))}
		}
	}
	return nil
}

// metadata returns an object into which a client reads the metadata.
func (m *manifest) metadata() *metav1.PartialObjectMetadata {
	return withIdentity(m, &metav1.PartialObjectMetadata{})
}

// object returns an object into which a client reads the complete object.
func (m *manifest) object() *unstructured.Unstructured {
	return withIdentity(m, &unstructured.Unstructured{})
}

// withIdentity gives an object the kind, namespace and name of a manifest.
func withIdentity[O client.Object](m *manifest, o O) O {
	o.GetObjectKind().SetGroupVersionKind(m.GroupVersionKind)
	o.SetNamespace(m.Namespace)
	o.SetName(m.Name)
	return o
}

// objects holds the objects of a plan. Most are the same in all clusters, so that each is parsed once.
type objects struct {
	plan *deploy.Plan

	mu sync.Mutex
	// parsed are the objects by app, for the label, and text.
	parsed map[[2]string]func() (*unstructured.Unstructured, error)
}

func newObjects(p *deploy.Plan) *objects {
	return &objects{plan: p, parsed: map[[2]string]func() (*unstructured.Unstructured, error){}}
}

// get returns the object of a resource, which must not be changed.
func (c *objects) get(app string, r deploy.Resource) (*unstructured.Unstructured, error) {
	key := [2]string{app, r.Body}
	c.mu.Lock()
	parse, isKnown := c.parsed[key]
	if !isKnown {
		parse = sync.OnceValues(func() (*unstructured.Unstructured, error) { return newObject(r, c.plan.BundleName(app)) })
		c.parsed[key] = parse
	}
	c.mu.Unlock()
	return parse()
}

// newObject reads the object of a resource and labels it. Its errors quote only apiVersion, kind and name, because the object may
// be a Secret.
func newObject(r deploy.Resource, bundle string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(r.Body), &o.Object); err != nil || o.Object == nil {
		return nil, refusalError{errors.Errorf("resource %q is not an object in YAML or JSON", r.Name)}
	}
	if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
		return nil, refusalError{errors.Errorf("resource %q has apiVersion %q, kind %q and metadata.name %q: none may be empty", r.Name, o.GetAPIVersion(), o.GetKind(), o.GetName())}
	}
	encodeStringData(o)
	addLabel(o.Object, bundle)
	for _, path := range podTemplatePaths {
		if found, _, err := unstructured.NestedFieldNoCopy(o.Object, path...); err == nil {
			if template, ok := found.(map[string]any); ok {
				addLabel(template, bundle)
			}
		}
	}
	return o, nil
}

// encodeStringData moves the stringData of a Secret to data, as the API server does when it stores the Secret. Server-side apply
// knows the owners of data only. With stringData, it would overwrite a value that another manager has set, and keep a value that
// the context no longer has. A Secret whose data cannot be moved stays as it is, and the API server rejects it.
func encodeStringData(o *unstructured.Unstructured) {
	if o.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Secret") {
		return
	}
	texts, found, err := unstructured.NestedStringMap(o.Object, "stringData")
	data, _, malformed := unstructured.NestedMap(o.Object, "data")
	if !found || err != nil || malformed != nil {
		return
	}
	if data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	o.Object["data"] = data
	unstructured.RemoveNestedField(o.Object, "stringData")
}

// addLabel adds the label to the metadata of an object or a template.
func addLabel(object map[string]any, bundle string) {
	for _, field := range []string{"metadata", "labels"} {
		child, _ := object[field].(map[string]any)
		if child == nil {
			child = map[string]any{}
			object[field] = child
		}
		object = child
	}
	object[deploymentLabel] = bundle
}

// bundleName returns the name of a bundle. As in EMCO, it is the value of its label, unless that is not a valid name, for example
// because the name of the app has capitals or underscores. Readers find bundles by the label.
func bundleName(label string) string {
	if len(validation.IsDNS1123Subdomain(label)) == 0 {
		return label
	}
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(label))
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(label)) // It never fails.
	return fmt.Sprintf("%s-%08x", plain, hash.Sum32())
}

// newBundle returns the bundle of an app, as EMCO creates it, without a status. With forPreInstallHooks, the bundle carries EMCO's
// label for bundles of pre-install hooks: its status is not that of the app.
func newBundle(p *deploy.Plan, app string, forPreInstallHooks bool) (*manifest, error) {
	value := p.BundleName(app)
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind))
	o.SetName(bundleName(value))
	o.SetNamespace(p.Namespace)
	labels := map[string]string{deploymentLabel: value}
	if forPreInstallHooks {
		labels[k8spluginv1alpha1.LabelPreInstallHook] = "true"
	}
	o.SetLabels(labels)
	o.Object["spec"] = map[string]any{"selector": map[string]any{"matchLabels": map[string]any{deploymentLabel: value}}}
	return newManifest(o, false)
}

// levelAdministrator is the level of a context that may have objects in all namespaces, and cluster-scoped objects, as in EMCO's
// logical clouds.
const levelAdministrator = "0"

// setNamespace sets the namespace of an object of a plan. It refuses namespaces and cluster-scoped objects that the level of the
// plan does not allow.
func setNamespace(p *deploy.Plan, o *unstructured.Unstructured, namespaced bool) error {
	what := fmt.Sprintf("%s %q", o.GetKind(), o.GetName())
	switch {
	case !namespaced && p.Level != levelAdministrator:
		return refusalError{errors.Errorf("%s is of the whole cluster, and the context has level %q: only level %q may touch it", what, p.Level, levelAdministrator)}
	case !namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(p.Namespace)
	case p.Level != levelAdministrator && o.GetNamespace() != p.Namespace && !slices.Contains(p.Namespaces, o.GetNamespace()):
		may := slices.Concat([]string{p.Namespace}, p.Namespaces)
		return refusalError{errors.Errorf("%s is in namespace %q, and the context has level %q: it may touch namespaces %q only", what, o.GetNamespace(), p.Level, may)}
	}
	return checkPath(o)
}
