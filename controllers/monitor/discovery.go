package monitor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
)

const (
	// discoveryDelay is the time between a change of a CRD or APIService and the discovery. An installation creates many at once, and
	// each kind is served a moment after its CRD is created.
	discoveryDelay = time.Second
	// discoveryConfirmDelay is the time until a second discovery, for an API server that takes longer.
	discoveryConfirmDelay = 10 * time.Second
)

// discoveryPause is the pause after a failed discovery.
var discoveryPause = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Minute}

// errNoKinds means that discovery returned no kinds at all, which cannot be true.
var errNoKinds = errors.New("the API server names no kinds")

// kindDiscovery tracks which kinds the cluster serves by watching CRDs and APIServices, and updates the watches of these kinds.
type kindDiscovery struct {
	opts Options
	// watches are the watches to update.
	watches *watches
	// preferred returns the resources that the cluster serves, in their preferred versions. It is nil if only the kinds of the options are
	// watched.
	preferred func() ([]*metav1.APIResourceList, error)
	// definitions are the watches of CRDs and APIServices.
	definitions []*watch
	// queue holds the next discovery.
	queue workqueue.TypedDelayingInterface[struct{}]

	mu sync.Mutex
	// changed holds the groups whose definitions were created, changed or deleted since the last discovery.
	changed sets.Set[string]

	// Only run uses the following fields. pauses is the backoff of failed discoveries.
	pauses wait.Backoff
	// unanswered holds the groups that did not answer the last discovery; nil before the first one.
	unanswered sets.Set[string]
	// answeredAt is when a group last began to answer, and confirmAt when a further discovery is due: an API server that is starting may omit
	// groups without an error.
	answeredAt, confirmAt time.Time
}

// followKinds makes watches follow the kinds of the cluster. preferred and definitions are those of kindDiscovery.
func followKinds(all *watches, opts Options, preferred func() ([]*metav1.APIResourceList, error), definitions ...*watch) {
	c := &kindDiscovery{
		opts: opts, watches: all, preferred: preferred, definitions: definitions,
		queue:   workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[struct{}]{Clock: opts.WatchClock}),
		changed: sets.New[string](), pauses: discoveryPause,
	}
	all.discover, all.schedule = c.run, c.schedule
	if preferred != nil {
		all.undiscovered, all.uncertain = true, sets.New(allGroups)
	}
}

// run follows the kinds until ctx is done.
func (c *kindDiscovery) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, w := range c.definitions {
		w.store.changed = func(touched sets.Set[selectorKey]) {
			if len(touched) > 0 {
				c.definitionsChanged(touched)
			}
		}
		running.Go(func() { w.informer.Run(ctx) })
	}
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	c.queue.Add(struct{}{})
	for {
		next, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if pause := c.discover(ctx); pause > 0 {
			c.queue.AddAfter(next, pause)
		}
		c.queue.Done(next)
	}
}

// schedule schedules a discovery, because kinds have changed.
func (c *kindDiscovery) schedule() { c.queue.AddAfter(struct{}{}, discoveryDelay) }

// definitionsChanged records the groups of changed definitions, and schedules a discovery.
func (c *kindDiscovery) definitionsChanged(touched sets.Set[selectorKey]) {
	c.mu.Lock()
	for t := range touched {
		c.changed.Insert(t.value)
	}
	c.mu.Unlock()
	c.schedule()
}

// takeChanged returns the groups whose definitions have changed since the last call.
func (c *kindDiscovery) takeChanged() sets.Set[string] {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.changed
	c.changed = sets.New[string]()
	return changed
}

// discover updates the watches to the kinds that the cluster serves, and returns when to discover again if nothing changes; zero means never.
func (c *kindDiscovery) discover(ctx context.Context) time.Duration {
	changed := c.takeChanged()
	err := c.refresh(ctx)
	c.watches.retry(changed)
	now := c.watches.clock.Now() // Discovery may take long.
	if changed.Len() > 0 {
		c.confirmAt = now.Add(discoveryConfirmDelay)
	}
	pause := time.Duration(0)
	if err == nil {
		c.pauses = discoveryPause
	} else {
		pause = c.pauses.Step()
	}
	if confirm := c.confirmAt.Sub(now); confirm > 0 && (err == nil || pause > confirm) {
		return confirm // Even while a group does not answer for hours.
	}
	return pause
}

// refresh discovers the kinds and updates the watches.
func (c *kindDiscovery) refresh(ctx context.Context) error {
	if c.preferred == nil {
		return nil
	}
	lists, err := c.preferred()
	if err == nil && len(lists) == 0 {
		err = errNoKinds
	}
	unanswered, now := groupsOf(err), c.watches.clock.Now()
	uncertain := unanswered
	if !unanswered.Has(allGroups) {
		if c.unanswered == nil || c.unanswered.Difference(unanswered).Len() > 0 { // The kinds of such a group must be confirmed, as after the start.
			c.answeredAt, c.confirmAt = now, now.Add(discoveryConfirmDelay)
		}
		if now.Sub(c.answeredAt) < discoveryConfirmDelay {
			uncertain = sets.New(allGroups)
		}
		places := sets.New(c.watches.places...)
		for kind, resource := range discovered(lists, len(c.opts.TrustedNamespaces) > 0, c.opts.Kinds) {
			places.Insert(placesIn(kind, resource.Namespaced, c.opts)...)
		}
		c.watches.setPlaces(ctx, places, unanswered)
	} else if c.answeredAt.IsZero() {
		c.confirmAt = now.Add(discoveryConfirmDelay) // Until the first answer, no kind is known.
	}
	c.logResult(err, unanswered)
	c.unanswered = unanswered
	c.watches.setUncertain(ctx, uncertain) // After setPlaces: the kinds of a group that is no longer uncertain must be watched already.
	return err
}

// groupsOf returns the groups that did not answer a discovery that returned err.
func groupsOf(err error) sets.Set[string] {
	groups := sets.New[string]()
	versions, some := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !some {
		groups.Insert(allGroups)
	}
	for gv := range versions {
		groups.Insert(gv.Group)
	}
	return groups
}

// logResult logs once that groups do not answer, and that all do again.
func (c *kindDiscovery) logResult(err error, unanswered sets.Set[string]) {
	logger, first, changed := c.watches.logger, c.unanswered == nil, !c.unanswered.Equal(unanswered)
	switch {
	case err == nil && changed && !first:
		logger.Info("Discovery recovered")
	case err != nil && (changed || first):
		logger.Info("Cannot discover all kinds of the cluster, trying again", "groups", slices.Sorted(maps.Keys(unanswered)), "reason", err.Error())
	}
}

// definitionKinds returns the kinds whose objects define kinds.
func definitionKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	}
}
