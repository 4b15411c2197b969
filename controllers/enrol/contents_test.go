package enrol

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// defaultObjects are the objects that Kubernetes creates in every namespace, in the form of fakeMember.objects.
var defaultObjects = map[string]string{"/v1 serviceaccounts": "default", "/v1 configmaps": "kube-root-ca.crt"}

// fakeMember is the API server of a member, with the kinds of memberResources and the objects of the hub's namespace.
type fakeMember struct {
	// objects are the names by group, version and resource, separated by commas.
	objects map[string]string
	// broken is the end of the paths for which the response is an error.
	broken string
	// listed are the paths of the lists so far.
	listed []string
	// hang, if set, is called for a list. The list then gets no response.
	hang func()
}

// memberResources are the kinds of the member by group and version: the resource, the kind, and its verbs.
var memberResources = map[string][]metav1.APIResource{
	"/v1": {
		apiResource("configmaps", "ConfigMap"), apiResource("events", "Event"), apiResource("persistentvolumeclaims", "PersistentVolumeClaim"),
		apiResource("pods", "Pod"), apiResource("secrets", "Secret"), apiResource("serviceaccounts", "ServiceAccount"), apiResource("services", "Service"),
		{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}},
		{Name: "pods/status", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: "nodes", Kind: "Node", Verbs: metav1.Verbs{"list", "delete"}},
	},
	"apps/v1":                {apiResource("deployments", "Deployment")},
	"batch/v1":               {apiResource("cronjobs", "CronJob")},
	"events.k8s.io/v1":       {apiResource("events", "Event")},
	"example.org/v1":         {apiResource("events", "Event")},
	"metrics.k8s.io/v1beta1": {{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: metav1.Verbs{"get", "list"}}},
}

func apiResource(name, kind string) metav1.APIResource {
	return metav1.APIResource{Name: name, Kind: kind, Namespaced: true, Verbs: metav1.Verbs{"create", "delete", "get", "list"}}
}

// ServeHTTP responds to discovery requests, and to lists of metadata.
func (h *fakeMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Replace(r.URL.Path, "/api/v1", "/apis//v1", 1)
	if h.broken != "" && strings.HasSuffix(r.URL.Path, h.broken) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no right"})
		return
	}
	switch parts := strings.Split(strings.TrimPrefix(path, "/apis/"), "/"); {
	case path == "/api":
		writeJSON(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/apis":
		writeJSON(w, groups())
	case len(parts) == 2:
		writeJSON(w, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: strings.Trim(parts[0]+"/"+parts[1], "/"), APIResources: memberResources[parts[0]+"/"+parts[1]],
		})
	case len(parts) == 5 && parts[3] == MemberNamespace:
		h.listed = append(h.listed, r.URL.Path)
		if !contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") || r.URL.Query().Get("limit") == "" {
			http.Error(w, "more is asked for than is needed", http.StatusBadRequest)
			return
		}
		if h.hang != nil {
			h.hang()
			<-r.Context().Done()
			return
		}
		writeJSON(w, h.page(parts[0]+"/"+parts[1]+" "+parts[4], r))
	default:
		http.NotFound(w, r)
	}
}

func groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, gv := range slices.Sorted(maps.Keys(memberResources)) {
		if group, version, _ := strings.Cut(gv, "/"); group != "" {
			v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
			list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		}
	}
	return list
}

// page returns one object of a kind and, if there are more, a continue token: a server may return fewer objects than the limit.
func (h *fakeMember) page(resource string, r *http.Request) metav1.PartialObjectMetadataList {
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}}
	names := strings.Split(h.objects[resource], ",")
	at := slices.Index(names, r.URL.Query().Get("continue")) + 1
	if name := names[min(at, len(names)-1)]; name != "" {
		list.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: MemberNamespace, Name: name}}}
	}
	if at < len(names)-1 {
		list.Continue = names[at]
	}
	return list
}

// runRemove removes a member that has the hub's namespace. It returns the reported lines, and whether the namespace still
// exists.
func runRemove(ctx context.Context, t *testing.T, h *fakeMember) ([]string, bool, error) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	namespace := &corev1.Namespace{ObjectMeta: managedMeta("", MemberNamespace)}
	var lines []string
	c := Clusters{
		Hub: fake.NewClientBuilder().Build(), Member: fake.NewClientBuilder().WithObjects(namespace).Build(),
		MemberConfig: &rest.Config{Host: server.URL, Timeout: time.Minute}, Report: func(c Change) { lines = append(lines, c.String()) },
	}
	err := Remove(ctx, c, Removal{Cluster: "provider+edge01", SecretNamespace: "healthscope-clusters", Force: true})
	there := c.Member.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace) //nolint:contextcheck // ctx may have ended.
	if client.IgnoreNotFound(there) != nil {
		t.Fatal(there)
	}
	return lines, there == nil, err
}

