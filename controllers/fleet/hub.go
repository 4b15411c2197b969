package fleet

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// membersGrace is how long the hub waits, when it starts, to learn which clusters there are. Without the right to list
// their Secrets it would never learn it.
const membersGrace = 20 * time.Second

// hub keeps all clusters of a fleet connected.
type hub struct {
	options Options
	view    *View
	clock   clock.WithTickerAndDelayedExecution
	// config is how to reach the hub's own cluster.
	config *rest.Config
	// secrets watches the Secrets of the other clusters; nil when there are none.
	secrets *secretWatch
	// events are those on these Secrets.
	events secretEvents
	// quotas counts what is held of all clusters.
	quotas  quotas
	running sync.WaitGroup

	mu      sync.RWMutex
	members map[string]*member

	// What follows is that of the goroutine of Start.
	ctx context.Context //nolint:containedctx // The life of all members, which come and go in it.
	// past is what is known from before a restart, by cluster.
	past map[string]map[healthscope.Key]Seen
}

// timeout is how long a cluster may take for an answer; zero without Options.Liveness.
func (h *hub) timeout() time.Duration {
	if h.options.Liveness == nil {
		return 0
	}
	return h.options.Liveness.Timeout
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

// refresh has bundles read again that were judged by rules here.
func (h *hub) refresh() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, m := range h.members {
		m.refresh()
	}
}

// stopping reports whether the hub is about to stop.
func (h *hub) stopping() bool { return h.ctx.Err() != nil }

// loadPast loads what is known from before a restart.
func (h *hub) loadPast(ctx context.Context, logger logr.Logger) {
	if h.options.Past == nil {
		return
	}
	past, err := h.options.Past(ctx)
	if err != nil && ctx.Err() == nil { // It is of use, and no more than that.
		logger.Error(err, "Cannot read since when resources are in their state; time limits begin again")
	}
	h.past = map[string]map[healthscope.Key]Seen{}
	for key, seen := range past {
		if h.past[key.Cluster] == nil {
			h.past[key.Cluster] = map[healthscope.Key]Seen{}
		}
		h.past[key.Cluster][key] = seen
	}
}

// reconcile makes the members those that Secrets ask for.
func (h *hub) reconcile(secrets []*corev1.Secret, logger logr.Logger) {
	desired, rejected := desiredClusters(secrets, h.options.ClusterName)
	h.mu.RLock()
	members := maps.Clone(h.members)
	h.mu.RUnlock()
	for name, m := range members {
		if _, ok := desired[name]; !ok && !m.local {
			h.remove(m)
		}
	}
	h.reject(rejected, logger) // After the removals: a Secret may have had another name before.
	for name, spec := range desired {
		m := members[name]
		if m == nil {
			m = h.add(name, false, logger)
		} else if reflect.DeepEqual(m.desired, spec) {
			continue
		}
		m.desired = spec
		m.setSpec(spec)
	}
	h.view.setComplete()
}

// reject reports Secrets that cannot have the names they ask for, each once.
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
	m := newMember(h, name, local, logger)
	delete(h.past, name)
	ctx, cancel := context.WithCancel(h.ctx)
	m.cancel = cancel
	h.mu.Lock()
	h.members[name] = m
	h.mu.Unlock()
	m.publish() // Before the view is complete: a cluster that a complete view does not know has no bundles.
	h.running.Go(func() { m.run(ctx) })
	return m
}

// remove removes a member. When it returns the member is gone from the view.
func (h *hub) remove(m *member) {
	h.mu.Lock()
	delete(h.members, m.name)
	h.mu.Unlock()
	m.cancel()
	<-m.removed
	h.events.drop(m.desired)
}

// configOf returns the client configuration of a spec.
func (h *hub) configOf(spec clusterSpec) (*rest.Config, error) {
	if spec.secret == nil {
		return rest.CopyConfig(h.config), nil
	}
	if spec.problem != "" {
		return nil, errors.New(spec.problem)
	}
	return h.options.Members.Parse(spec.kubeconfig)
}

var _ manager.LeaderElectionRunnable = (*hub)(nil)

// Options configure Setup.
type Options struct {
	// ClusterName is the name of the hub's own cluster.
	ClusterName string
	// Policy is the installation's policy in matters of time.
	Policy healthscope.Policy
	// Past returns what is remembered from before a restart of objects whose monitors keep no time, judged. The default is nothing.
	Past func(context.Context) (map[healthscope.Key]Seen, error)
	// HealthChecks are the user's rules, or nil.
	HealthChecks rules.UserRules
	// Objects get to know all clusters, so that they can watch objects there; nil when none are to be watched.
	Objects *Objects
	// Liveness makes the hub find out whether it sees its clusters. Without it, a cluster that was read once is Connected.
	Liveness *Liveness
	// Members makes the hub connect to other clusters. Without it, there is the hub's own cluster only.
	Members *Members
	// Budget bounds what clusters may take of the hub's memory. The default is no bound.
	Budget Budget
	// Clock tells the time. The default is the machine's.
	Clock clock.WithTickerAndDelayedExecution
}

// Liveness configures how a hub finds out whether it sees its clusters.
type Liveness struct {
	// MonitorNamespace is the namespace of the monitor's Lease in every cluster.
	MonitorNamespace string
	// Timeout is how long a cluster may take for an answer before it counts as away.
	Timeout time.Duration
}

// Members configures from where a hub knows other clusters.
type Members struct {
	// Namespace is the namespace of the Secrets with their kubeconfigs. Secrets are read in no other.
	Namespace string
	// Parse reads a kubeconfig, which is not to be trusted.
	Parse func([]byte) (*rest.Config, error)
}
