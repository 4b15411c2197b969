package fleet

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// discoveryAge is the maximum age of an answer by which a kind is not served, when a scope wants the kind for the first time.
const maxDiscoveryAge = time.Second

// apiDiscovery finds out which kinds a cluster serves. One request asks for all of them, however many are wanted, and its
// answer is shared.
type apiDiscovery struct {
	request func() *discoveryResult
	// turn holds one token, which the goroutine that makes a request takes. It guards last.
	sem  chan struct{}
	last *discoveryResult
}

// served is what a cluster serves. It is never changed.
type discoveryResult struct {
	// asked is when the question was asked, and answered when there was an answer to it, or none.
	requestedAt, answeredAt time.Time
	// kinds are all kinds that are served, and unanswered the groups that gave no answer.
	kinds        map[schema.GroupVersionKind]resource
	failedGroups map[schema.GroupVersion]struct{}
	// failed is true when there was no answer.
	failed bool
}

// resource is how a kind is served.
type resource struct {
	name       string
	namespaced bool
}

func newAPIDiscovery(request func() *discoveryResult) *apiDiscovery {
	d := &apiDiscovery{request: request, sem: make(chan struct{}, 1)}
	d.sem <- struct{}{}
	return d
}

// discover returns the discovery of the cluster that a configuration leads to.
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

// servedSince returns an answer to a request that was made at a time or later; nil when ctx ends.
func (d *apiDiscovery) resultSince(ctx context.Context, notBefore time.Time) *discoveryResult {
	select {
	case <-d.sem:
	case <-ctx.Done():
		return nil
	}
	defer func() { d.sem <- struct{}{} }()
	if d.last == nil || d.last.requestedAt.Before(notBefore) {
		d.last = d.request()
	}
	return d.last
}

// read takes in the answer of a cluster, which may lack groups.
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

// isKnown reports whether the answer says whether a kind is served.
func (s *discoveryResult) isConclusive(kind schema.GroupVersionKind) bool {
	_, groupFailed := s.failedGroups[kind.GroupVersion()]
	return !s.failed && !groupFailed
}

// discoveryTimeout is the deadline of a request that finds out how a kind is served.
const discoveryTimeout = time.Minute
