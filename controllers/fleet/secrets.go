package fleet

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
)

// maxClusterName is the maximum length of a cluster's name in bytes, which is that of a Secret's name.
const maxClusterName = 253

// clusterName matches valid names of clusters: EMCO's <provider>+<cluster>, and a single name.
var clusterName = regexp.MustCompile(`^[A-Za-z0-9]([-+_.A-Za-z0-9]*[A-Za-z0-9])?$`)

// clusterSpec is the specification of a cluster in its Secret.
type clusterSpec struct {
	// name is the cluster's name.
	name string
	// secret refers to the Secret, for events; nil for the hub's own cluster.
	secret *corev1.ObjectReference
	// kubeconfig is the kubeconfig, and checksum its checksum, which detects changes.
	kubeconfig []byte
	checksum   [sha256.Size]byte
	// namespaces are the namespaces from which data may be read, sorted; empty means all.
	namespaces []string
	// labels are the labels of the Secret, in the form of ClusterState.Labels.
	labels string
	// maintenance is why alerts leave out the cluster; empty when they do not.
	maintenance string
	// problem is what is wrong with the Secret apart from the content of its kubeconfig; empty when nothing is.
	problem string
}

// sameConnection reports whether two specs can share a connection.
func (s clusterSpec) sameConnection(o clusterSpec) bool {
	return s.checksum == o.checksum && s.problem == o.problem && slices.Equal(s.namespaces, o.namespaces)
}

// renewedToken returns the token of the spec if it differs from the other spec only in its token; otherwise it returns an empty string.
func (s clusterSpec) renewedToken(o clusterSpec) string {
	if s.problem != "" || o.problem != "" || !slices.Equal(s.namespaces, o.namespaces) {
		return ""
	}
	token, err := kubeconfig.Token(s.kubeconfig)
	if err != nil {
		return ""
	}
	before, err := kubeconfig.WithToken(o.kubeconfig, token)
	if err != nil {
		return ""
	}
	if after, err := kubeconfig.WithToken(s.kubeconfig, token); err != nil || !bytes.Equal(before, after) {
		return ""
	}
	return token
}

// reads reports whether data may be read from a namespace.
func (s clusterSpec) reads(namespace string) bool {
	return Access{Namespaces: s.namespaces}.Reads(namespace)
}

// desiredClusters returns the specs of the clusters of Secrets, by name, and the Secrets
// that cannot have the name they request. local is the name of the hub's own cluster.
// Of two Secrets with the same name the older one gets it.
func desiredClusters(secrets []*corev1.Secret, local string) (map[string]clusterSpec, []RejectedSecret) {
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b *corev1.Secret) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	desired := map[string]clusterSpec{}
	var rejected []RejectedSecret
	for _, s := range secrets {
		spec := newClusterSpec(s)
		var message string
		switch other, taken := desired[spec.name]; {
		case len(spec.name) > maxClusterName || !clusterName.MatchString(spec.name):
			message = fmt.Sprintf("%q is no name for a cluster: it must begin and end with a letter or digit, and consist of these and - + _ . in between", shortened(spec.name))
		case spec.name == local:
			message = fmt.Sprintf("cluster %q is the controller's own, and needs no kubeconfig", spec.name)
		case taken:
			message = fmt.Sprintf("cluster %q is that of Secret %q, which is older", spec.name, other.secret.Name)
		default:
			desired[spec.name] = spec
			continue
		}
		rejected = append(rejected, RejectedSecret{Name: s.Name, Message: message, secret: *spec.secret})
	}
	return desired, rejected
}

func newClusterSpec(s *corev1.Secret) clusterSpec {
	data, ok := s.Data[corev1alpha2.KubeconfigKey]
	spec := clusterSpec{
		name: cmp.Or(s.Annotations[corev1alpha2.AnnotationClusterName], s.Name), kubeconfig: data, checksum: sha256.Sum256(data),
		secret:      &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: s.Namespace, Name: s.Name, UID: s.UID},
		labels:      labels.Set(s.Labels).String(),
		maintenance: shortened(s.Annotations[corev1alpha2.AnnotationMaintenance]),
	}
	if !ok {
		spec.problem = fmt.Sprintf("the Secret has no key %q", corev1alpha2.KubeconfigKey)
	}
	if list, ok := s.Annotations[corev1alpha2.AnnotationNamespaces]; ok {
		var problem string
		if spec.namespaces, problem = namespacesIn(list); problem != "" {
			spec.problem = fmt.Sprintf("annotation %q: %s", corev1alpha2.AnnotationNamespaces, problem)
		}
	}
	return spec
}

