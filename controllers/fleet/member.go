package fleet

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/healthscope/healthscope/healthscope"
)

// newKubeconfigFails is the prefix of the message while a new kubeconfig does not work.
const newKubeconfigFails = "the new kubeconfig does not work, and the one before stays in use: "

// assessInterval is how often a member is assessed at least: time alone can change its state.
const assessInterval = time.Second

// minAttemptTimeout is the minimum timeout of an attempt to use a new token.
const minAttemptTimeout = 10 * time.Second

// Pauses before a cluster that was cut off is read again. They double each time the cluster is cut off again.
const (
	minCutOff = 5 * time.Minute
	maxCutOff = time.Hour
)

// member is a cluster of the fleet. One goroutine manages it, so that no cluster waits for another one.
type member struct {
	env    *environment
	name   string
	local  bool
	syncer *bundleSyncer
	logger logr.Logger
	cancel context.CancelFunc
	// running counts the other goroutines of the member. stopped is closed once it changes nothing in the view any more.
	running sync.WaitGroup
	stopped chan struct{}

	// desired is the spec that the hub has last set.
	desired atomic.Pointer[clusterSpec]
	// rereadDue is true when bundles that the hub judges by rules have to be read again.
	rereadDue atomic.Bool
	wakeups   chan struct{}

	// Only the member's goroutine uses the fields below. applied is the spec that was applied last. spec is the same, but keeps the
	// namespaces of the one before when those of applied are invalid.
	applied *clusterSpec
	spec    clusterSpec
	// current is the connection in use, and next the one that will replace it, or the first one.
	current, next *connection
	// renewal is the new token that is being tried for current; nil when none is.
	renewal *tokenRenewal
	// specProblem is what is wrong with the current spec, and what is in use instead, if anything; empty when nothing is wrong.
	specProblem string
	// quota counts what the hub holds of the cluster, and cutOff is its state when it is cut off.
	quota  *quota
	cutOff cutOff
	state  ClusterState
}

// cutOff is the state of a cluster that has been cut off.
type cutOff struct {
	// exceeded is why the cluster was cut off; empty once a later attempt to read it has led to another state than Connecting.
	exceeded string
	// until is when the cluster is read again; zero once that has begun.
	until time.Time
	// pause is the duration of the last cut-off.
	pause time.Duration
}

// tokenRenewal is a new token for the connection in use. It is tried until the API server accepts it, and not used before.
type tokenRenewal struct {
	token  string
	cancel context.CancelFunc
	// attempts receives the result of each attempt.
	attempts chan error
}

func newMember(e *environment, name string, local bool, past map[healthscope.Key]Observation, logger logr.Logger) *member {
	m := &member{
		env: e, name: name, local: local, logger: logger.WithValues("cluster", name),
		stopped: make(chan struct{}), wakeups: make(chan struct{}, 1),
		state: ClusterState{Name: name, Local: local, Reachability: Connecting, Since: e.clock.Now(), Message: "it has not been read yet"},
	}
	m.quota = e.quotas.register(name, local, m.wake)
	m.syncer = newBundleSyncer(name, e.view, e.options.Policy, e.clock, past)
	return m
}

// wake makes the member check whether something has changed. It does not block.
func (m *member) wake() {
	select {
	case m.wakeups <- struct{}{}:
	default:
	}
}

// setSpec sets the member's spec. It does not block.
func (m *member) setSpec(spec clusterSpec) {
	m.desired.Store(&spec)
	m.wake()
}

// refresh makes the member read again the bundles that the hub judges by rules. It does not block.
func (m *member) refresh() {
	m.rereadDue.Store(true)
	m.wake()
}

// run keeps the published member connected until ctx ends, and returns once all goroutines of the member have ended.
func (m *member) run(ctx context.Context) {
	defer m.quota.unregister()
	defer m.running.Wait()
	m.running.Go(func() {
		defer close(m.stopped)
		m.syncer.run(ctx)
	})
	defer m.syncer.queue.ShutDown()
	ticker := m.env.clock.NewTicker(assessInterval)
	defer ticker.Stop()
	for {
		var attempts <-chan error
		if m.renewal != nil {
			attempts = m.renewal.attempts
		}
		select {
		case <-ctx.Done():
			return
		case err := <-attempts:
			m.handleAttempt(err)
		case <-m.wakeups:
		case <-ticker.C():
		}
		m.reconcile(ctx)
	}
}

