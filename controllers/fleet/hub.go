package fleet

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/healthscope/healthscope/healthscope"
)

// membersGrace is how long a starting hub waits until it knows all clusters. Without the right to list their Secrets it
// would wait indefinitely.
const membersGrace = 20 * time.Second

// hub manages the members of a fleet.
type hub struct {
	*environment

	// secrets watches the Secrets of the other clusters; nil when there are none.
	secrets *secretWatch
	running sync.WaitGroup

	mu      sync.RWMutex
	members map[string]*member

	// Only the goroutine of Start uses the fields below.
	ctx context.Context //nolint:containedctx // The context of all members, which are added and removed while it lives.
	// past is what is known from before a restart, by cluster.
	past map[string]map[healthscope.Key]Observation
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica keeps a view, so that a new leader has a warm one.
func (h *hub) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (h *hub) Start(ctx context.Context) error {
	defer h.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // Also when it fails: nothing else ends the members then.
	h.ctx = ctx
	logger := log.FromContext(ctx).WithName("fleet")
	h.loadPast(ctx, logger)
	h.add(h.options.ClusterName, true, logger).setSpec(clusterSpec{name: h.options.ClusterName}) //nolint:contextcheck // Members live in the context that is kept.
	if h.secrets == nil {
		h.view.setComplete()
		<-ctx.Done()
		return nil
	}
	defer h.clock.AfterFunc(membersGrace, h.view.setClustersTimedOut).Stop()
	return h.secrets.run(ctx, func(secrets []*corev1.Secret) { h.reconcile(secrets, logger) }) //nolint:contextcheck // As above.
}

// refresh makes all members read again the bundles that the hub judges by rules.
func (h *hub) refresh() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, m := range h.members {
		m.refresh()
	}
}

// loadPast loads the states of objects from before a restart.
func (h *hub) loadPast(ctx context.Context, logger logr.Logger) {
	if h.options.History == nil {
		return
	}
	past, err := h.options.History(ctx)
	if err != nil && ctx.Err() == nil { // The hub works without it.
		logger.Error(err, "Cannot read since when resources are in their state; time limits begin again")
	}
	h.past = map[string]map[healthscope.Key]Observation{}
	for key, seen := range past {
		if h.past[key.Cluster] == nil {
			h.past[key.Cluster] = map[healthscope.Key]Observation{}
		}
		h.past[key.Cluster][key] = seen
	}
}

// reconcile adds, updates and removes members so that they match the Secrets.
func (h *hub) reconcile(secrets []*corev1.Secret, logger logr.Logger) {
	desired, rejected := desiredClusters(secrets, h.options.ClusterName)
	for name, m := range h.members { // Only this goroutine changes them.
		if _, ok := desired[name]; !ok && !m.local {
			h.remove(m)
		}
	}
	h.reject(rejected, logger) // After the removals, because a Secret may have had another cluster name before.
	for name, spec := range desired {
		m := h.members[name]
		if m == nil {
			m = h.add(name, false, logger)
		} else if reflect.DeepEqual(*m.desired.Load(), spec) {
			continue
		}
		m.setSpec(spec)
	}
	h.view.setComplete()
}

// reject reports each Secret that cannot have the cluster name it requests, once.
func (h *hub) reject(rejected []RejectedSecret, logger logr.Logger) {
	before := h.view.RejectedSecrets()
	for _, r := range rejected {
		if !slices.Contains(before, r) {
			h.events.recordf(clusterSpec{secret: &r.secret}, corev1.EventTypeWarning, eventNameRefused, "%s", r.Message)
			logger.Error(errors.New(r.Message), "Cannot add the cluster of a Secret", "secret", r.Name)
		}
	}
	for _, r := range before {
		if !slices.ContainsFunc(rejected, func(now RejectedSecret) bool { return now.secret == r.secret }) {
			h.events.drop(clusterSpec{secret: &r.secret})
		}
	}
	h.view.setRejected(rejected)
}

// add adds a member and returns it.
func (h *hub) add(name string, local bool, logger logr.Logger) *member {
	m := newMember(h.environment, name, local, h.past[name], logger)
	delete(h.past, name)
	ctx, cancel := context.WithCancel(h.ctx)
	m.cancel = cancel
	h.mu.Lock()
	h.members[name] = m
	h.mu.Unlock()
	m.publish() // Before the view is complete, because a cluster that a complete view does not know counts as one without bundles.
	h.running.Go(func() { m.run(ctx) })
	return m
}

// remove ends a member, and removes its cluster.
func (h *hub) remove(m *member) {
	h.mu.Lock()
	delete(h.members, m.name)
	h.mu.Unlock()
	m.cancel()
	<-m.stopped
	if h.options.Objects != nil {
		h.options.Objects.Detach(m.name)
	}
	h.view.removeCluster(m.name)
	h.events.drop(*m.desired.Load())
	m.logger.Info("Cluster removed")
}

var _ manager.LeaderElectionRunnable = (*hub)(nil)
