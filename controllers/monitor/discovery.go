package monitor

import (
	"context"
	"errors"
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
	"k8s.io/client-go/util/workqueue"
)

const (
	// kindsSettle is how long after a change of the cluster's kinds these are
	// discovered: an installation defines many at once, and each is served a moment
	// after it is there.
	kindsSettle = time.Second
	// kindsConfirm is when they are discovered once more, for an API server that
	// takes longer.
	kindsConfirm = 10 * time.Second
	// allGroups stands for the groups of a cluster that gives no answer at all.
	allGroups = "*"
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
	// queue holds the next discovery.
	queue workqueue.TypedDelayingInterface[struct{}]

	// What follows belongs to run. versions are those of the objects of definitions, by
	// their names; answeredAt is when the groups that answer now were first found to; and pauses are those to come while discoveries fail.
	versions   map[string]string
	answeredAt time.Time
	pauses     wait.Backoff

	mu sync.Mutex
	// done is true after the first discovery.
	done bool
	// unanswered are the groups that gave no answer to the last discovery.
	unanswered sets.Set[string]
	// confirmed is true when a discovery as long as kindsConfirm after answeredAt was answered: an API server that starts may leave out some groups without an error.
	confirmed bool
}

func newKindDiscovery(opts Options, preferred func() ([]*metav1.APIResourceList, error), definitions ...*watch) *kindDiscovery {
	c := &kindDiscovery{
		opts: opts, preferred: preferred, definitions: definitions,
		queue:    workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[struct{}]{Clock: opts.WatchClock}),
		versions: map[string]string{}, pauses: discoveryPause,
	}
	if preferred == nil { // Nothing is left out.
		c.done, c.confirmed = true, true
	} else {
		c.unanswered = sets.New(allGroups)
	}
	return c
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
		running.Go(func() { w.informer.Run(ctx) })
	}
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	c.queue.Add(struct{}{})
	for {
		next, ended := c.queue.Get()
		if ended {
			return
		}
		if pause := c.discover(ctx, all); pause > 0 {
			c.queue.AddAfter(next, pause)
		}
		c.queue.Done(next)
	}
}

// notice notes that kinds have changed.
func (c *kindDiscovery) notice() { c.queue.AddAfter(struct{}{}, kindsSettle) }

// discover has the kinds watched that the cluster serves, and returns when to do so again even if none changes; zero means never.
func (c *kindDiscovery) discover(ctx context.Context, all *watches) time.Duration {
	changed := c.changedGroups() // What changes from now on is noticed again.
	err := c.refresh(ctx, all)
	all.retry(changed)
	pause := time.Duration(0)
	if err == nil {
		c.pauses = discoveryPause
	} else {
		pause = c.pauses.Step()
	}
	if toConfirm := changed.Len() > 0 || !c.isConfirmed(); toConfirm && (err == nil || pause > kindsConfirm) {
		return kindsConfirm // Also when a group gives no answer for hours.
	}
	return pause
}

// refresh discovers the kinds and has them watched.
func (c *kindDiscovery) refresh(ctx context.Context, all *watches) error {
	if c.preferred == nil {
		return nil
	}
	lists, err := c.preferred()
	if err == nil && len(lists) == 0 {
		err = errNoKinds
	}
	unanswered, confirmed := groupsOf(err), c.isConfirmed()
	if !unanswered.Has(allGroups) {
		now := all.clock.Now()
		if c.answerAgain(unanswered) {
			c.answeredAt = now
		}
		confirmed = now.Sub(c.answeredAt) >= kindsConfirm
		places := sets.New(all.places...)
		for kind, resource := range discovered(lists, len(c.opts.TrustedNamespaces) > 0, c.opts.Kinds) {
			places.Insert(placesIn(kind, resource.Namespaced, c.opts)...)
		}
		all.follow(ctx, places, unanswered)
	}
	// Not before: a group that is no longer uncertain must be watched already.
	if c.note(all.logger, err, unanswered, confirmed) {
		all.wakeAll(ctx)
	}
	return err
}

// groupsOf returns the groups that gave no answer to a discovery which ended so.
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

// note remembers how a discovery ended and whether what it left out is confirmed, reports a problem once, and reports
// whether other groups are uncertain than before.
func (c *kindDiscovery) note(logger logr.Logger, err error, unanswered sets.Set[string], confirmed bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := !c.unanswered.Equal(unanswered)
	switch {
	case err == nil && changed && c.done:
		logger.Info("Discovery recovered")
	case err != nil && (changed || !c.done):
		logger.Info("Cannot discover all kinds of the cluster, trying again", "groups", slices.Sorted(maps.Keys(unanswered)), "reason", err.Error())
	}
	changed = changed || c.confirmed != confirmed
	c.done, c.unanswered, c.confirmed = true, unanswered, confirmed
	return changed
}

// isDone reports whether there has been a discovery.
func (c *kindDiscovery) isDone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// isConfirmed reports whether a kind that discovery leaves out is not served.
func (c *kindDiscovery) isConfirmed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.confirmed
}

// isUncertain reports whether it is not known which kinds a group has. That is so of every group
// just after the start, and after one has answered again.
func (c *kindDiscovery) isUncertain(group string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.confirmed || c.unanswered.HasAny(group, allGroups)
}

// answerAgain reports whether a group that gave no answer at the last discovery is not among those that give none now: what
// it is said to have then needs to be confirmed as at the start.
func (c *kindDiscovery) answerAgain(unanswered sets.Set[string]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unanswered.Difference(unanswered).Len() > 0
}

// changedGroups returns the groups whose CRDs or APIServices have come, changed or gone
// since it was called last. The name of either ends with the group, after the first dot.
func (c *kindDiscovery) changedGroups() sets.Set[string] {
	versions, groups := map[string]string{}, sets.New[string]()
	for _, w := range c.definitions {
		for _, object := range w.store.appendMembers(nil, selectorKey{}) { // All of them: they are read without a label.
			versions[object.Name] = object.ResourceVersion
		}
	}
	for name := range sets.KeySet(versions).Union(sets.KeySet(c.versions)) {
		if versions[name] != c.versions[name] {
			_, group, _ := strings.Cut(name, ".")
			groups.Insert(group)
		}
	}
	c.versions = versions
	return groups
}

// definitionKinds returns the kinds whose objects define kinds.
func definitionKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	}
}
