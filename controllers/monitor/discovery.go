package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
)

const (
	// kindsSettle is how long after a change of the cluster's kinds these are
	// discovered: an installation definitions many at once, and each is served a moment
	// after it is there.
	kindsSettle = time.Second
	// kindsConfirm is when they are discovered once more, for an API server that
	// takes longer, and to confirm that a kind is gone.
	kindsConfirm = 10 * time.Second
)

// discoveryPause is the pause after a discovery that failed.
var discoveryPause = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Minute}

// errNoKinds means that the cluster serves nothing at all, which cannot be.
var errNoKinds = errors.New("the API server names no kinds")

// kindDiscovery follows which kinds the cluster serves, by watching what defines
// them (CRDs and APIServices), and has the watches follow these kinds.
type kindDiscovery struct {
	opts Options
	// preferred returns the resources that the cluster serves, in their preferred
	// versions. It is nil when the options' kinds are all there is to follow.
	preferred func() ([]*metav1.APIResourceList, error)
	// definitions are the watches of CRDs and APIServices.
	definitions []*watch
	// changed has room for one notice that kinds have changed.
	changed chan struct{}
	// first is closed after the first discovery.
	first chan struct{}
	once  sync.Once

	// What follows belongs to run. versions are those of the objects of definitions, by
	// their names; absentSince is since when a place that is watched has been left out of
	// discovery; and answeredAt is when a discovery was first answered.
	versions    map[string]string
	absentSince map[place]time.Time
	answeredAt  time.Time

	mu sync.Mutex
	// problem is why the last discovery failed, or nil; failed are the groups that gave no answer.
	problem error
	failed  sets.Set[string]
	// confirmed is true when what the first discovery left out, or the first one in which a group
	// answered again, has been left out by a later one too.
	confirmed bool
}

func newKindDiscovery(opts Options, preferred func() ([]*metav1.APIResourceList, error), definitions ...*watch) *kindDiscovery {
	return &kindDiscovery{
		opts: opts, preferred: preferred, definitions: definitions,
		changed: make(chan struct{}, 1), first: make(chan struct{}), failed: sets.New[string](),
		versions: map[string]string{}, absentSince: map[place]time.Time{},
		confirmed: preferred == nil, // Without discovery nothing is left out.
	}
}

// run follows the kinds until ctx is done.
func (c *kindDiscovery) run(ctx context.Context, all *watches) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, w := range c.definitions {
		w.store.changed = func(touched sets.Set[selectorKey]) {
			if len(touched) > 0 {
				c.notice()
			}
		}
		running.Go(func() { w.run(ctx) })
	}
	pauses := discoveryPause
	for next := time.Duration(0); ctx.Err() == nil; next = c.await(ctx, next) {
		err := c.refresh(ctx, all)
		c.once.Do(func() { close(c.first) })
		all.retry(c.touched())
		switch {
		case err != nil && (next == kindsSettle || len(c.absentSince) > 0 || !c.answeredAt.IsZero() && !c.isConfirmed()): // Also when a group gives no answer for hours.
			next = min(pauses.Step(), kindsConfirm)
		case err != nil:
			next = pauses.Step()
		case next == kindsSettle || len(c.absentSince) > 0 || !c.isConfirmed():
			next, pauses = kindsConfirm, discoveryPause
		default:
			next, pauses = 0, discoveryPause
		}
	}
}

// notice notes that kinds have changed.
func (c *kindDiscovery) notice() {
	select {
	case c.changed <- struct{}{}:
	default: // There is one already.
	}
}

// await waits for the time of the next discovery: until kinds have changed, plus
// kindsSettle, which it then returns, or for the pause, unless that is zero.
func (c *kindDiscovery) await(ctx context.Context, pause time.Duration) time.Duration {
	var over <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return 0
	case <-over:
		return 0
	case <-c.changed:
	}
	settle := time.NewTimer(kindsSettle)
	defer settle.Stop()
	select {
	case <-ctx.Done():
	case <-settle.C:
	}
	select {
	case <-c.changed: // It belongs to the same change.
	default:
	}
	return kindsSettle
}

// awaitFirst waits until the kinds have been discovered once.
func (c *kindDiscovery) awaitFirst(ctx context.Context) error {
	select {
	case <-c.first:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot discover the kinds of the cluster: %w", context.Cause(ctx))
	}
}

// isUncertain reports whether it is not known which kinds a group has. That is so of every group
// just after the start, and after one has answered again: an API server that starts may leave out some without an error.
func (c *kindDiscovery) isUncertain(group string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.confirmed || c.problem != nil && (len(c.failed) == 0 || c.failed.Has(group))
}

