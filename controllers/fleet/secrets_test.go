package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// secretOf returns the Secret of a cluster with an age in minutes.
func secretOf(name, cluster string, age int) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Duration(age) * time.Minute)), Annotations: map[string]string{}},
		Data:       map[string][]byte{corev1alpha2.KubeconfigKey: []byte("kubeconfig of " + name)},
	}
	if cluster != "" {
		s.Annotations[corev1alpha2.AnnotationClusterName] = cluster
	}
	return s
}

func TestDesiredClusters(t *testing.T) {
	t.Parallel()
	with := func(s *corev1.Secret, annotation, value string) *corev1.Secret {
		s.Annotations[annotation] = value
		return s
	}
	labelled := secretOf("edge01", "", 1)
	labelled.Labels = map[string]string{"tenant": "a", "example.org/site": "graz"}
	empty := secretOf("edge01", "", 1)
	empty.Data = nil
	type want struct{ secret, namespaces, maintenance, problem, labels string }
	cases := map[string]struct {
		secrets  []*corev1.Secret
		want     map[string]want
		rejected []string
	}{
		"the name of the Secret":        {secrets: []*corev1.Secret{secretOf("edge01", "", 1)}, want: map[string]want{"edge01": {secret: "edge01"}}},
		"a name by annotation":          {secrets: []*corev1.Secret{secretOf("a", "provider+edge01", 1)}, want: map[string]want{"provider+edge01": {secret: "a"}}},
		"the older one counts":          {secrets: []*corev1.Secret{secretOf("a-young", "edge", 1), secretOf("b-old", "edge", 9)}, want: map[string]want{"edge": {secret: "b-old"}}, rejected: []string{"a-young: cluster \"edge\" is that of Secret \"b-old\", which is older"}},
		"of the same age the first one": {secrets: []*corev1.Secret{secretOf("b", "edge", 1), secretOf("a", "edge", 1)}, want: map[string]want{"edge": {secret: "a"}}, rejected: []string{"b: cluster \"edge\" is that of Secret \"a\""}},
		"the hub's own name":            {secrets: []*corev1.Secret{secretOf("hub", "", 1)}, rejected: []string{"hub: cluster \"hub\" is the controller's own"}},
		"no name":                       {secrets: []*corev1.Secret{secretOf("a", "edge 01", 1), secretOf("b", "+x", 1), secretOf("c", strings.Repeat("x", 254), 1)}, rejected: []string{"a: \"edge 01\" is no name", "b: \"+x\" is no name", "c: \"xxx"}},
		"namespaces":                    {secrets: []*corev1.Secret{with(secretOf("a", "", 1), corev1alpha2.AnnotationNamespaces, " shop,back , shop,")}, want: map[string]want{"a": {secret: "a", namespaces: "back shop"}}},
		"no namespaces at all":          {secrets: []*corev1.Secret{with(secretOf("a", "", 1), corev1alpha2.AnnotationNamespaces, " ")}, want: map[string]want{"a": {secret: "a", problem: "it names no namespace"}}},
		"a namespace that is none":      {secrets: []*corev1.Secret{with(secretOf("a", "", 1), corev1alpha2.AnnotationNamespaces, "shop,*")}, want: map[string]want{"a": {secret: "a", problem: `"*" is no namespace`}}},
		"maintenance":                   {secrets: []*corev1.Secret{with(secretOf("a", "", 1), corev1alpha2.AnnotationMaintenance, "new disks")}, want: map[string]want{"a": {secret: "a", maintenance: "new disks"}}},
		"labels":                        {secrets: []*corev1.Secret{labelled}, want: map[string]want{"edge01": {secret: "edge01", labels: "example.org/site=graz,tenant=a"}}},
		"no kubeconfig":                 {secrets: []*corev1.Secret{empty}, want: map[string]want{"edge01": {secret: "edge01", problem: `no key "kubeconfig"`}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desired, rejected := desiredClusters(tc.secrets, "hub")
			if len(desired) != len(tc.want) {
				t.Errorf("got %d clusters, want %d", len(desired), len(tc.want))
			}
			for cluster, want := range tc.want {
				w := desired[cluster]
				got := want
				got.secret, got.namespaces, got.maintenance, got.labels = w.secret.Name, strings.Join(w.namespaces, " "), w.maintenance, w.labels
				if !strings.Contains(w.problem, want.problem) || want.problem == "" && w.problem != "" {
					got.problem = w.problem
				}
				if got != want || w.name != cluster {
					t.Errorf("%s: got %+v, want %+v", cluster, got, want)
				}
			}
			for i, r := range rejected {
				if i >= len(tc.rejected) || !strings.HasPrefix(r.Name+": "+r.Message, tc.rejected[i]) {
					t.Errorf("rejected %s: %s", r.Name, r.Message)
				}
			}
			if len(rejected) != len(tc.rejected) {
				t.Errorf("%d are rejected, want %d", len(rejected), len(tc.rejected))
			}
		})
	}
}

// TestDesiredClustersDoNotDependOnOrder: the order of the Secrets in a list has no effect. Every Secret is either a cluster or
// rejected with the reason.
func TestDesiredClustersDoNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var secrets []*corev1.Secret
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "hub"}), 1, 5, rapid.ID[string]).Draw(t, "secrets") {
			secrets = append(secrets, secretOf(name, rapid.SampledFrom([]string{"", "a", "x", "hub", "?"}).Draw(t, "cluster"), rapid.IntRange(0, 1).Draw(t, "age")))
		}
		desired, rejected := desiredClusters(secrets, "hub")
		if len(desired)+len(rejected) != len(secrets) {
			t.Fatalf("%d Secrets make %d clusters and %d rejections", len(secrets), len(desired), len(rejected))
		}
		slices.Reverse(secrets)
		again, _ := desiredClusters(secrets, "hub")
		if diff := cmp.Diff(desired, again, cmp.AllowUnexported(clusterSpec{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzNamespaces(f *testing.F) {
	for _, seed := range []string{"", "a,b", " a ,,", "A", "*", strings.Repeat("a", 64)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		namespaces, problem := namespacesIn(list)
		if (problem == "") != (len(namespaces) > 0) || !slices.IsSorted(namespaces) {
			t.Errorf("%q: %q, %q", list, namespaces, problem)
		}
		for _, namespace := range namespaces {
			if !strings.Contains(list, namespace) || strings.ContainsAny(namespace, ", \x00") {
				t.Errorf("%q has become %q", list, namespace)
			}
		}
	})
}

func TestTrimSecret(t *testing.T) {
	t.Parallel()
	s := secretOf("a", "edge", 1)
	s.Data["password"] = []byte("open-sesame")
	s.Finalizers, s.ManagedFields = []string{"x/y"}, []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	kept, err := trimSecret(s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(secretOf("a", "edge", 1), kept); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
