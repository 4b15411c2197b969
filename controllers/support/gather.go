package support

import (
	"context"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// pageSize is how many objects are read at a time: a bundle may have a megabyte.
const pageSize = 50

// The kinds that are read.
var (
	healthScopes = corev1alpha2.GroupVersion.WithResource("healthscopes")
	bundles      = k8spluginv1alpha1.GroupVersion.WithResource("resourcebundlestates")
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	events       = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	pods         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	secrets      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	leases       = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// versions adds the versions of the program and of the API server.
func (g *gatherer) versions(ctx context.Context) {
	g.archive.add("version.txt", g.options.Version)
	data, err := g.client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		g.archive.problem("the version of the API server", err)
		return
	}
	g.archive.add("server-version.json", string(data))
}

// scopes adds HealthScopes and bundles.
func (g *gatherer) scopes(ctx context.Context) {
	g.list(ctx, "healthscopes.yaml", healthScopes, "", "", tidyMeta)
	g.list(ctx, "resourcebundlestates.yaml", bundles, "", "", tidyBundle)
}

// events adds what Kubernetes has noted about scopes, bundles, the programs and the Secrets of clusters.
func (g *gatherer) events(ctx context.Context) {
	for _, kind := range []string{"HealthScope", k8spluginv1alpha1.ResourceBundleStateKind} {
		g.list(ctx, "events-"+strings.ToLower(kind)+".yaml", events, "", "involvedObject.kind="+kind, tidyMeta)
	}
	for _, namespace := range slices.Compact([]string{g.options.Namespace, g.options.ClustersNamespace}) {
		g.list(ctx, "events-"+namespace+".yaml", events, namespace, "", tidyMeta)
	}
}

// clusters adds the states of clusters, as the controller has published them, and what Secrets say of them without their data.
func (g *gatherer) clusters(ctx context.Context) {
	g.list(ctx, "clusters.yaml", configMaps, g.options.ClustersNamespace, "metadata.name=healthscope-clusters", tidyMeta)
	list, err := g.metadata.Resource(secrets).Namespace(g.options.ClustersNamespace).List(ctx, metav1.ListOptions{LabelSelector: corev1alpha2.LabelClusterKubeconfig + "=true"})
	if err != nil {
		g.archive.problem("which Secrets of clusters there are", err)
		return
	}
	var text strings.Builder
	for i := range list.Items {
		s := &list.Items[i]
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetName(s.Name)
		o.SetCreationTimestamp(s.CreationTimestamp)
		o.SetAnnotations(s.Annotations)
		tidyMeta(o)
		g.encode(&text, "clusters-secrets.yaml", o)
	}
	g.archive.add("clusters-secrets.yaml", text.String())
}

// configurations adds the configuration file that was given, and those in ConfigMaps.
func (g *gatherer) configurations(ctx context.Context) {
	if g.options.Configuration != nil {
		g.configuration("configuration/given.yaml", g.options.Configuration)
	}
	g.each(ctx, "ConfigMaps with configuration files", configMaps, g.options.Namespace, "", func(o *unstructured.Unstructured) bool {
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		for key, text := range data {
			if strings.Contains(text, configv1alpha1.APIVersion) {
				g.configuration("configuration/"+o.GetName()+"-"+key, []byte(text))
			}
		}
		return true
	})
}

// configuration adds a configuration file: what the program reads of it, and not what else may stand there, such as comments.
func (g *gatherer) configuration(name string, data []byte) {
	if err := g.options.Check(data); err != nil {
		g.archive.problem(name+" cannot be used", err)
	}
	var known configv1alpha1.Configuration
	if err := yaml.Unmarshal(data, &known); err != nil {
		g.archive.problem(name, errors.New("left out, because it cannot be read"))
		return
	}
	text, err := yaml.Marshal(&known)
	if err != nil {
		g.archive.problem(name, err)
		return
	}
	g.archive.add(name, string(text))
}

// list adds a file with objects, as one YAML document each, those that tidy has made harmless.
func (g *gatherer) list(ctx context.Context, name string, kind schema.GroupVersionResource, namespace, fields string, tidy func(*unstructured.Unstructured)) {
	var text strings.Builder
	g.each(ctx, name, kind, namespace, fields, func(o *unstructured.Unstructured) bool {
		tidy(o)
		return g.encode(&text, name, o)
	})
	g.archive.add(name, text.String())
}

// encode appends an object to a file, and reports whether there is room for more.
func (g *gatherer) encode(text *strings.Builder, name string, o *unstructured.Unstructured) bool {
	document, err := yaml.Marshal(o.Object)
	if err != nil {
		g.archive.problem(name, err)
		return true
	}
	if text.Len()+len(document) > maxFile {
		g.archive.problem(name, errors.Errorf("there are more than the %d MiB that are kept", maxFile>>20))
		return false
	}
	text.WriteString("---\n")
	text.Write(document)
	return true
}

// each calls do for each object of a kind in a namespace, or in all, until it returns false.
func (g *gatherer) each(ctx context.Context, what string, kind schema.GroupVersionResource, namespace, fields string, do func(*unstructured.Unstructured) bool) {
	o := metav1.ListOptions{Limit: pageSize, FieldSelector: fields}
	for {
		page, err := g.objects.Resource(kind).Namespace(namespace).List(ctx, o)
		if err != nil {
			g.archive.problem(what, err)
			return
		}
		for i := range page.Items {
			if !do(&page.Items[i]) {
				return
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return
		}
	}
}
