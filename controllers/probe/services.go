package probe

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// servicesTolerances are the tolerances for a watch of Services, as for other objects that scopes refer to.
var servicesTolerances = observe.Rules{Grace: time.Minute, CatchUp: 500 * time.Millisecond}

// maxRefusedPause is the longest pause before Services are listed again after the API server has refused it.
const maxRefusedPause = 30 * time.Second

// rightsHint tells how to grant the controller the rights that it needs for probes.
const rightsHint = "probes need rights, namespace by namespace: see config/docs/probes.md"

// clusterNamespace is a namespace of a cluster.
type clusterNamespace struct{ cluster, namespace string }

// serviceWatch watches the Services of a namespace of a cluster.
type serviceWatch struct {
	clusterNamespace

	clusters Clusters
	informer *observe.Informer
	store    *observe.Store[probe.Service]
	stop     context.CancelFunc
	// since is when the watch was created.
	since time.Time

	mu sync.Mutex
	// client is the HTTP client of the current watch; nil before the first one.
	client *http.Client
	// release is called when the objects of the current watch are no longer stored.
	release func()
}

// newServiceWatch returns a watch of the Services of cn. run starts it, and stop must end it.
func (p *Prober) newServiceWatch(cn clusterNamespace, stop context.CancelFunc) *serviceWatch {
	s := &serviceWatch{clusterNamespace: cn, clusters: p.Clusters, stop: stop, since: p.Clock.Now(), release: func() {}}
	changed := func() { p.servicesChanged(cn) }
	toService := func(object any) probe.Service {
		service, ok := object.(*corev1.Service)
		if !ok { // The client returns Services only.
			return probe.Service{}
		}
		return probe.NewService(service)
	}
	s.store = observe.NewStore(toService, func(a, b probe.Service) bool { return reflect.DeepEqual(a, b) }, func(types.NamespacedName, probe.Service, probe.Service) { changed() })
	s.informer = observe.NewInformer(servicesTolerances, observe.InformerOptions{
		TrackedOptions: observe.TrackedOptions{Clock: p.Clock, MaxRetryInterval: maxRefusedPause, Describe: s.describe},
		Open:           s.open, Store: s.store, Changed: func(observe.State) { changed() },
	})
	return s
}

// run watches the Services until ctx ends.
func (s *serviceWatch) run(ctx context.Context) {
	s.informer.Run(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

// open returns a lister and watcher of the Services.
func (s *serviceWatch) open(context.Context) (cache.ListerWatcher, error) {
	access, ok := s.clusters.Access(s.cluster)
	switch {
	case !ok:
		return nil, errors.New("the cluster has not been read yet")
	case !access.Reads(s.namespace):
		return nil, apierrors.NewForbidden(corev1.Resource("services"), "", errors.Errorf("the cluster's Secret does not name namespace %q", s.namespace))
	}
	client, err := corev1client.NewForConfigAndClient(access.Config, access.Client)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
	source, release := access.Meter(cache.NewListWatchFromClient(client.RESTClient(), "services", s.namespace, fields.Everything()))
	s.client, s.release = access.Client, release
	return source, nil
}

// reconnect lists the Services again if the client for their cluster has changed.
func (s *serviceWatch) reconnect() {
	access, ok := s.clusters.Access(s.cluster)
	s.mu.Lock()
	changed := ok && s.client != access.Client
	s.mu.Unlock()
	if changed {
		s.informer.Relist(true)
	}
}

// describe returns a message that tells why the Services cannot be read.
func (s *serviceWatch) describe(reason observe.Reason, err error) string {
	if reason == observe.Forbidden {
		return fmt.Sprintf("the controller may not list and watch Services in namespace %q; %s", s.namespace, rightsHint)
	}
	return fmt.Sprintf("cannot list and watch Services in namespace %q: %s", s.namespace, reason)
}

// unreadable returns why the Services cannot be read or have not been read yet, and whether that is so.
func (s *serviceWatch) unreadable() (probe.Unread, bool) {
	state := s.informer.State()
	u := probe.Unread{Cluster: s.cluster, Problem: state.Message, Since: s.since}
	if state.Status != observe.Problem {
		u.Problem = ""
	}
	return u, state.Status == observe.Problem || !s.store.HasSynced()
}
