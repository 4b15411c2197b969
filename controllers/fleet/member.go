package fleet

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/healthscope/healthscope/healthscope"
)

// newKubeconfigFails is the prefix of the message while a new kubeconfig does not work.
const newKubeconfigFails = "the new kubeconfig does not work, and the one before stays in use: "

// minAttemptTimeout is the minimum timeout of an attempt to use a new token.
const minAttemptTimeout = 10 * time.Second

// member is a cluster of the fleet. One goroutine manages it, so that no cluster waits for another one.
type member struct {
	hub    *hub
	name   string
	local  bool
	syncer *bundleSyncer
	logger logr.Logger
	cancel context.CancelFunc
	// running counts the other goroutines of the member. removed is closed once the view does not contain the member any more.
	running sync.WaitGroup
	removed chan struct{}
	// syncing counts the goroutine of the syncer.
	syncing sync.WaitGroup

	// desired is the spec that the hub has last set.
	desired  clusterSpec
	specs    chan clusterSpec
	wakeups  chan struct{}
	attempts chan renewalAttempt
	// refreshes holds at most one request to read again the bundles that the hub judges by rules.
	refreshes chan struct{}

	// Only the member's goroutine uses the fields below.
	spec clusterSpec
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

// tokenRenewal is a new token for the connection in use. It is tried until the API server accepts it, and not used before.
type tokenRenewal struct {
	connection *connection
	token      string
	cancel     context.CancelFunc
}

// renewalAttempt is the result of an attempt to use a new token.
type renewalAttempt struct {
	renewal *tokenRenewal
	err     error
}

func newMember(h *hub, name string, local bool, logger logr.Logger) *member {
	m := &member{
		hub: h, name: name, local: local, logger: logger.WithValues("cluster", name),
		removed: make(chan struct{}), specs: make(chan clusterSpec, 1), wakeups: make(chan struct{}, 1), attempts: make(chan renewalAttempt), refreshes: make(chan struct{}, 1),
		state: ClusterState{Name: name, Local: local, Reachability: Connecting, Since: h.clock.Now(), Message: "it has not been read yet"},
	}
	m.quota = h.quotas.register(name, local, m.wake)
	m.syncer = newBundleSyncer(name, h.view, h.options.Policy, h.clock, h.past[name], m.wake)
	return m
}

// wake makes the member check whether something has changed. It does not block.
func (m *member) wake() {
	select {
	case m.wakeups <- struct{}{}:
	default:
	}
}

// setSpec sets the member's spec. Only one goroutine may call it.
func (m *member) setSpec(spec clusterSpec) {
	select {
	case <-m.specs: // Drop the outdated spec.
	default:
	}
	m.specs <- spec
}

// refresh makes the member read again the bundles that the hub judges by rules. It does not block.
func (m *member) refresh() {
	select {
	case m.refreshes <- struct{}{}:
	default:
	}
}

// run keeps the published member connected until ctx ends, and then removes it.
func (m *member) run(ctx context.Context) {
	defer m.teardown()
	m.syncing.Go(func() { m.syncer.run(ctx) })
	for {
		var timer <-chan time.Time
		if next := soonest(m.nextCheck(), m.cutOff.until); !next.IsZero() {
			timer = m.hub.clock.After(max(next.Sub(m.hub.clock.Now()), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return
		case spec := <-m.specs:
			m.apply(ctx, spec)
		case a := <-m.attempts:
			m.handleAttempt(a)
		case <-m.refreshes:
			m.reread()
		case <-m.wakeups:
		case <-timer:
		}
		m.swapInSynced() //nolint:contextcheck // Watches live longer than this call.
		m.enforceBudget(ctx)
		m.updateState() //nolint:contextcheck // As above.
	}
}

// nextCheck returns when to check the connections again; zero means at the next event.
func (m *member) nextCheck() time.Time {
	var next time.Time
	for _, c := range m.connections() {
		c.readLiveness(func(l *liveness, now time.Time) { next = soonest(next, l.next(now)) })
	}
	return next
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
		m.hub.events.drop(spec)
	case !same:
		m.hub.events.drop(spec, eventRefused, eventRotationFailed)
	}
	m.spec = spec
	if same {
		return
	}
	if m.current != nil && m.current.token != nil {
		if token := spec.renewedToken(m.current.spec); token != "" {
			m.renewToken(ctx, token)
			return
		}
	}
	m.restrict(spec) //nolint:contextcheck // Watches live longer than this call.
	m.endCutOff()    // It may be another cluster.
	m.disconnect(m.next)
	m.startConnection(ctx, spec)
}

// restrict limits the cluster's state and its bundles to the namespaces of a spec. The state excludes a namespace before its
// bundles are hidden, because these still exist, and includes a namespace only after its bundles are shown again.
func (m *member) restrict(spec clusterSpec) {
	readNamespaces := m.readNamespaces()
	m.state.namespaces = intersectNamespaces(m.state.namespaces, readNamespaces)
	m.publish()
	m.syncer.restrict(spec.reads)
	m.state.namespaces = readNamespaces
	m.publish()
}

// intersectNamespaces returns the intersection of two lists in the form of ClusterState.namespaces.
func intersectNamespaces(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	both := slices.DeleteFunc(strings.Split(strings.Trim(a, ","), ","), func(namespace string) bool { return !strings.Contains(b, ","+namespace+",") })
	return "," + strings.Join(both, ",") + ","
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
func (m *member) startConnection(ctx context.Context, spec clusterSpec) {
	m.cancelRenewal()
	m.specProblem = ""
	var err error
	if m.next, err = m.connect(ctx, spec); err == nil {
		return
	}
	m.specProblem = shortened(err.Error())
	if m.current != nil {
		m.specProblem = "the new kubeconfig is refused, and the one before stays in use: " + m.specProblem
	}
	m.hub.events.recordf(m.spec, corev1.EventTypeWarning, eventRefused, "%s", err)
	m.logger.Error(err, "Cannot use the kubeconfig")
}

// connect opens a connection to the cluster of a spec.
func (m *member) connect(ctx context.Context, spec clusterSpec) (*connection, error) {
	config, err := m.hub.configOf(spec)
	if err != nil {
		return nil, err
	}
	c := &connection{
		Access: Access{Config: config, Namespaces: spec.namespaces, meter: m.quota.newMeter()},
		token:  useToken(config), clock: m.hub.clock, wake: m.wake, spec: spec,
		liveness: newLiveness(m.local, m.hub.timeout(), m.hub.clock.Now()),
	}
	if err := c.prepare(m.name, m.syncer.changed, m.hub.options); err != nil {
		return nil, errors.Wrapf(err, "cannot make a client for cluster %q", m.name)
	}
	ctx, c.cancel = context.WithCancel(ctx)
	m.running.Go(func() { c.run(ctx) })
	return c, nil
}

// renewToken starts to try a new token for the connection in use.
func (m *member) renewToken(ctx context.Context, token string) {
	m.cancelRenewal()
	m.disconnect(m.next)
	m.next, m.specProblem = nil, ""
	ctx, cancel := context.WithCancel(ctx)
	r := &tokenRenewal{connection: m.current, token: token, cancel: cancel}
	m.renewal = r
	m.running.Go(func() {
		for pause := time.Duration(0); ctx.Err() == nil; {
			deadline, cancel := context.WithTimeout(ctx, max(m.hub.timeout(), minAttemptTimeout))
			err := r.connection.try(deadline, r.token)
			cancel()
			select {
			case m.attempts <- renewalAttempt{r, err}:
			case <-ctx.Done():
			}
			if err == nil {
				return
			}
			pause = nextPause(pause, maxProbePause)
			select {
			case <-m.hub.clock.After(jittered(pause)):
			case <-ctx.Done():
			}
		}
	})
}

// handleAttempt takes a new token into use if the API server accepts it, and reports it otherwise.
func (m *member) handleAttempt(a renewalAttempt) {
	r := a.renewal
	switch {
	case r != m.renewal || r.connection != m.current: // It is out of date.
	case a.err == nil:
		r.connection.token.Set(r.token)
		r.cancel()
		m.renewal = nil
		m.clearSpecProblem()
		m.logger.Info("Token renewed")
	default:
		m.recordRotationFailure(a.err.Error())
	}
}

// cancelRenewal stops trying a new token, because the spec has changed.
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
		m.hub.events.recordf(m.spec, corev1.EventTypeWarning, eventRotationFailed, "%s", m.specProblem)
		m.logger.Info("New kubeconfig does not work", "problem", cause)
	}
}

// clearSpecProblem notes that the current spec works.
func (m *member) clearSpecProblem() {
	m.specProblem = ""
	m.hub.events.drop(m.spec, eventRefused, eventRotationFailed)
}

// connections returns the connections that are not nil.
func (m *member) connections() []*connection {
	return slices.DeleteFunc([]*connection{m.next, m.current}, func(c *connection) bool { return c == nil })
}

// inUse returns the connection whose liveness is that of the cluster; nil when there is none.
func (m *member) inUse() *connection {
	if m.current != nil {
		return m.current
	}
	return m.next
}

// swapInSynced takes the next connection into use once it has read all bundles, and stores these in the view.
func (m *member) swapInSynced() {
	if m.next != nil && m.next.isSynced() {
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
		var before liveness
		old.readLiveness(func(l *liveness, _ time.Time) { before = *l })
		m.current.updateLiveness(func(l *liveness, _ time.Time) { l.continueFrom(&before) })
	}
	m.attach(m.current)
	m.disconnect(old)
}

// swapInUnserved takes the next connection into use if its API server does not serve bundles, so that only objects can be
// read through it, and the connection in use cannot read bundles either. It stays in use until another connection is as good.
func (m *member) swapInUnserved() {
	if m.next != nil && !m.readsBundles() && m.next.assess().reachability == MonitorMissing {
		m.swapIn()
	}
}

// readsBundles reports whether the connection in use reads bundles, as far as is known. When these are not served any more, or
// the API server refuses the hub, it is no better than a new connection.
func (m *member) readsBundles() bool {
	unreadable := !m.state.Answers() && m.state.Reachability != Connecting || m.state.unreadable
	return m.isSynced() && !unreadable
}

// attach makes Objects, and readers of the view, use a connection.
func (m *member) attach(c *connection) {
	m.hub.view.setAccess(m.name, c.Access)
	if o := m.hub.options.Objects; o != nil {
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

// reread reads again the bundles that the hub judges by rules.
func (m *member) reread() {
	for _, c := range m.connections() {
		c.reread()
	}
}

// enforceBudget cuts the cluster off when it exceeds its budget, and reads it again after a pause.
func (m *member) enforceBudget(ctx context.Context) {
	exceeded, drop := m.quota.status()
	now := m.hub.clock.Now()
	switch {
	case drop:
		m.syncer.reset(true)
		m.quota.staleDropped()
	case exceeded == "":
		return
	}
	switch {
	case m.cutOff.until.IsZero():
		m.cutOff.begin(exceeded, m.state, now)
		m.logger.Info("Cluster cut off", "problem", exceeded, "for", m.cutOff.pause.String())
		m.disconnect(m.current)
		m.disconnect(m.next)
		m.current, m.next, m.specProblem = nil, nil, ""
		m.syncer.reset(false)
		if m.hub.options.Objects != nil {
			m.hub.options.Objects.Detach(m.name)
		}
	case !now.Before(m.cutOff.until):
		m.endCutOff()
		m.startConnection(ctx, m.spec)
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
	m.swapInUnserved()
	a, lastContact := m.assess()
	a = m.cutOff.override(a)
	m.checkNext()
	state := m.state
	if m.spec.secret != nil {
		state.SecretUID = m.spec.secret.UID
	}
	state.Maintenance, state.Labels = healthscope.Clean(m.spec.maintenance), m.spec.labels
	state.namespaces, state.synced = m.readNamespaces(), state.synced || m.isSynced()
	state.Reachability, state.Message, state.unreadable, state.Unmonitored = a.reachability, a.message, a.unreadable, a.unwatched
	if m.current != nil && m.specProblem != "" {
		state.Message = joinProblems(a.message, m.specProblem)
	}
	state.Message = healthscope.Clean(state.Message)
	if state.Reachable() != m.state.Reachable() {
		state.Since = m.hub.clock.Now()
	}
	switch {
	case m.state.Unmonitored || a.unwatched:
		state.LastSeen = m.hub.view.lastForeignWrite(m.name)
	case m.state.Reachable() || state.Reachable():
		state.LastSeen = later(state.LastSeen, lastContact)
	}
	m.setState(state)
}

// assess returns the current assessment of the cluster, and when it was last seen.
func (m *member) assess() (a assessment, lastContact time.Time) {
	used := m.inUse()
	switch {
	case !m.cutOff.until.IsZero():
		return assessment{reachability: OverBudget, message: m.cutOff.exceeded}, m.hub.clock.Now()
	case used == nil && m.specProblem != "":
		return assessment{reachability: Refused, message: m.specProblem}, lastContact
	case used == nil:
		return assessment{reachability: Connecting, message: m.state.Message}, lastContact
	}
	own, foreign := m.hub.view.hasBundles(m.name)
	var outage outage
	used.readLiveness(func(l *liveness, now time.Time) {
		l.own, l.foreign = own, foreign
		was := l.assessment
		if a = l.assess(now); a.reachability == Connected && !m.isSynced() {
			a = l.revertConnected(was) // All bundles have been read, and are about to be stored. Which monitors fill them is not known before.
		}
		lastContact, outage = l.lastSeen(a.reachability), l.outage(now)
	})
	if m.local {
		m.hub.view.setOutage(outage)
	}
	return a, lastContact
}

// isSynced reports whether the connection in use has read all bundles.
func (m *member) isSynced() bool { return m.current != nil && m.current.synced }

// checkNext reports when the connection that will replace the one in use does not work.
func (m *member) checkNext() {
	if m.current == nil || m.next == nil {
		return
	}
	a := m.next.assess()
	if a.reachability == Connecting || a.reachability == Connected {
		return
	}
	m.recordRotationFailure(a.message)
}

// setState sets the cluster's state, and publishes and records changes.
func (m *member) setState(state ClusterState) {
	old := m.state
	if !old.sameAs(state) {
		m.state = state
		if state.Reachability != old.Reachability {
			m.recordState(old)
		}
		m.publish()
		return
	}
	if !state.LastSeen.Equal(old.LastSeen) {
		m.state.LastSeen = state.LastSeen
		m.hub.view.setState(m.state)
	}
}

// publish sets the state in the view and in Objects.
func (m *member) publish() {
	if m.hub.options.Objects != nil {
		m.hub.options.Objects.setState(m.state)
	}
	m.syncer.setState(m.state)
}

// recordState logs a change of the state, and records an event.
func (m *member) recordState(old ClusterState) {
	m.logger.Info("Cluster state changed", "state", m.state.Reachability, "before", old.Reachability, "message", m.state.Message)
	switch {
	case m.state.Reachable():
		m.hub.events.recordf(m.spec, corev1.EventTypeNormal, string(m.state.Reachability), "what is known of cluster %q is current", m.name)
	case m.state.Reachability != Connecting && m.state.Reachability != Refused: // Connecting is no problem, and Refused has been recorded.
		m.hub.events.recordf(m.spec, corev1.EventTypeWarning, string(m.state.Reachability), "cluster %q: %s", m.name, m.state.Message)
	}
}

// teardown ends the connections, and removes the cluster from the view unless the hub stops.
func (m *member) teardown() {
	m.syncer.queue.ShutDown()
	m.syncing.Wait() // The syncer must not store bundles in the view of the next member of that name.
	if !m.hub.stopping() {
		if m.hub.options.Objects != nil {
			m.hub.options.Objects.Detach(m.name)
		}
		m.hub.view.removeCluster(m.name)
		m.logger.Info("Cluster removed")
	}
	close(m.removed)
	m.running.Wait()
	m.quota.unregister()
}