// reconcile applies a new spec, takes a connection into use that is ready, keeps the cluster within its budget, and updates its state.
func (m *member) reconcile(ctx context.Context) {
	if spec := m.desired.Load(); spec != m.applied {
		m.applied = spec
		m.apply(ctx, *spec)
	}
	if m.rereadDue.Swap(false) {
		for _, c := range []*connection{m.next, m.current} {
			if c != nil {
				c.reread()
			}
		}
	}
	m.swapInReady() //nolint:contextcheck // Watches live longer than this call.
	m.enforceBudget(ctx)
	m.updateState() //nolint:contextcheck // As above.
}

// apply applies a spec. The connection in use stays until another one is ready to replace it.
func (m *member) apply(ctx context.Context, spec clusterSpec) {
	hasSpec := m.spec.name != "" // There was a spec before.
	if hasSpec && spec.problem != "" {
		spec.namespaces = m.spec.namespaces // An invalid annotation does not mean all namespaces.
	}
	same := hasSpec && spec.sameConnection(m.spec)
	switch {
	case spec.maintenance != "":
		m.env.events.drop(spec)
	case !same:
		m.env.events.drop(spec, eventRefused, eventRotationFailed)
	}
	m.spec = spec
	if same {
		return
	}
	m.cancelRenewal()
	m.disconnect(m.next)
	m.next, m.specProblem = nil, ""
	if m.current != nil && m.current.token != nil {
		if token := spec.renewedToken(m.current.spec); token != "" {
			m.renewToken(ctx, token)
			return
		}
	}
	m.state.namespaces = m.readNamespaces()
	m.publish()   //nolint:contextcheck // Watches live longer than this call. A namespace is excluded before another connection, which does not read it, is in use.
	m.endCutOff() // It may be another cluster.
	m.startConnection(ctx)
}

// readNamespaces returns the namespaces from which bundles are read, in the form of ClusterState.namespaces: those of the
// spec that the connection in use reads.
func (m *member) readNamespaces() string {
	namespaces, limited := m.spec.namespaces, len(m.spec.namespaces) > 0
	if m.current != nil && len(m.current.Namespaces) > 0 {
		namespaces = slices.DeleteFunc(slices.Clone(m.current.Namespaces), func(namespace string) bool { return !m.spec.reads(namespace) })
		limited = true
	}
	if !limited {
		return ""
	}
	return "," + strings.Join(namespaces, ",") + ","
}

// startConnection starts the first connection, or one that will replace the connection in use.
func (m *member) startConnection(ctx context.Context) {
	var err error
	if m.next, err = m.connect(ctx, m.spec); err == nil {
		return
	}
	m.specProblem = shortened(err.Error())
	if m.current != nil {
		m.specProblem = "the new kubeconfig is refused, and the one before stays in use: " + m.specProblem
	}
	m.env.events.recordf(m.spec, corev1.EventTypeWarning, eventRefused, "%s", err)
	m.logger.Error(err, "Cannot use the kubeconfig")
}

// connect opens a connection to the cluster of a spec.
func (m *member) connect(ctx context.Context, spec clusterSpec) (*connection, error) {
	config, err := m.env.configOf(spec)
	if err != nil {
		return nil, err
	}
	c := &connection{
		Access: Access{Config: config, Namespaces: spec.namespaces, meter: m.quota.newMeter()},
		token:  useToken(config), clock: m.env.clock, wake: m.wake, spec: spec,
		liveness: newLiveness(m.local, m.env.timeout(), m.env.clock.Now()),
	}
	if err := c.prepare(m.name, m.syncer.changed, m.env.options); err != nil {
		return nil, errors.Wrapf(err, "cannot make a client for cluster %q", m.name)
	}
	ctx, c.cancel = context.WithCancel(ctx)
	m.running.Go(func() { c.run(ctx) })
	return c, nil
}

// renewToken starts to try a new token for the connection in use.
func (m *member) renewToken(ctx context.Context, token string) {
	ctx, cancel := context.WithCancel(ctx)
	r, current := &tokenRenewal{token: token, cancel: cancel, attempts: make(chan error)}, m.current
	m.renewal = r
	m.running.Go(func() {
		for pauses := retries(maxProbePause); ; {
			deadline, cancel := context.WithTimeout(ctx, max(m.env.timeout(), minAttemptTimeout))
			err := current.try(deadline, token)
			cancel()
			select {
			case r.attempts <- err:
			case <-ctx.Done():
				return
			}
			if err == nil || sleep(ctx, m.env.clock, pauses.Step()) != nil {
				return
			}
		}
	})
}