// refresh discovers the kinds and has them watched. Kinds of groups that give no answer stay watched.
func (c *kindDiscovery) refresh(ctx context.Context, all *watches) error {
	if c.preferred == nil {
		return nil
	}
	lists, err := c.preferred()
	failed := sets.New[string]()
	if groups, ok := discovery.GroupDiscoveryFailedErrorGroups(err); ok {
		for gv := range groups {
			failed.Insert(gv.Group)
		}
	}
	if err == nil && len(lists) == 0 {
		err = errNoKinds
	}
	confirmed := c.isConfirmed()
	if err == nil || len(failed) > 0 {
		now := time.Now()
		if c.answeredAt.IsZero() || c.answersAgain(failed) {
			c.answeredAt, confirmed = now, false
		}
		confirmed = confirmed || now.Sub(c.answeredAt) >= kindsConfirm
		places := sets.New[place]()
		for kind, resource := range discovered(lists, len(c.opts.TrustedNamespaces) > 0, c.opts.Kinds) {
			places.Insert(placesIn(kind, resource.Namespaced, c.opts)...)
		}
		all.follow(ctx, places, c.unconfirmed(places, failed, now, all.isGone))
	}
	// Not before: a group that is no longer uncertain must be watched already.
	if c.note(all.logger, err, failed, confirmed) {
		all.wakeAll(ctx)
	}
	return err
}

// unconfirmed returns which places must stay watched although a discovery at this
// time did not find them: those of groups that gave no answer, and those that
// were found until a moment ago, because an API server that starts may leave out
// a group without an error. Another version in its place says that a place is not left out.
// gone asks the API server for the place itself, and its answer decides.
func (c *kindDiscovery) unconfirmed(found sets.Set[place], failed sets.Set[string], now time.Time, gone func(place) (bool, error)) func(place) bool {
	served := sets.New[place]()
	for p := range found {
		served.Insert(p.withoutVersion())
	}
	earlier := c.absentSince
	c.absentSince = map[place]time.Time{}
	asked := map[place]bool{}
	answers := true
	return func(p place) bool {
		if failed.Has(p.kind.Group) {
			return true
		}
		if served.Has(p.withoutVersion()) {
			return false
		}
		since, ok := earlier[p]
		if !ok {
			since = now
		}
		if now.Sub(since) >= kindsConfirm {
			kind := p.withoutNamespace()
			if _, ok := asked[kind]; !ok && answers {
				is, err := gone(p)
				if answers = err == nil; answers { // A server that gives no answer is asked no further.
					asked[kind] = is
				}
			}
			if is, ok := asked[kind]; ok {
				return !is
			}
		}
		c.absentSince[p] = since
		return true
	}
}

// answersAgain reports whether a group gave no answer at the last discovery and is not among those that give none now: what
// it is said to have then needs to be confirmed as at the start.
func (c *kindDiscovery) answersAgain(failed sets.Set[string]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem != nil && (len(c.failed) == 0 || len(c.failed.Difference(failed)) > 0)
}

// withoutNamespace returns the place without its label and the name of its namespace, which make no difference to whether it is served.
func (p place) withoutNamespace() place {
	p.key = ""
	if p.namespace != "" {
		p.namespace = "any"
	}
	return p
}

// touched returns the groups whose CRDs or APIServices have come, changed or gone
// since it was called last. The name of either ends with the group, after the first dot.
func (c *kindDiscovery) touched() sets.Set[string] {
	versions, groups := map[string]string{}, sets.New[string]()
	for _, w := range c.definitions {
		w.store.mu.RLock()
		for name, object := range w.store.objects {
			versions[name.Name] = object.ResourceVersion
		}
		w.store.mu.RUnlock()
	}
	note := func(name string) {
		_, group, _ := strings.Cut(name, ".")
		groups.Insert(group)
	}
	for name, version := range versions {
		if c.versions[name] != version {
			note(name)
		}
	}
	for name := range c.versions {
		if _, ok := versions[name]; !ok {
			note(name)
		}
	}
	c.versions = versions
	return groups
}

// note remembers how a discovery ended and whether what it left out is confirmed, reports a problem once, and says
// whether other groups are uncertain than before.
func (c *kindDiscovery) note(logger logr.Logger, err error, failed sets.Set[string], confirmed bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := (c.problem == nil) != (err == nil) || !c.failed.Equal(failed)
	uncertain := changed || c.confirmed != confirmed
	c.problem, c.failed, c.confirmed = err, failed, confirmed
	switch {
	case !changed:
	case err == nil:
		logger.Info("Discovery recovered")
	default:
		logger.Info("Cannot discover all kinds of the cluster, trying again", "groups", slices.Sorted(maps.Keys(failed)), "reason", err.Error())
	}
	return uncertain
}

// definitionKinds returns the kinds whose objects define kinds.
func definitionKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	}
}

// isConfirmed reports whether the first discovery has been confirmed.
func (c *kindDiscovery) isConfirmed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.confirmed
}
