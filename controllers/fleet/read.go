package fleet

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
)

// ReadAccess returns how to reach each cluster that has a Secret in a namespace of the hub, for a command that does so once.
// What it returns reports false for a cluster that has none, or one that the hub rejects.
func ReadAccess(ctx context.Context, hub client.Reader, namespace, local string) (func(cluster string) (Access, bool), error) {
	var list corev1.SecretList
	if err := hub.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{corev1alpha2.LabelClusterKubeconfig: "true"}); err != nil {
		return nil, errors.Wrapf(err, "cannot list the Secrets of clusters in namespace %q", namespace)
	}
	var secrets []*corev1.Secret
	for i := range list.Items {
		secrets = append(secrets, &list.Items[i])
	}
	desired, _ := desiredClusters(secrets, local)
	all := map[string]Access{}
	for name, spec := range desired {
		config, err := kubeconfig.Parse(spec.kubeconfig)
		if err != nil || spec.problem != "" {
			continue
		}
		http, err := rest.HTTPClientFor(config)
		if err != nil {
			continue
		}
		all[name] = Access{Config: config, Client: http, Namespaces: spec.namespaces}
	}
	return func(cluster string) (Access, bool) {
		access, ok := all[cluster]
		return access, ok
	}, nil
}
