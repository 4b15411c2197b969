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

// servicesRules are what is tolerated of a watch of Services, as of other objects that scopes refer to.
var servicesRules = observe.Rules{Grace: time.Minute, Settle: 500 * time.Millisecond}

// maxRefused is the longest pause before Services are read again whose reading is refused.
const maxRefused = 30 * time.Second

// rightHint says how the controller gets the rights that it needs for probes.
const rightHint = "probes need rights, namespace by namespace: see config/docs/probes.md"

// place is a namespace of a cluster.
type place struct{ cluster, namespace string }

// services are the Services of a place.
type services struct {
	place

	clusters Clusters
	informer *observe.Informer
	store    *observe.Store[probe.Service]
	stop     context.CancelFunc
	// since is since when they are read.
	since time.Time

	mu sync.Mutex
	// client is that through which they are read; nil before the first time.
	client *http.Client
	// uncount is called when what is being read is not held any more.
	uncount func()
}

// newServices returns what reads the Services of a place once it runs. changed is called for every change.
func (p *Prober) newServices(at place, stop context.CancelFunc) *services {
	s := &services{place: at, clusters: p.Clusters, stop: stop, since: p.Clock.Now(), uncount: func() {}}
	changed := func() { p.servicesChanged(at) }
	s.store = observe.NewStore(keep, func(a, b probe.Service) bool { return reflect.DeepEqual(a, b) }, func(types.NamespacedName, probe.Service, probe.Service) { changed() })
	s.informer = observe.NewInformer(servicesRules, observe.InformerOptions{
		TrackedOptions: observe.TrackedOptions{Clock: p.Clock, MaxRefused: maxRefused, Describe: s.describe},
		Open:           s.open, Store: s.store, Changed: func(observe.State) { changed() },
	})
	return s
}

// keep returns what is kept of a Service.
func keep(object any) probe.Service {
	service, ok := object.(*corev1.Service)
	if !ok { // A client returns nothing else than it was asked for.
		return probe.Service{}
	}
	return probe.NewService(service)
}

// run reads the Services until ctx ends.
func (s *services) run(ctx context.Context) {
	s.informer.Run(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uncount()
}

// open returns how Services are listed and watched.
func (s *services) open(context.Context) (cache.ListerWatcher, error) {
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
	s.uncount()
	source, uncount := access.Count(cache.NewListWatchFromClient(client.RESTClient(), "services", s.namespace, fields.Everything()))
	s.client, s.uncount = access.Client, uncount
	return source, nil
}

// follow reads the Services again if their cluster is reached in another way.
func (s *services) follow() {
	access, ok := s.clusters.Access(s.cluster)
	s.mu.Lock()
	other := ok && s.client != access.Client
	s.mu.Unlock()
	if other {
		s.informer.Reread(true)
	}
}

// describe returns why the Services cannot be read, as text.
func (s *services) describe(reason observe.Reason, err error) string {
	if reason == observe.Forbidden {
		return fmt.Sprintf("the controller may not list and watch Services in namespace %q; %s", s.namespace, rightHint)
	}
	return fmt.Sprintf("cannot list and watch Services in namespace %q: %s", s.namespace, reason)
}

// unread returns why the Services of the place are not known as they are, and whether that is so.
func (s *services) unread() (probe.Unread, bool) {
	state := s.informer.State()
	u := probe.Unread{Cluster: s.cluster, Problem: state.Message, Since: s.since}
	if state.Status != observe.Problem {
		u.Problem = ""
	}
	return u, state.Status == observe.Problem || !s.store.IsRead()
}