func TestRemoveDeletesTheNamespaceOnlyWhenItIsEmpty(t *testing.T) {
	const gone, kept = "member: namespace/healthscope-system deleted", "member: namespace/healthscope-system kept: "
	cases := map[string]struct {
		objects map[string]string
		broken  string
		want    string
	}{
		"nothing":                           {nil, "", gone},
		"events":                            {map[string]string{"/v1 events": "a,b", "events.k8s.io/v1 events": "a,b"}, "", gone},
		"what cannot be deleted":            {map[string]string{"metrics.k8s.io/v1beta1 pods": "a"}, "", gone},
		"a Secret":                          {map[string]string{"/v1 secrets": "db"}, "", kept + "it holds secret/db -n healthscope-system"},
		"a Secret of a usual name":          {map[string]string{"/v1 secrets": "default"}, "", kept + "it holds secret/default -n healthscope-system"},
		"a volume":                          {map[string]string{"/v1 persistentvolumeclaims": "data"}, "", kept + "it holds persistentvolumeclaim/data -n healthscope-system"},
		"a Service":                         {map[string]string{"/v1 services": "web"}, "", kept + "it holds service/web -n healthscope-system"},
		"a Deployment":                      {map[string]string{"apps/v1 deployments": "web"}, "", kept + "it holds deployment.apps/web -n healthscope-system"},
		"a CronJob":                         {map[string]string{"batch/v1 cronjobs": "nightly"}, "", kept + "it holds cronjob.batch/nightly -n healthscope-system"},
		"events of another group":           {map[string]string{"example.org/v1 events": "a"}, "", kept + "it holds event.example.org/a -n healthscope-system"},
		"another account":                   {map[string]string{"/v1 serviceaccounts": "default,z"}, "", kept + "it holds serviceaccount/z -n healthscope-system"},
		"a kind that may not be listed":     {nil, "/secrets", kept + "cannot find out whether it is empty: cannot list secrets: no right"},
		"a group that cannot be discovered": {nil, "/apis/metrics.k8s.io/v1beta1", kept + "cannot find out whether it is empty: unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := &fakeMember{objects: maps.Clone(defaultObjects), broken: c.broken}
			maps.Copy(h.objects, c.objects)
			lines, there, err := runRemove(t.Context(), t, h)
			if err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], c.want) || there != (c.want != gone) {
				t.Errorf("reported %q, %v, and the namespace is there: %t; want %q", lines, err, there, c.want)
			}
		})
	}
}

// TestRemoveKeepsTheNamespaceWhenDiscoveryFails checks that Remove returns an error, so that the user can retry.
func TestRemoveKeepsTheNamespaceWhenDiscoveryFails(t *testing.T) {
	lines, there, err := runRemove(t.Context(), t, &fakeMember{broken: "/apis"})
	if err == nil || !contains(err.Error(), `cannot find out whether namespace "healthscope-system" is empty`) || len(lines) > 0 || !there {
		t.Errorf("reported %q, %v, and the namespace is there: %t", lines, err, there)
	}
}

func TestRemoveKeepsTheNamespaceWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lines, there, err := runRemove(ctx, t, &fakeMember{hang: cancel})
	if !errors.Is(err, context.Canceled) || len(lines) > 0 || !there {
		t.Errorf("reported %q, %v, and the namespace is there: %t", lines, err, there)
	}
}

func TestRemoveListsEveryNamespacedKindOnce(t *testing.T) {
	h := &fakeMember{objects: defaultObjects}
	if _, _, err := runRemove(t.Context(), t, h); err != nil {
		t.Fatal(err)
	}
	of := func(root string, resources ...string) (paths []string) {
		for _, r := range resources {
			paths = append(paths, root+"/namespaces/healthscope-system/"+r)
		}
		return paths
	}
	want := slices.Concat(of("/api/v1", "configmaps", "persistentvolumeclaims", "pods", "secrets", "serviceaccounts", "services"),
		of("/apis/apps/v1", "deployments"), of("/apis/batch/v1", "cronjobs"), of("/apis/example.org/v1", "events"))
	slices.Sort(h.listed)
	if diff := cmp.Diff(want, h.listed); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
}