// handleAttempt takes the new token into use if the API server accepts it, and reports err otherwise.
func (m *member) handleAttempt(err error) {
	if err != nil {
		m.recordRotationFailure(err.Error())
		return
	}
	m.current.token.set(m.renewal.token)
	m.cancelRenewal()
	m.clearSpecProblem()
	m.logger.Info("Token renewed")
}

// cancelRenewal ends the attempts to use a new token, if there are any.
func (m *member) cancelRenewal() {
	if m.renewal != nil {
		m.renewal.cancel()
		m.renewal = nil
	}
}

// recordRotationFailure notes why the current spec does not work, while a connection of an older spec is in use, and reports the first failure.
func (m *member) recordRotationFailure(cause string) {
	reported := m.specProblem != ""
	m.specProblem = newKubeconfigFails + cause
	if !reported {
		m.env.events.recordf(m.spec, corev1.EventTypeWarning, eventRotationFailed, "%s", m.specProblem)
		m.logger.Info("New kubeconfig does not work", "problem", cause)
	}
}

// clearSpecProblem notes that the current spec works.
func (m *member) clearSpecProblem() {
	m.specProblem = ""
	m.env.events.drop(m.spec, eventRefused, eventRotationFailed)
}

// swapInReady takes the next connection into use once it has read all bundles, and stores the bundles of a connection in use that
// has read all. The next connection is also taken into use if its API server does not serve bundles, so that only objects can be
// read through it, and the connection in use cannot read bundles either; that one stays until another one is as good.
func (m *member) swapInReady() {
	if n := m.next; n != nil && (n.isSynced() || !m.readsBundles() && n.assess(false, false).reachability == MonitorMissing) {
		m.swapIn()
	}
	if c := m.current; c != nil && !c.synced && c.isSynced() {
		c.synced = true
		m.syncer.resync(c.store)
		m.quota.staleDropped()
	}
}

// swapIn replaces the connection in use by the next one.
func (m *member) swapIn() {
	old := m.current
	m.current, m.next = m.next, nil
	m.clearSpecProblem()
	if old != nil {
		m.current.continueFrom(old)
	}
	m.attach(m.current)
	m.disconnect(old)
}

// readsBundles reports whether the connection in use reads bundles, as far as is known. When these are not served any more, or
// the API server refuses the hub, it is no better than a new connection.
func (m *member) readsBundles() bool {
	unreadable := !m.state.Answers() && m.state.Reachability != Connecting || m.state.unreadable
	return m.isSynced() && !unreadable
}

// attach makes Objects, and readers of the view, use a connection.
func (m *member) attach(c *connection) {
	m.env.view.setAccess(m.name, c.Access)
	if o := m.env.options.Objects; o != nil {
		if err := o.Attach(m.name, c.Access); err != nil {
			m.logger.Error(err, "Cannot watch objects of the cluster")
		}
	}
}

// disconnect ends a connection; nil is ignored.
func (m *member) disconnect(c *connection) {
	if c != nil {
		c.cancel()
	}
}

// enforceBudget cuts the cluster off when it exceeds its budget, and reads it again after a pause.
func (m *member) enforceBudget(ctx context.Context) {
	exceeded, drop := m.quota.status()
	now := m.env.clock.Now()
	switch {
	case drop:
		m.syncer.reset(true)
		m.quota.staleDropped()
	case exceeded == "":
		return
	}
	switch {
	case m.cutOff.until.IsZero():
		if m.state.Reachable() && now.Sub(m.state.Since) >= m.cutOff.pause {
			m.cutOff.pause = 0 // It was current for at least as long as the last pause.
		}
		m.cutOff.pause = min(max(2*m.cutOff.pause, minCutOff), maxCutOff)
		m.cutOff.exceeded, m.cutOff.until = exceeded, now.Add(m.cutOff.pause)
		m.logger.Info("Cluster cut off", "problem", exceeded, "for", m.cutOff.pause.String())
		m.cancelRenewal()
		m.disconnect(m.current)
		m.disconnect(m.next)
		m.current, m.next, m.specProblem = nil, nil, ""
		m.syncer.reset(false)
		if m.env.options.Objects != nil {
			m.env.options.Objects.Detach(m.name) //nolint:contextcheck // Informers end with Objects.
		}
	case !now.Before(m.cutOff.until):
		m.endCutOff()
		m.startConnection(ctx)
	}
}

