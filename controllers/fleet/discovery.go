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
const discoveryAge = time.Second

// apiDiscovery finds out which kinds a cluster serves. One request asks for all of them, however many are wanted, and its
// answer is shared.
type apiDiscovery struct {
	request func() *served
	// turn holds one token, which the goroutine that makes a request takes. It guards last.
	turn chan struct{}
	last *served
}

// served is what a cluster serves. It is never changed.
type served struct {
	// asked is when the question was asked, and answered when there was an answer to it, or none.
	asked, answered time.Time
	// kinds are all kinds that are served, and unanswered the groups that gave no answer.
	kinds      map[schema.GroupVersionKind]resource
	unanswered map[schema.GroupVersion]struct{}
	// failed is true when there was no answer.
	failed bool
}

// resource is how a kind is served.
type resource struct {
	name       string
	namespaced bool
}

func newAPIDiscovery(ask func() *served) *apiDiscovery {
	c := &apiDiscovery{request: ask, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

// discover returns the discovery of the cluster that a configuration leads to.
func discover(config *rest.Config, transport http.RoundTripper, c clock.PassiveClock) (*apiDiscovery, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, &http.Client{Transport: transport, Timeout: discoveryTimeout})
	if err != nil {
		return nil, err
	}
	return newAPIDiscovery(func() *served {
		s := &served{asked: c.Now()}
		_, lists, err := client.ServerGroupsAndResources()
		s.answered = c.Now()
		s.read(lists, err)
		return s
	}), nil
}

// servedSince returns an answer to a request that was made at a time or later; nil when ctx ends.
func (c *apiDiscovery) servedSince(ctx context.Context, at time.Time) *served {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return nil
	}
	defer func() { c.turn <- struct{}{} }()
	if c.last == nil || c.last.asked.Before(at) {
		c.last = c.request()
	}
	return c.last
}

// read takes in the answer of a cluster, which may lack groups.
func (s *served) read(lists []*metav1.APIResourceList, err error) {
	partial := &discovery.ErrGroupDiscoveryFailed{}
	if err != nil && !errors.As(err, &partial) {
		s.failed = true
		return
	}
	s.unanswered = map[schema.GroupVersion]struct{}{}
	for version, problem := range partial.Groups {
		if !apierrors.IsNotFound(problem) {
			s.unanswered[version] = struct{}{}
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
func (s *served) isKnown(kind schema.GroupVersionKind) bool {
	_, unanswered := s.unanswered[kind.GroupVersion()]
	return !s.failed && !unanswered
}

// discoveryTimeout is the deadline of a request that finds out how a kind is served.
const discoveryTimeout = time.Minute
