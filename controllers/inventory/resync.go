package inventory

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// AnnotationResync is an annotation of HealthScopes: whenever it gets another value, what A&AI holds of the scope's
// resources is read again and repaired, without waiting for the next resync. The value itself means nothing; by
// convention it is the time of the request, as in reconcile.fluxcd.io/requestedAt.
const AnnotationResync = "healthscope.core.oam.dev/resync-requested-at"

// tenantsOf returns, sorted, where resources of a scope are in A&AI or may be: where its members are, and where what is in its namespace goes, in each of the clusters.
func (i *inputs) tenantsOf(name types.NamespacedName, clusters []string) []aai.Tenant {
	i.mu.Lock()
	defer i.mu.Unlock()
	keys := make([]healthscope.Key, 0, len(clusters))
	for _, cluster := range clusters {
		keys = append(keys, healthscope.Key{Cluster: cluster, Namespace: name.Namespace})
	}
	for _, p := range i.scopes[name].members() {
		keys = append(keys, p.Key)
	}
	found := map[aai.Tenant]bool{}
	for _, key := range keys {
		if place, ok := mapping.KeyFor(key, i.mapping); ok {
			found[place.Tenant] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), aai.Tenant.Compare)
}

// scopeHandlers take what a controller needs of scopes into the inputs. No two controllers take in the same, as one may be
// behind: what is old must not replace what is newer. A controller has taken in all scopes before its first reconcile, as that
// waits for the first events of its sources.
type scopeHandlers[K comparable] struct {
	// changed is called with a scope that exists, and deleted with one that does not any more.
	changed func(*corev1alpha2.HealthScope)
	deleted func(types.NamespacedName)
	// resync is called with a scope for which a resync is asked, and returns what is to be reconciled.
	resync func(types.NamespacedName) []K
}

// events returns the handlers as the handler of a source.
func (h scopeHandlers[K]) events() handler.TypedEventHandler[*corev1alpha2.HealthScope, K] {
	type queue = workqueue.TypedRateLimitingInterface[K]
	return handler.TypedFuncs[*corev1alpha2.HealthScope, K]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1alpha2.HealthScope], _ queue) {
			h.changed(e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1alpha2.HealthScope], q queue) {
			h.changed(e.ObjectNew)
			if value := e.ObjectNew.Annotations[AnnotationResync]; value == "" || value == e.ObjectOld.Annotations[AnnotationResync] {
				return
			}
			for _, key := range h.resync(ctrlclient.ObjectKeyFromObject(e.ObjectNew)) {
				q.Add(key)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1alpha2.HealthScope], _ queue) {
			h.deleted(ctrlclient.ObjectKeyFromObject(e.Object))
		},
	}
}
