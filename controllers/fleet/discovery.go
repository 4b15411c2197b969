package fleet

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// maxDiscoveryAge is the maximum age of a discovery result that is used for a kind that a scope wants for the first time.
const maxDiscoveryAge = time.Second

// apiDiscovery finds out which kinds a cluster serves. One request covers all kinds, and all callers share its result.
type apiDiscovery struct {
	request func() *discoveryResult
	// sem has size one. The goroutine that makes a request holds it. It guards last.
	sem  *semaphore.Weighted
	last *discoveryResult
}

// discoveryResult is what a cluster serves. It is immutable.
type discoveryResult struct {
	// requestedAt is when the request was sent, and answeredAt when it was answered or failed.
	requestedAt, answeredAt time.Time
	// kinds are all kinds that are served, and failedGroups the groups whose discovery failed.
	kinds        map[schema.GroupVersionKind]resource
	failedGroups map[schema.GroupVersion]struct{}
	// failed is true when the whole request failed.
	failed bool
}

// resource is how a kind is served.
type resource struct {
	name       string
	namespaced bool
}

func newAPIDiscovery(request func() *discoveryResult) *apiDiscovery {
	return &apiDiscovery{request: request, sem: semaphore.NewWeighted(1)}
}

// newAPIDiscoveryFor returns an apiDiscovery for the cluster of a client configuration.
func newAPIDiscoveryFor(config *rest.Config, transport http.RoundTripper, c clock.PassiveClock) (*apiDiscovery, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, &http.Client{Transport: transport, Timeout: discoveryTimeout})
	if err != nil {
		return nil, err
	}
	return newAPIDiscovery(func() *discoveryResult {
		s := &discoveryResult{requestedAt: c.Now()}
		_, lists, err := client.ServerGroupsAndResources()
		s.answeredAt = c.Now()
		s.parse(lists, err)
		return s
	}), nil
}

// resultSince returns the result of a request that was sent at or after a time; nil when ctx ends.
func (d *apiDiscovery) resultSince(ctx context.Context, notBefore time.Time) *discoveryResult {
	if d.sem.Acquire(ctx, 1) != nil {
		return nil
	}
	defer d.sem.Release(1)
	if d.last == nil || d.last.requestedAt.Before(notBefore) {
		d.last = d.request()
	}
	return d.last
}

// parse stores the answer of a cluster, which may lack groups.
func (s *discoveryResult) parse(lists []*metav1.APIResourceList, err error) {
	partial := &discovery.ErrGroupDiscoveryFailed{}
	if err != nil && !errors.As(err, &partial) {
		s.failed = true
		return
	}
	s.failedGroups = map[schema.GroupVersion]struct{}{}
	for version, groupErr := range partial.Groups {
		if !apierrors.IsNotFound(groupErr) {
			s.failedGroups[version] = struct{}{}
		}
	}
	s.kinds = map[schema.GroupVersionKind]resource{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			kind := version.WithKind(r.Kind)
			if _, ok := s.kinds[kind]; !ok && !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") {
				s.kinds[kind] = resource{r.Name, r.Namespaced}
			}
		}
	}
}

// isConclusive reports whether the result shows that a kind is served, or that it is not.
func (s *discoveryResult) isConclusive(kind schema.GroupVersionKind) bool {
	_, groupFailed := s.failedGroups[kind.GroupVersion()]
	return !s.failed && !groupFailed
}

// discoveryTimeout is the timeout of a discovery request.
const discoveryTimeout = time.Minute
