package fleet

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// +kubebuilder:rbac:groups="",namespace=healthscope-clusters,resources=secrets,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,namespace=healthscope-clusters,resources=events,verbs=patch

// secretWatch watches the Secrets with the kubeconfigs of clusters. It asks for no others.
type secretWatch struct {
	cache   cache.Cache
	changed chan struct{}
}

// secretMapper knows Secrets without asking the API server, which may be away when the hub starts.
func secretMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	for _, kind := range []string{"Secret", "SecretList"} { // A cache of several namespaces asks for the kind of the list, too.
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return mapper
}

// newSecretWatch prepares to watch the Secrets in a namespace of the manager's cluster.
func newSecretWatch(mgr ctrl.Manager, scheme *runtime.Scheme, namespace string) (*secretWatch, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: scheme, Mapper: secretMapper(), ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Label:      labels.SelectorFromSet(labels.Set{corev1alpha2.LabelClusterKubeconfig: "true"}),
			Namespaces: map[string]cache.Config{namespace: {}},
			Transform:  keepKubeconfig,
		}},
	})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot watch the Secrets of clusters in namespace %q", namespace)
	}
	return &secretWatch{cache: c, changed: make(chan struct{}, 1)}, nil
}

// keepKubeconfig drops what is of no use in the Secret of a cluster.
func keepKubeconfig(object any) (any, error) {
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

// run calls reconcile with all Secrets, first when they have been read and then whenever they have changed, until ctx ends.
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
	synced := registration.HasSyncedChecker().Done()
	for {
		select {
		case err := <-ended:
			return errors.Wrap(err, "cannot watch the Secrets of clusters")
		case <-synced:
			synced = nil
			wake()
		case <-s.changed:
			if !registration.HasSynced() || ctx.Err() != nil {
				continue
			}
			secrets, err := s.list(ctx)
			if err != nil && ctx.Err() == nil { // Nothing must be taken for removed that was not read.
				return errors.Wrap(err, "cannot read the Secrets of clusters")
			}
			reconcile(secrets)
		}
	}
}

// list returns all Secrets.
func (s *secretWatch) list(ctx context.Context) ([]*corev1.Secret, error) {
	var list corev1.SecretList
	if err := s.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	secrets := make([]*corev1.Secret, 0, len(list.Items))
	for i := range list.Items {
		secrets = append(secrets, &list.Items[i])
	}
	return secrets, nil
}
