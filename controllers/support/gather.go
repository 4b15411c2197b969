package support

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

const (
	// pageSize is the number of objects per list request: a bundle may have a size of one megabyte.
	pageSize = 50
	// maxPods limits from how many pods logs and metrics are read.
	maxPods = 20
)

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
	crds         = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// addVersions adds the versions of the program and of the API server.
func (g *gatherer) addVersions(ctx context.Context) {
	g.archive.add("version.txt", g.options.Version)
	data, err := g.client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		g.archive.problem("the version of the API server", err)
		return
	}
	g.archive.add("server-version.json", string(data))
}

// addCRDs adds the CRDs: another project may have installed its own by the same names, without HealthScope's fields.
func (g *gatherer) addCRDs(ctx context.Context) {
	var text strings.Builder
	for _, kind := range []schema.GroupVersionResource{healthScopes, bundles} {
		name := kind.GroupResource().String()
		crd, err := g.objects.Resource(crds).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			g.archive.problem("CRD "+name, err)
			continue
		}
		redactMetadata(crd)
		g.appendYAML(&text, "crds.yaml", crd)
	}
	g.archive.add("crds.yaml", text.String())
}

// addEvents adds the events of scopes and bundles, and all events in the namespaces of the controller, the monitor and the Secrets of clusters.
func (g *gatherer) addEvents(ctx context.Context) {
	for _, kind := range []string{"HealthScope", k8spluginv1alpha1.ResourceBundleStateKind} {
		g.addList(ctx, "events-"+strings.ToLower(kind)+".yaml", events, "", "involvedObject.kind="+kind, redactMetadata)
	}
	for _, namespace := range slices.Compact([]string{g.options.Namespace, g.options.ClustersNamespace}) {
		g.addList(ctx, "events-"+namespace+".yaml", events, namespace, "", redactMetadata)
	}
}

// addClusters adds the states of clusters, as the controller has published them, and the metadata of their Secrets.
func (g *gatherer) addClusters(ctx context.Context) {
	g.addList(ctx, "clusters.yaml", configMaps, g.options.ClustersNamespace, "metadata.name=healthscope-clusters", redactMetadata)
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
		redactMetadata(o)
		g.appendYAML(&text, "clusters-secrets.yaml", o)
	}
	g.archive.add("clusters-secrets.yaml", text.String())
}

// addConfigurations adds the configuration file from the options, and those in ConfigMaps.
func (g *gatherer) addConfigurations(ctx context.Context) {
	if g.options.Configuration != nil {
		g.addConfiguration("configuration/given.yaml", g.options.Configuration)
	}
	g.forEach(ctx, "ConfigMaps with configuration files", configMaps, g.options.Namespace, "", func(o *unstructured.Unstructured) bool {
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		for key, text := range data {
			if strings.Contains(text, configv1alpha1.APIVersion) {
				g.addConfiguration("configuration/"+o.GetName()+"-"+key, []byte(text))
			}
		}
		return true
	})
}

// addConfiguration adds the known fields of a configuration file. It leaves out everything else, such as comments.
func (g *gatherer) addConfiguration(name string, data []byte) {
	if err := g.options.ValidateConfiguration(data); err != nil {
		g.archive.problem(name+" cannot be used", err)
	}
	var config configv1alpha1.Configuration
	if err := yaml.Unmarshal(data, &config); err != nil {
		g.archive.problem(name, errors.New("left out, because it cannot be read"))
		return
	}
	text, err := yaml.Marshal(&config)
	if err != nil {
		g.archive.problem(name, err)
		return
	}
	g.archive.add(name, string(text))
}

// addList adds a file with a YAML document for each object of a kind. It redacts each object first.
func (g *gatherer) addList(ctx context.Context, name string, kind schema.GroupVersionResource, namespace, fields string, redact func(*unstructured.Unstructured)) {
	var text strings.Builder
	g.forEach(ctx, name, kind, namespace, fields, func(o *unstructured.Unstructured) bool {
		redact(o)
		return g.appendYAML(&text, name, o)
	})
	g.archive.add(name, text.String())
}

// appendYAML appends an object to the text of a file, unless the text would exceed maxFileSize. It reports whether more objects may be appended.
func (g *gatherer) appendYAML(text *strings.Builder, name string, o *unstructured.Unstructured) bool {
	document, err := yaml.Marshal(o.Object)
	if err != nil {
		g.archive.problem(name, err)
		return true
	}
	if text.Len()+len(document) > maxFileSize {
		g.archive.problem(name, errors.Errorf("there are more than the %d MiB that are kept", maxFileSize>>20))
		return false
	}
	text.WriteString("---\n")
	text.Write(document)
	return true
}

// forEach calls visit for each object of a kind in a namespace, or in all namespaces if it is empty, until visit returns false.
func (g *gatherer) forEach(ctx context.Context, what string, kind schema.GroupVersionResource, namespace, fields string, visit func(*unstructured.Unstructured) bool) {
	o := metav1.ListOptions{Limit: pageSize, FieldSelector: fields}
	for {
		page, err := g.objects.Resource(kind).Namespace(namespace).List(ctx, o)
		if err != nil {
			g.archive.problem(what, err)
			return
		}
		for i := range page.Items {
			if !visit(&page.Items[i]) {
				return
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return
		}
	}
}

// addComponents adds the Leases, Deployments and pods of the namespace, and the logs and metrics of the pods of controller and monitor. Other pods
// in the namespace receive no token, and their logs are not read.
func (g *gatherer) addComponents(ctx context.Context) {
	namespace := g.options.Namespace
	g.addList(ctx, "leases.yaml", leases, namespace, "", redactMetadata)
	g.addList(ctx, "deployments.yaml", deployments, namespace, "", redactWorkload)
	g.addList(ctx, "pods.yaml", pods, namespace, "", redactWorkload)
	podList, err := g.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: maxPods, LabelSelector: g.options.Selector})
	if err != nil {
		g.archive.problem("logs and metrics of pods", err)
		return
	}
	for i := range podList.Items {
		g.addLogs(ctx, &podList.Items[i])
		g.addMetrics(ctx, &podList.Items[i])
	}
}

// addLogs adds the logs of a pod's containers, and those of their previous instances.
func (g *gatherer) addLogs(ctx context.Context, pod *corev1.Pod) {
	restarted := map[string]bool{}
	for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		restarted[status.Name] = status.RestartCount > 0
	}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		name := "logs/" + pod.Name + "-" + container.Name
		o := corev1.PodLogOptions{Container: container.Name, TailLines: &g.options.LogLines, LimitBytes: new(int64(maxFileSize)), Timestamps: true}
		body, err := g.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &o).Stream(ctx)
		g.addResponse(name+".log", body, err)
		if o.Previous = restarted[container.Name]; o.Previous {
			body, err = g.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &o).Stream(ctx)
			g.addResponse(name+"-previous.log", body, err)
		}
	}
}

// addResponse adds a response body, or records err as a problem.
func (g *gatherer) addResponse(name string, body io.ReadCloser, err error) {
	if err != nil {
		g.archive.problem(name, err)
		return
	}
	defer func() { _ = body.Close() }() // The body has been read.
	data, err := io.ReadAll(io.LimitReader(body, maxFileSize+1))
	if err != nil {
		g.archive.problem(name, err)
	}
	g.archive.add(name, string(data))
}