// namespacesIn parses a comma-separated list of namespaces. An empty list is invalid, and does not mean all.
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

// +kubebuilder:rbac:groups="",namespace=healthscope-clusters,resources=secrets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=healthscope-clusters,resources=events,verbs=patch

// secretWatch watches the Secrets with the kubeconfigs of clusters, and no others.
type secretWatch struct {
	cache   cache.Cache
	changed chan struct{}
}

// secretMapper returns a RESTMapper for Secrets that needs no API server, because it may be unreachable when the hub starts.
func secretMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	for _, kind := range []string{"Secret", "SecretList"} { // A cache of several namespaces maps the kind of the list, too.
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return mapper
}

// newSecretWatch returns a watch of the Secrets in a namespace of the manager's cluster, which run starts.
func newSecretWatch(mgr ctrl.Manager, namespace string) (*secretWatch, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: memberScheme, Mapper: secretMapper(), ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Label:      labels.SelectorFromSet(labels.Set{corev1alpha2.LabelClusterKubeconfig: "true"}),
			Namespaces: map[string]cache.Config{namespace: {}},
			Transform:  trimSecret,
		}},
	})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot watch the Secrets of clusters in namespace %q", namespace)
	}
	return &secretWatch{cache: c, changed: make(chan struct{}, 1)}, nil
}

// trimSecret drops the parts of a cluster's Secret that the hub does not need.
func trimSecret(object any) (any, error) {
	s, ok := object.(*corev1.Secret)
	if !ok {
		return object, nil
	}
	kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion, CreationTimestamp: s.CreationTimestamp, Labels: s.Labels, Annotations: s.Annotations,
	}}
	if data, ok := s.Data[corev1alpha2.KubeconfigKey]; ok {
		kept.Data = map[string][]byte{corev1alpha2.KubeconfigKey: data}
	}
	return kept, nil
}

// run calls reconcile with all Secrets once they have been read, and after each change, until ctx ends.
func (s *secretWatch) run(ctx context.Context, reconcile func([]*corev1.Secret)) error {
	informer, err := s.cache.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return errors.Wrap(err, "cannot watch the Secrets of clusters")
	}
	wake := func() {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { wake() }, UpdateFunc: func(any, any) { wake() }, DeleteFunc: func(any) { wake() },
	})
	if err != nil {
		return errors.Wrap(err, "cannot watch the Secrets of clusters")
	}
	ended := make(chan error, 1)
	go func() { ended <- s.cache.Start(ctx) }()
	for changed := registration.HasSyncedChecker().Done(); ; changed = s.changed {
		select {
		case err := <-ended:
			return errors.Wrap(err, "cannot watch the Secrets of clusters")
		case <-changed:
		}
		secrets, err := listSecrets(ctx, s.cache, client.UnsafeDisableDeepCopy)
		switch {
		case ctx.Err() != nil: // The cache is about to end.
		case err != nil: // A failed list must not remove clusters.
			return errors.Wrap(err, "cannot read the Secrets of clusters")
		default:
			reconcile(secrets)
		}
	}
}

// listSecrets lists Secrets.
func listSecrets(ctx context.Context, from client.Reader, options ...client.ListOption) ([]*corev1.Secret, error) {
	var list corev1.SecretList
	if err := from.List(ctx, &list, options...); err != nil {
		return nil, err
	}
	secrets := make([]*corev1.Secret, 0, len(list.Items))
	for i := range list.Items {
		secrets = append(secrets, &list.Items[i])
	}
	return secrets, nil
}

// ReadAccess reads the Secrets in a namespace of the hub once, for a command, and returns a function that returns the Access of
// a cluster. The function reports false for a cluster without a Secret, or with one that the hub rejects.
func ReadAccess(ctx context.Context, hub client.Reader, namespace, local string) (func(cluster string) (Access, bool), error) {
	secrets, err := listSecrets(ctx, hub, client.InNamespace(namespace), client.MatchingLabels{corev1alpha2.LabelClusterKubeconfig: "true"})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot list the Secrets of clusters in namespace %q", namespace)
	}
	desired, _ := desiredClusters(secrets, local)
	all := map[string]Access{}
	for name, spec := range desired {
		config, err := kubeconfig.Parse(spec.kubeconfig)
		if err != nil || spec.problem != "" {
			continue
		}
		if httpClient, err := rest.HTTPClientFor(config); err == nil {
			all[name] = Access{Config: config, Client: httpClient, Namespaces: spec.namespaces}
		}
	}
	return func(cluster string) (Access, bool) {
		access, ok := all[cluster]
		return access, ok
	}, nil
}
