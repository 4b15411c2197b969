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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/controllers/observe"
)

// maxDiscoveryAge is the maximum age of a discovery result that is used for a kind that a scope wants for the first time, or of one that failed.
const maxDiscoveryAge = time.Second

// discoveryTimeout is the timeout of a discovery request.
const discoveryTimeout = time.Minute

// notServedError says that a cluster does not serve a kind as a namespaced one. Discovery lists everything that is served, so
// that the first such answer is certain.
type notServedError string

func (e notServedError) Error() string { return string(e) }

// Is makes observe confirm the answer at once.
func (notServedError) Is(target error) bool { return target == observe.ErrUnsuitable }

// apiDiscovery finds out which kinds a cluster serves. One request covers all kinds, and all callers share its result.
type apiDiscovery struct {
	client discovery.ServerResourcesInterface
	clock  clock.PassiveClock

	// sem has size one. It guards the fields below, and is held during a request.
	sem         *semaphore.Weighted
	requestedAt time.Time
	kinds       map[schema.GroupVersionKind]resource
	// err is why the last request failed, and groupErrs why groups are missing in its result.
	err       error
	groupErrs map[schema.GroupVersion]error
}

// resource is how a kind is served.
type resource struct {
	name       string
	namespaced bool
}

// newAPIDiscovery returns an apiDiscovery for the cluster of a client configuration.
func newAPIDiscovery(config *rest.Config, transport http.RoundTripper, c clock.PassiveClock) (*apiDiscovery, error) {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, &http.Client{Transport: transport, Timeout: discoveryTimeout})
	return &apiDiscovery{client: client, clock: c, sem: semaphore.NewWeighted(1)}, err
}

// find returns how the cluster serves a kind, by the answer to a request that was sent at or after a time. The error is a
// notServedError if it does not serve the kind.
func (d *apiDiscovery) find(ctx context.Context, kind schema.GroupVersionKind, notBefore time.Time) (resource, error) {
	recently := d.clock.Now().Add(-maxDiscoveryAge)
	if err := d.sem.Acquire(ctx, 1); err != nil {
		return resource{}, err
	}
	defer d.sem.Release(1)
	if d.requestedAt.Before(notBefore) || d.failure(kind) != nil && d.requestedAt.Before(recently) {
		d.request()
	}
	if r, ok := d.kinds[kind]; ok {
		return r, nil
	}
	if err := d.failure(kind); err != nil {
		// It is not wrapped, because a refusal of discovery is none of the kind.
		return resource{}, errors.New("cannot discover what the cluster serves: " + withoutAddress(err).Error())
	}
	return resource{}, notServedError("the cluster does not serve " + kind.GroupVersion().String() + " " + kind.Kind)
}

// failure returns why the last request says nothing about a kind; nil when it does.
func (d *apiDiscovery) failure(kind schema.GroupVersionKind) error {
	if d.err != nil {
		return d.err
	}
	return d.groupErrs[kind.GroupVersion()]
}

// request asks the cluster for all kinds. The answer may lack groups.
func (d *apiDiscovery) request() {
	d.requestedAt, d.kinds, d.groupErrs = d.clock.Now(), map[schema.GroupVersionKind]resource{}, map[schema.GroupVersion]error{}
	_, lists, err := d.client.ServerGroupsAndResources()
	if partial := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &partial) {
		for version, groupErr := range partial.Groups {
			if !apierrors.IsNotFound(groupErr) {
				d.groupErrs[version] = groupErr
			}
		}
		err = nil
	}
	if d.err = err; err != nil {
		return
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			kind := version.WithKind(r.Kind)
			if _, ok := d.kinds[kind]; !ok && !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") {
				d.kinds[kind] = resource{r.Name, r.Namespaced}
			}
		}
	}
}