// endCutOff lets the cluster be read again if it is cut off.
func (m *member) endCutOff() {
	if !m.cutOff.until.IsZero() {
		m.cutOff.until = time.Time{}
		m.quota.endCutOff()
	}
}

// updateState computes the cluster's state, and publishes it if it has changed.
func (m *member) updateState() {
	own, foreign, lastForeignWrite := m.env.view.monitors(m.name)
	a := m.assess(own, foreign)
	m.checkNext()
	state := m.state
	if m.spec.secret != nil {
		state.SecretUID = m.spec.secret.UID
	}
	state.Maintenance, state.Labels = healthscope.Clean(m.spec.maintenance), m.spec.labels
	state.namespaces, state.synced = m.readNamespaces(), state.synced || m.isSynced()
	state.Reachability, state.Message, state.unreadable, state.Unmonitored, state.outage = a.reachability, a.message, a.unreadable, a.unwatched, a.outage
	switch {
	case m.current == nil || m.specProblem == "":
	case a.message == "":
		state.Message = m.specProblem
	default:
		state.Message += "; " + m.specProblem
	}
	state.Message = healthscope.Clean(state.Message)
	if state.Reachable() != m.state.Reachable() {
		state.Since = m.env.clock.Now()
	}
	switch {
	case m.state.Unmonitored || a.unwatched:
		state.LastSeen = lastForeignWrite
	case m.state.Reachable() || state.Reachable():
		state.LastSeen = later(state.LastSeen, a.lastSeen)
	}
	m.setState(state)
}

// assess returns the current assessment of the cluster. own and foreign report which monitors fill its bundles.
func (m *member) assess(own, foreign bool) (a assessment) {
	used := m.current
	if used == nil {
		used = m.next
	}
	switch {
	case !m.cutOff.until.IsZero():
		return assessment{reachability: OverBudget, message: m.cutOff.exceeded, lastSeen: m.env.clock.Now()}
	case used == nil && m.specProblem != "":
		a = assessment{reachability: Refused, message: m.specProblem}
	case used == nil:
		a = assessment{reachability: Connecting, message: m.state.Message}
	default:
		a = used.assess(own, foreign)
	}
	switch {
	case m.cutOff.exceeded == "":
	case a.reachability == Connecting:
		a = assessment{reachability: OverBudget, message: m.cutOff.exceeded + "; it is being read again", lastSeen: a.lastSeen, outage: a.outage}
	default:
		m.cutOff.exceeded = ""
	}
	return a
}

// isSynced reports whether the connection in use has read all bundles.
func (m *member) isSynced() bool { return m.current != nil && m.current.synced }

// checkNext reports when the connection that will replace the one in use does not work.
func (m *member) checkNext() {
	if m.current == nil || m.next == nil {
		return
	}
	a := m.next.assess(false, false)
	if a.reachability == Connecting || a.reachability == Connected {
		return
	}
	m.recordRotationFailure(a.message)
}

// setState sets the cluster's state, and publishes and records changes.
func (m *member) setState(state ClusterState) {
	old := m.state
	m.state = state
	switch {
	case old == state:
	case old.sameAs(state) && old.outage == state.outage: // LastSeen advances all the time.
		m.env.view.setState(state)
	default:
		if state.Reachability != old.Reachability {
			m.recordState(old)
		}
		m.publish()
	}
}

// publish sets the state in the view and in Objects.
func (m *member) publish() {
	if m.env.options.Objects != nil {
		m.env.options.Objects.setState(m.state)
	}
	m.syncer.setState(m.state)
}

// recordState logs a change of the state, and records an event.
func (m *member) recordState(old ClusterState) {
	m.logger.Info("Cluster state changed", "state", m.state.Reachability, "before", old.Reachability, "message", m.state.Message)
	switch {
	case m.state.Reachable():
		m.env.events.recordf(m.spec, corev1.EventTypeNormal, string(m.state.Reachability), "what is known of cluster %q is current", m.name)
	case m.state.Reachability != Connecting && m.state.Reachability != Refused: // Connecting is no problem, and Refused has been recorded.
		m.env.events.recordf(m.spec, corev1.EventTypeWarning, string(m.state.Reachability), "cluster %q: %s", m.name, m.state.Message)
	}
}
