package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/healthscope/healthscope/healthscope"
)

// newKubeconfigFails begins the message while a new kubeconfig does not work.
const newKubeconfigFails = "the new kubeconfig does not work, and the one before stays in use: "

// member is a cluster of the fleet. One goroutine does everything that concerns it, so that no cluster waits for another one.
type member struct {
	hub    *hub
	name   string
	local  bool
	keeper *keeper
	logger logr.Logger
	cancel context.CancelFunc
	// running are all goroutines of the member, and gone is closed when nobody knows of it any more.
	running sync.WaitGroup
	gone    chan struct{}
	// judging is the goroutine of the keeper.
	judging sync.WaitGroup

	// wished is what the hub has wished last.
	wished wish
	wishes chan wish
	beats  chan struct{}
	tried  chan attempt
	// refreshed has room for one demand to read again what was judged by rules here.
	refreshed chan struct{}

	// What follows is the goroutine's own.
	wish wish
	// current is the connection that is in use, and next the one that is to replace it, or the first one.
	current, next *connection
	// renewal is the new token that is being tried for current; nil when none is.
	renewal *renewal
	// trouble is what is wrong with what was wished last, while something older is in use; empty when nothing is.
	trouble string
	// refused is why what was wished last is refused; empty when it is not.
	refused string
	// quota counts what is held of the cluster, and over says how it has been cut off.
	quota *quota
	over  over
	state ClusterState
}

func newMember(h *hub, name string, local bool, logger logr.Logger) *member {
	m := &member{
		hub: h, name: name, local: local, logger: logger.WithValues("cluster", name),
		gone: make(chan struct{}), wishes: make(chan wish, 1), beats: make(chan struct{}, 1), tried: make(chan attempt), refreshed: make(chan struct{}, 1),
		state: ClusterState{Name: name, Local: local, Reachability: Connecting, Since: h.clock.Now(), Message: "it has not been read yet"},
	}
	m.quota = h.quotas.open(name, local, m.wake)
	m.keeper = newKeeper(name, h.view, h.options.Policy, h.clock, h.past[name], m.wake)
	return m
}

// wake makes the member look whether something has changed. It does not block.
func (m *member) wake() {
	select {
	case m.beats <- struct{}{}:
	default:
	}
}

// wishFor says what is wished of the member from now on. Only one goroutine may call it.
func (m *member) wishFor(w wish) {
	select {
	case <-m.wishes: // It is out of date.
	default:
	}
	m.wishes <- w
}

