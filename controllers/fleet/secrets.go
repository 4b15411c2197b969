package fleet

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// maxClusterName is how long the name of a cluster may be, in bytes: that of a Secret may be as long.
const maxClusterName = 253

// clusterName matches the names that a cluster may have: EMCO's <provider>+<cluster>, whose halves are names, and any one such half.
var clusterName = regexp.MustCompile(`^[A-Za-z0-9]([-+_.A-Za-z0-9]*[A-Za-z0-9])?$`)

// clusterSpec is what a Secret says of a cluster.
type clusterSpec struct {
	// name is the cluster's name.
	name string
	// secret refers to the Secret, for events; nil for the hub's own cluster.
	secret *corev1.ObjectReference
	// kubeconfig is the kubeconfig, and sum its checksum, by which a change is noticed.
	kubeconfig []byte
	sum        [sha256.Size]byte
	// namespaces are those from which data may be read, sorted; none means all.
	namespaces []string
	// labels are the labels of the Secret, as ClusterState has them.
	labels string
	// maintenance is why alerts leave out the cluster.
	maintenance string
	// problem is what is wrong with the Secret besides its kubeconfig; empty when nothing is.
	problem string
}

// sameConnection reports whether one connection fits two specs.
func (w clusterSpec) sameConnection(o clusterSpec) bool {
	return w.sum == o.sum && w.problem == o.problem && slices.Equal(w.namespaces, o.namespaces)
}

// reads reports whether data may be read from a namespace.
func (w clusterSpec) reads(namespace string) bool {
	return len(w.namespaces) == 0 || slices.Contains(w.namespaces, namespace)
}

// rejection is why a Secret stands for no cluster.
type rejection struct {
	secret  *corev1.ObjectReference
	message string
}

// desiredClusters returns the clusters that Secrets ask for, by name, and those Secrets
// that cannot have the name they ask for. local is the name of the hub's own cluster.
// Of two Secrets with one name the older one counts.
func desiredClusters(secrets []*corev1.Secret, local string) (map[string]clusterSpec, []rejection) {
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b *corev1.Secret) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	desired := map[string]clusterSpec{}
	var rejected []rejection
	for _, s := range secrets {
		w := newClusterSpec(s)
		var message string
		switch other, taken := desired[w.name]; {
		case len(w.name) > maxClusterName || !clusterName.MatchString(w.name):
			message = fmt.Sprintf("%q is no name for a cluster: it must begin and end with a letter or digit, and consist of these and - + _ . in between", w.name)
		case w.name == local:
			message = fmt.Sprintf("cluster %q is the controller's own, and needs no kubeconfig", w.name)
		case taken:
			message = fmt.Sprintf("cluster %q is that of Secret %q, which is older", w.name, other.secret.Name)
		default:
			desired[w.name] = w
			continue
		}
		rejected = append(rejected, rejection{w.secret, message})
	}
	return desired, rejected
}

func newClusterSpec(s *corev1.Secret) clusterSpec {
	data, ok := s.Data[corev1alpha2.KubeconfigKey]
	w := clusterSpec{
		name: cmp.Or(s.Annotations[corev1alpha2.AnnotationClusterName], s.Name), kubeconfig: data, sum: sha256.Sum256(data),
		secret:      &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: s.Namespace, Name: s.Name, UID: s.UID},
		labels:      labels.Set(s.Labels).String(),
		maintenance: shortened(s.Annotations[corev1alpha2.AnnotationMaintenance]),
	}
	if !ok {
		w.problem = fmt.Sprintf("the Secret has no key %q", corev1alpha2.KubeconfigKey)
	}
	if list, ok := s.Annotations[corev1alpha2.AnnotationNamespaces]; ok {
		var problem string
		if w.namespaces, problem = namespacesIn(list); problem != "" {
			w.problem = fmt.Sprintf("annotation %q: %s", corev1alpha2.AnnotationNamespaces, problem)
		}
	}
	return w
}

// namespacesIn reads a list of namespaces. A list without any is a mistake, and does not mean all.
func namespacesIn(list string) (namespaces []string, problem string) {
	for namespace := range strings.SplitSeq(list, ",") {
		namespace = strings.TrimSpace(namespace)
		if namespace == "" {
			continue
		}
		if problems := content.IsDNS1123Label(namespace); len(problems) > 0 {
			return nil, fmt.Sprintf("%q is no namespace: %s", shortened(namespace), problems[0])
		}
		namespaces = append(namespaces, namespace)
	}
	if len(namespaces) == 0 {
		return nil, "it names no namespace"
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), ""
}
