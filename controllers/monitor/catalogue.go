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
	// discovered: an installation brings many at once, and each is served a moment
	// after it is there.
	kindsSettle = time.Second
	// kindsConfirm is when they are discovered once more, for an API server that
	// takes longer, and to confirm that a kind is gone.
	kindsConfirm = 10 * time.Second
)

// discoveryPause is the pause after a discovery that failed.
var discoveryPause = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Minute}

// errNoKinds says that the cluster serves nothing at all, which cannot be.
var errNoKinds = errors.New("the API server names no kinds")

// catalogue follows which kinds the cluster serves, by watching what brings
// them (CRDs and APIServices), and has the watches follow these kinds.
type catalogue struct {
	opts Options
	// preferred returns the resources that the cluster serves, in their preferred
	// versions. It is nil when the options' kinds are all there is to follow.
	preferred func() ([]*metav1.APIResourceList, error)
	// brings are the watches of what brings kinds.
	brings []*watch
	// changed has room for one notice that kinds have changed.
	changed chan struct{}
	// first is closed after the first discovery.
	first chan struct{}
	once  sync.Once

	// What follows belongs to run. versions are those of the objects of brings, by
	// their names; missed is since when a place that is watched has been left out of
	// discovery; and learned is when a discovery first said anything.
	versions map[string]string
	missed   map[place]time.Time
	learned  time.Time

	mu sync.Mutex
	// problem is why the last discovery failed, or nil; failed are the groups of which it learned nothing.
	problem error
	failed  sets.Set[string]
	// confirmed is true when what the first discovery left out, or the first one in which a group
	// answered again, has been left out by a later one too.
	confirmed bool
}

func newCatalogue(opts Options, preferred func() ([]*metav1.APIResourceList, error), brings ...*watch) *catalogue {
	return &catalogue{
		opts: opts, preferred: preferred, brings: brings,
		changed: make(chan struct{}, 1), first: make(chan struct{}), failed: sets.New[string](),
		versions: map[string]string{}, missed: map[place]time.Time{},
		confirmed: preferred == nil, // Without discovery nothing is left out.
	}
}

// run follows the kinds until ctx is done.
func (c *catalogue) run(ctx context.Context, all *watches) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, w := range c.brings {
		w.store.changed = func(touched sets.Set[claim]) {
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
		case err != nil && (next == kindsSettle || len(c.missed) > 0 || !c.learned.IsZero() && !c.sure()): // Also when a group gives no answer for hours.
			next = min(pauses.Step(), kindsConfirm)
		case err != nil:
			next = pauses.Step()
		case next == kindsSettle || len(c.missed) > 0 || !c.sure():
			next, pauses = kindsConfirm, discoveryPause
		default:
			next, pauses = 0, discoveryPause
		}
	}
}

// notice says that kinds have changed.
func (c *catalogue) notice() {
	select {
	case c.changed <- struct{}{}:
	default: // It is known.
	}
}

// await waits for the time of the next discovery: until kinds have changed, plus
// kindsSettle, which it then returns, or for the pause, unless that is zero.
func (c *catalogue) await(ctx context.Context, pause time.Duration) time.Duration {
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
func (c *catalogue) awaitFirst(ctx context.Context) error {
	select {
	case <-c.first:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot discover the kinds of the cluster: %w", context.Cause(ctx))
	}
}

// inDoubt says whether it is not known which kinds a group has. Just after the
// start that is so of every group, and just after one has answered again: an API server that starts may leave out some without an error.
func (c *catalogue) inDoubt(group string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.confirmed || c.problem != nil && (len(c.failed) == 0 || c.failed.Has(group))
}

// answersAgain says whether a group gave no answer at the last discovery and is not among those that give none now: what
// it is said to have then needs to be confirmed as at the start.
func (c *catalogue) answersAgain(failed sets.Set[string]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problem != nil && (len(c.failed) == 0 || len(c.failed.Difference(failed)) > 0)
}

// sure says whether the first discovery has been confirmed.
func (c *catalogue) sure() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.confirmed
}

// refresh discovers the kinds and has them followed. Kinds of groups that give no answer stay followed.
func (c *catalogue) refresh(ctx context.Context, all *watches) error {
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
	confirmed := c.sure()
	if err == nil || len(failed) > 0 {
		now := time.Now()
		if c.learned.IsZero() || c.answersAgain(failed) {
			c.learned, confirmed = now, false
		}
		confirmed = confirmed || now.Sub(c.learned) >= kindsConfirm
		places := sets.New[place]()
		for kind, resource := range discovered(lists, len(c.opts.TrustedNamespaces) > 0, c.opts.Kinds) {
			places.Insert(placesIn(kind, resource.Namespaced, c.opts)...)
		}
		all.follow(ctx, places, c.unconfirmed(places, failed, now, all.isGone))
	}
	// Not before: a group that is no longer in doubt must be watched already.
	if c.note(all.logger, err, failed, confirmed) {
		all.wakeAll(ctx)
	}
	return err
}

// unconfirmed returns which places must stay watched although a discovery at this
// time did not find them: those of groups that gave no answer, and those that
// were found until a moment ago, because an API server that starts may leave out
// a group without an error. Another version in its place says that a place is not left out.
// gone asks the API server for a place itself, which has the last word.
func (c *catalogue) unconfirmed(found sets.Set[place], failed sets.Set[string], now time.Time, gone func(place) (bool, error)) func(place) bool {
	served := sets.New[place]()
	for p := range found {
		served.Insert(p.anyVersion())
	}
	earlier := c.missed
	c.missed = map[place]time.Time{}
	asked := map[place]bool{}
	answers := true
	return func(p place) bool {
		if failed.Has(p.kind.Group) {
			return true
		}
		if served.Has(p.anyVersion()) {
			return false
		}
		since, ok := earlier[p]
		if !ok {
			since = now
		}
		if now.Sub(since) >= kindsConfirm {
			kind := p.anywhere()
			if _, ok := asked[kind]; !ok && answers {
				is, err := gone(p)
				if answers = err == nil; answers { // One that gives no answer is asked for nothing else.
					asked[kind] = is
				}
			}
			if is, ok := asked[kind]; ok {
				return !is
			}
		}
		c.missed[p] = since
		return true
	}
}

// anywhere is the place without what makes no difference to whether it is served: its label, and which namespace it is.
func (p place) anywhere() place {
	p.key = ""
	if p.namespace != "" {
		p.namespace = "any"
	}
	return p
}

// touched returns the groups whose CRDs or APIServices have come, changed or gone
// since it was called last. The name of either ends with the group, after the first dot.
func (c *catalogue) touched() sets.Set[string] {
	versions, groups := map[string]string{}, sets.New[string]()
	for _, w := range c.brings {
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
// whether other groups are in doubt than before.
func (c *catalogue) note(logger logr.Logger, err error, failed sets.Set[string], confirmed bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := (c.problem == nil) != (err == nil) || !c.failed.Equal(failed)
	doubted := changed || c.confirmed != confirmed
	c.problem, c.failed, c.confirmed = err, failed, confirmed
	switch {
	case !changed:
	case err == nil:
		logger.Info("The kinds of the cluster are all known again")
	default:
		logger.Info("Cannot discover all kinds of the cluster, trying again", "groups", slices.Sorted(maps.Keys(failed)), "reason", err.Error())
	}
	return doubted
}

// kindsThatBringKinds are what brings kinds to a cluster.
func kindsThatBringKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	}
}