// run keeps the member, which has been published, connected until ctx ends, and then forgets it.
func (m *member) run(ctx context.Context) {
	defer m.forget()
	m.judging.Go(func() { m.keeper.run(ctx) })
	for {
		var timer <-chan time.Time
		if next := soonest(m.nextLook(), m.over.until); !next.IsZero() {
			timer = m.hub.clock.After(max(next.Sub(m.hub.clock.Now()), time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return
		case w := <-m.wishes:
			m.adopt(ctx, w)
		case a := <-m.tried:
			m.renewed(a)
		case <-m.refreshed:
			m.reread()
		case <-m.beats:
		case <-timer:
		}
		m.promoteRead() //nolint:contextcheck // As above.
		m.keepWithin(ctx)
		m.assess() //nolint:contextcheck // As above.
	}
}

// connections returns the connections that there are.
func (m *member) connections() []*connection {
	return slices.DeleteFunc([]*connection{m.next, m.current}, func(c *connection) bool { return c == nil })
}

// nextLook returns when to look at the connections again; zero means when something is heard.
func (m *member) nextLook() time.Time {
	var next time.Time
	for _, c := range m.connections() {
		c.pulse.ask(func(l *liveness, now time.Time) { next = soonest(next, l.next(now)) })
	}
	return next
}

// promoteRead puts connections into use whose bundles have been read.
func (m *member) promoteRead() {
	for _, c := range m.connections() {
		if !c.known && c.isRead() {
			m.promote(c)
		}
	}
}

// refresh has bundles read again that were judged by rules here. It does not block.
func (m *member) refresh() {
	select {
	case m.refreshed <- struct{}{}:
	default:
	}
}

// reread reads again what was judged by rules here.
func (m *member) reread() {
	for _, c := range m.connections() {
		c.reread()
	}
}

// forget ends the connections, and what is known of the cluster; when the hub stops, that is nobody's business any more.
func (m *member) forget() {
	m.keeper.queue.ShutDown()
	m.judging.Wait() // Nothing of this member may be put into the view of the next one of that name.
	if !m.hub.stopping() {
		if m.hub.options.Objects != nil {
			m.hub.options.Objects.Detach(m.name)
		}
		m.hub.view.removeCluster(m.name)
		m.logger.Info("The cluster is forgotten")
	}
	close(m.gone)
	m.running.Wait()
	m.quota.close()
}

// adopt does what is wished of the member. The connection in use stays until another one is ready to replace it.
func (m *member) adopt(ctx context.Context, w wish) {
	adopted := m.wish.name != "" // Something was wished before.
	if adopted && w.problem != "" {
		w.namespaces = m.wish.namespaces // By a mistake nobody means all of them.
	}
	same := adopted && w.sameConnection(m.wish)
	switch {
	case w.maintenance != "":
		m.hub.takeBack(w)
	case !same:
		m.hub.takeBack(w, eventRefused, eventRotationFailed)
	}
	m.wish = w
	if same {
		return
	}
	if m.current != nil && m.current.token != nil {
		if token := w.renewedToken(m.current.wish); token != "" {
			m.renew(ctx, token)
			return
		}
	}
	m.allow(w) //nolint:contextcheck // Watches live longer than this call.
	m.reopen() // It may be another cluster.
	m.hangUp(m.next)
	m.begin(ctx, w)
}

// begin begins a connection that is to replace the one in use, or is the first one.
func (m *member) begin(ctx context.Context, w wish) {
	m.endRenewal()
	m.next, m.trouble, m.refused = nil, "", ""
	c, err := m.dial(ctx, w)
	if err != nil {
		m.refused = err.Error()
		if m.current != nil {
			m.trouble = "the new kubeconfig is refused, and the one before stays in use: " + shortened(m.refused)
		}
		m.hub.tellf(m.wish, corev1.EventTypeWarning, eventRefused, "%s", m.refused)
		m.logger.Info("The kubeconfig is refused", "problem", m.refused)
		return
	}
	m.next = c
}

// settle takes a connection into use through which objects can be read and bundles cannot, because they are not served
// there, when there is none through which they can. It stays in use until another one is as good, or its bundles have been read.
func (m *member) settle() {
	if m.next == nil || m.readsBundles() {
		return
	}
	var v verdict
	m.next.pulse.ask(func(l *liveness, at time.Time) { v = l.assess(at) })
	if v.reach != MonitorMissing {
		return
	}
	old := m.current
	m.current, m.next, m.trouble = m.next, nil, ""
	m.hub.takeBack(m.wish, eventRefused, eventRotationFailed)
	m.attach(m.current)
	m.hangUp(old)
}

// readsBundles says whether bundles are read through the connection in use, as far as is known. Once it reads them no
// more, because they are not served or nobody is let in, it has nothing that a new one has not.
func (m *member) readsBundles() bool {
	lost := !m.state.Answers() && m.state.Reachability != Connecting || m.state.blind
	return m.current != nil && m.current.known && !lost
}

// promote puts a connection into use whose bundles have been read.
func (m *member) promote(c *connection) {
	old := m.current
	switch {
	case m.next == c:
		m.current, m.next, m.trouble = m.next, nil, ""
		m.hub.takeBack(m.wish, eventRefused, eventRotationFailed)
	case old == c && !old.known:
		old = nil
	default:
		return // It is out of date.
	}
	m.current.known = true
	if old != nil {
		var before liveness
		old.pulse.ask(func(l *liveness, _ time.Time) { before = *l })
		c.pulse.tell(func(l *liveness, _ time.Time) { l.inherit(&before) })
	}
	m.keeper.stock(c.store)
	m.quota.dropped()
	m.hangUp(old)
	m.hub.view.setReader(m.name, c.reader)
	m.attach(m.current)
}

// hangUp ends a connection.
func (m *member) hangUp(c *connection) {
	if c != nil {
		c.cancel()
	}
}

// attach lets objects be watched through a connection.
func (m *member) attach(c *connection) {
	o := m.hub.options.Objects
	if o == nil || c.attached {
		return
	}
	if err := o.Attach(m.name, Access{Config: c.config, Client: c.http, Namespaces: c.namespaces, meter: c.meter}); err != nil {
		m.logger.Error(err, "Objects of the cluster cannot be watched")
		return
	}
	c.attached = true
}

// assess finds out what the cluster's state is, and tells everybody if that is news.
func (m *member) assess() {
	m.settle()
	state := m.state
	state.Maintenance, state.Labels, state.Message, state.blind = m.wish.maintenance, m.wish.labels, "", false
	var v verdict
	var heard, now time.Time
	var silence silence
	own, foreign := m.hub.view.filled(m.name)
	switch used := m.inUse(); {
	case !m.over.until.IsZero():
		v, now = verdict{reach: OverBudget, message: m.over.exceeded}, m.hub.clock.Now()
		heard = now
	case used != nil:
		used.pulse.ask(func(l *liveness, at time.Time) {
			l.own, l.foreign = own, foreign
			was := l.verdict
			v, now = l.assess(at), at
			if (m.current == nil || !m.current.known) && v.reach == Connected {
				v = l.reading(was) // All has been read, and is about to be put in place: whose bundles they are is not known before.
			}
			heard, silence = l.lastSeen(v.reach), l.silence(at)
		})
	case m.refused != "":
		v, now = verdict{reach: Refused, message: shortened(m.refused)}, m.hub.clock.Now()
	default:
		v, now = verdict{reach: Connecting, message: m.state.Message}, m.hub.clock.Now()
	}
	if m.local {
		m.hub.view.setSilence(silence)
	}
	v = m.over.during(v)
	m.doubtNext()
	state.namespaces = m.limits()
	state.Reachability, state.Message, state.blind, state.Unwatched = v.reach, v.message, v.blind, v.unwatched
	if m.trouble != "" {
		state.Message = join(v.message, m.trouble)
	}
	state.Message, state.Maintenance = healthscope.Clean(state.Message), healthscope.Clean(state.Maintenance)
	if state.Reachable() != m.state.Reachable() {
		state.Since = now
	}
	switch {
	case m.state.Unwatched || v.unwatched:
		state.LastSeen = m.hub.view.written(m.name)
	case m.state.Reachable() || state.Reachable():
		state.LastSeen = later(state.LastSeen, heard)
	}
	m.become(state)
}

// inUse returns the connection whose liveness is that of the cluster; nil when there is none.
func (m *member) inUse() *connection {
	if m.current != nil {
		return m.current
	}
	return m.next
}

// doubtNext tells when a connection that is to replace another one does not work.
func (m *member) doubtNext() {
	if m.current == nil || m.next == nil {
		return
	}
	var v verdict
	m.next.pulse.ask(func(l *liveness, now time.Time) { v = l.assess(now) })
	if v.reach == Connecting || v.reach == Connected {
		return
	}
	m.trouble = newKubeconfigFails + v.message
	if !m.next.told {
		m.next.told = true
		m.hub.tellf(m.wish, corev1.EventTypeWarning, eventRotationFailed, "%s", m.trouble)
		m.logger.Info("The new kubeconfig does not work", "problem", v.message)
	}
}

// become makes a state that of the cluster.
func (m *member) become(state ClusterState) {
	old := m.state
	if !old.sameAs(state) {
		m.state = state
		m.keeper.follow(state)
		if !old.Reachable() && old.Reachability != Connecting && state.Answers() {
			m.keeper.stock(nil) // What has changed in the meantime shows together with the cluster.
		}
		if state.Reachability != old.Reachability {
			m.tellOf(old)
		}
		m.publish()
		return
	}
	if !state.LastSeen.Equal(old.LastSeen) {
		m.state.LastSeen = state.LastSeen
		m.hub.view.setState(m.state)
	}
}

// publish shows the state in the view, and tells Objects of it.
func (m *member) publish() {
	if m.hub.options.Objects != nil {
		m.hub.options.Objects.setState(m.state)
	}
	m.hub.view.setState(m.state)
	switch {
	case !m.local:
	case m.keeper.stocked() && m.state.Reachability != Connecting:
		m.hub.view.settle()
	default:
		m.hub.view.wait(errors.New(m.state.Message))
	}
}

// tellOf tells people that the state is another one than before.
func (m *member) tellOf(old ClusterState) {
	m.logger.Info("The cluster's state has changed", "state", m.state.Reachability, "before", old.Reachability, "message", m.state.Message)
	switch {
	case m.state.Reachable():
		m.hub.tellf(m.wish, corev1.EventTypeNormal, string(m.state.Reachability), "what is known of cluster %q is current", m.name)
	case m.state.Reachability != Connecting && m.state.Reachability != Refused: // The former is no news, and the latter has been told of.
		m.hub.tellf(m.wish, corev1.EventTypeWarning, string(m.state.Reachability), "cluster %q: %s", m.name, m.state.Message)
	}
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// soonest returns the earlier of two times, of which zero means never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
