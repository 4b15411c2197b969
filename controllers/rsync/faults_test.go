package rsync_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// historiesVariable is the environment variable with the range of random histories to run, such as 0-99. By default, the first
// fewHistories are run.
const historiesVariable = "HEALTHSCOPE_RSYNC_HISTORIES"

const fewHistories = 5

// theirWords is a part of the error about a resource whose field another manager has set.
const theirWords = "conflict"

// injected counts the faults in histories, by kind.
type injected struct {
	mu    sync.Mutex
	count map[string]int
}

func (i *injected) add(kind string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.count[kind]++
}

// faulty is the connection to an API server that refuses requests, does not answer, or does not answer after it has carried out a
// request.
type faulty struct {
	next     http.RoundTripper
	injected *injected

	mu sync.Mutex
	// random is nil when there are no faults.
	random *rand.Rand
	// frozen is closed when the program thaws; nil while it is not frozen.
	frozen chan struct{}
}

func (f *faulty) draw(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.random == nil {
		return n
	}
	return f.random.IntN(n)
}

func (f *faulty) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.random = nil
}

// freeze holds all requests until thaw.
func (f *faulty) freeze() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = make(chan struct{})
}

func (f *faulty) thaw() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.frozen)
	f.frozen = nil
}

// hold waits while the program is frozen.
func (f *faulty) hold() {
	f.mu.Lock()
	frozen := f.frozen
	f.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

var (
	errReset = errors.New("connection reset by peer")
	errHang  = errors.New("net/http: timeout awaiting response headers")
)

// hangs is how long a request hangs until the client gives up.
const hangs = 200 * time.Millisecond

// refusals are the error responses of an API server, or of a proxy before it.
var refusals = []metav1.Status{
	{Code: 401, Reason: metav1.StatusReasonUnauthorized, Message: "Unauthorized"},
	{Code: 403, Reason: metav1.StatusReasonForbidden, Message: `configmaps "x" is forbidden: exceeded quota: q`},
	{Code: 403, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "w" denied the request: no`},
	{Code: 404}, // A path that is not served, for example because its kind was removed, or because a load balancer is wrong.
	{Code: 409, Reason: metav1.StatusReasonConflict, Message: "the object has been modified"},
	{Code: 410, Reason: metav1.StatusReasonGone, Message: "gone"},
	{Code: 413, Reason: metav1.StatusReasonRequestEntityTooLarge, Message: "too large"},
	{Code: 422, Reason: metav1.StatusReasonInvalid, Message: "invalid"},
	{Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: "too many requests"},
	{Code: 500, Reason: metav1.StatusReasonInternalError, Message: "internal error"},
	{Code: 502},
	{Code: 503, Reason: metav1.StatusReasonServiceUnavailable, Message: "unavailable"},
	{Code: 504, Reason: metav1.StatusReasonTimeout, Message: "timeout"},
}

// refusal returns an error response. Without a reason, the response does not come from an API server.
func refusal(r *http.Request, status metav1.Status) *http.Response {
	body, header := []byte("404 page not found"), http.Header{"Content-Type": {"text/plain"}}
	if status.Reason != "" {
		status.TypeMeta, status.Status = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, metav1.StatusFailure
		body, _ = json.Marshal(status) //nolint:errchkjson // Text and a number.
		header.Set("Content-Type", "application/json")
	}
	return &http.Response{StatusCode: int(status.Code), Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: r}
}

// RoundTrip implements http.RoundTripper.
func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	f.hold()
	switch f.draw(20) {
	case 0, 1:
		status := refusals[f.draw(len(refusals))%len(refusals)]
		kind := fmt.Sprint(status.Code)
		if strings.Contains(status.Message, "admission") {
			kind = "admission denied"
		}
		f.injected.add(kind)
		return refusal(r, status), nil
	case 2:
		f.injected.add("reset before commit")
		return nil, errReset
	case 3:
		f.injected.add("reset after commit")
		return nil, f.lose(r, errReset)
	case 4:
		f.injected.add("hang")
		err := errHang
		if f.draw(2) == 0 {
			err = f.lose(r, errHang)
		}
		select {
		case <-time.After(hangs):
		case <-r.Context().Done():
		}
		return nil, err
	default:
		response, err := f.next.RoundTrip(r)
		f.hold()
		return response, err
	}
}

// lose sends a request, and discards the response.
func (f *faulty) lose(r *http.Request, err error) error {
	if response, failed := f.next.RoundTrip(r); failed == nil {
		_ = response.Body.Close()
	}
	return err
}

// replica is a runner with its own connections to etcd and to the clusters.
type replica struct {
	faults *faulty
	wire   *faults.Wire
	store  *appcontext.Store
	stop   func()
}

// history is a random history of two contexts, of which the second is an update of the first.
type history struct {
	old, new, namespace string
	random              *rand.Rand
	seed                uint64
	injected            *injected
	replicas            []*replica
	// killed counts the replicas that were killed and have not noticed that yet.
	killed sync.WaitGroup
	// foreign are objects that must be left as they are, by name. taken is true if the first context wants one of them.
	foreign map[string]*corev1.ConfigMap
	taken   bool
	// last is the context of the last event.
	last string
	done []string
}

func newHistory(ctx context.Context, i int, counts *injected) *history {
	GinkgoHelper()
	h := &history{
		old: fmt.Sprint(20000 + 2*i), new: fmt.Sprint(20001 + 2*i), namespace: newNamespace(ctx), random: rand.New(rand.NewPCG(uint64(i), 2)), seed: uint64(i),
		injected: counts, foreign: map[string]*corev1.ConfigMap{},
	}
	h.taken = h.random.IntN(3) == 0
	first := newComposite(h.old, h.namespace, "a", "b").
		add("a", edge01, "same+ConfigMap", with("same", "1"), "changed+ConfigMap", with("changed", "1")).
		add("b", edge01, "b+ConfigMap", with("b", "1"))
	if h.taken {
		first.add("b", edge02, "removed+ConfigMap", with("removed", "1"), "taken+ConfigMap", with("taken", "1"))
	} else {
		first.add("b", edge02, "removed+ConfigMap", with("removed", "1"))
	}
	first.values["/context/"+h.old+"/app/b/instruction/dependency/"] = `"[{\"app\":\"a\",\"opstatus\":\"Deployed\"}]"`
	put(ctx, first.values)
	second := newComposite(h.new, h.namespace, "a", "b").
		add("a", edge01, "same+ConfigMap", with("same", "1"), "changed+ConfigMap", with("changed", "2"), "added+ConfigMap", with("added", "2")).
		add("b", edge01, "b+ConfigMap", with("b", "2"))
	second.values["/context/"+h.new+"/statusappctxid/"] = strconv.Quote(h.old)
	put(ctx, second.values)
	for name, labels := range map[string]map[string]string{"foreign": nil, "taken": {"emco/deployment-id": "7-b"}} {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: name, Labels: labels}, Data: map[string]string{"k": "theirs"}}
		Expect(api.Create(ctx, o)).To(Succeed())
		h.foreign[name] = o
	}
	h.lead() //nolint:contextcheck // A replica ends when it is killed.
	h.lead() //nolint:contextcheck // The same.
	return h
}

// lead starts a replica.
func (h *history) lead() {
	GinkgoHelper()
	n := newNetwork()
	r := &replica{faults: &faulty{next: n.access.Client.Transport, injected: h.injected, random: rand.New(rand.NewPCG(h.seed, uint64(3+len(h.done))))}}
	n.access.Client = &http.Client{Transport: r.faults}
	var err error
	r.wire, err = faults.NewWire(strings.TrimPrefix(etcd.Endpoint(), "http://"))
	Expect(err).NotTo(HaveOccurred())
	r.store, err = appcontext.Open(appcontext.Options{Endpoints: []string{"http://" + r.wire.Addr()}, Timeout: time.Second})
	Expect(err).NotTo(HaveOccurred())
	stop := start(n, func(o *rsync.Options) {
		o.Store = r.store
		o.RetryRefused = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 4, Cap: 400 * time.Millisecond}
	})
	r.stop = func() {
		stop()
		_ = r.store.Close()
		_ = r.wire.Close()
	}
	h.replicas = append(h.replicas, r)
}

// each calls do with each replica.
func (h *history) each(do func(*replica)) {
	for _, r := range h.replicas {
		do(r)
	}
}

// kill ends a replica in the middle of its work: the connection to etcd is cut and the lock expires. It starts another replica.
func (h *history) kill(ctx context.Context) {
	GinkgoHelper()
	r := h.replicas[0]
	h.replicas = h.replicas[1:]
	r.wire.Refuse(true)
	r.wire.Reset()
	h.killed.Go(r.stop)
	h.expire(ctx)
	h.lead() //nolint:contextcheck // A replica ends when it is killed.
}

// expire revokes the lease of the holder of the lock, as if it had expired.
func (h *history) expire(ctx context.Context) {
	GinkgoHelper()
	locks, err := raw.Get(ctx, "/healthscope/lock/rsync/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend), clientv3.WithLimit(1))
	Expect(err).NotTo(HaveOccurred())
	for _, kv := range locks.Kvs {
		_, err := raw.Revoke(ctx, clientv3.LeaseID(kv.Lease))
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) { // It has ended meanwhile.
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// freeze stops a replica and its connections, and lets the lock expire meanwhile. It takes less time than the handover of a lost
// lock.
func (h *history) freeze(ctx context.Context) {
	GinkgoHelper()
	r := h.replicas[h.random.IntN(len(h.replicas))]
	r.faults.freeze()
	r.wire.BlackHole()
	h.expire(ctx)
	h.pass(ctx, 10)
	r.faults.thaw()
	r.wire.Mend()
}

// full makes etcd reject all writes that need space, for a while.
func (h *history) full(ctx context.Context) {
	GinkgoHelper()
	status, err := raw.Status(ctx, etcd.Endpoint())
	Expect(err).NotTo(HaveOccurred())
	_, err = etcdserverpb.NewMaintenanceClient(raw.ActiveConnection()).Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId, Alarm: etcdserverpb.AlarmType_NOSPACE,
	})
	Expect(err).NotTo(HaveOccurred())
	h.pass(ctx, 40)
	_, err = raw.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	Expect(err).NotTo(HaveOccurred())
}

// event adds an event, if the state of the context allows it.
func (h *history) event(ctx context.Context, id string, event deploy.Event, from string) string {
	GinkgoHelper()
	err := rsync.Enqueue(ctx, store, id, event, from, time.Now())
	if _, notAllowed := errors.AsType[*deploy.NotAllowedError](err); notAllowed {
		return fmt.Sprintf("no %s of %s", event, id)
	}
	Expect(err).NotTo(HaveOccurred())
	h.last = id
	return fmt.Sprintf("%s of %s", event, id)
}

// act does a random action of a user, or injects a random fault, and returns its description.
func (h *history) act(ctx context.Context) string {
	GinkgoHelper()
	fault := func(kind string, do func(context.Context)) string {
		h.injected.add(kind)
		do(ctx)
		return kind
	}
	switch h.random.IntN(15) {
	case 0, 1, 2:
		return h.event(ctx, h.old, deploy.EventInstantiate, "")
	case 3:
		return h.event(ctx, h.old, deploy.EventTerminate, "")
	case 4, 5:
		return h.event(ctx, h.new, deploy.EventUpdate, h.old)
	case 6:
		return h.event(ctx, h.old, deploy.EventUpdate, h.new)
	case 7:
		return h.event(ctx, h.new, deploy.EventTerminate, "")
	case 8:
		id := []string{h.old, h.new}[h.random.IntN(2)]
		Expect(rsync.Stop(ctx, store, id, time.Now())).To(Succeed())
		return "stop of " + id
	case 9:
		return fault("kill", h.kill)
	case 10:
		return fault("freeze and thaw", h.freeze)
	case 11:
		return fault("lock lost", h.expire)
	case 12:
		return fault("etcd away", func(ctx context.Context) {
			h.each(func(r *replica) { r.wire.Refuse(true); r.wire.Reset() })
			h.pass(ctx, h.random.IntN(100))
			h.each(func(r *replica) { r.wire.Refuse(false) })
		})
	case 13:
		return fault("etcd slow", func(context.Context) {
			h.each(func(r *replica) { r.wire.Delay(time.Duration(h.random.IntN(50)) * time.Millisecond) })
		})
	default:
		return fault("etcd full", h.full)
	}
}

// pass lets time pass, and checks meanwhile that the statuses in etcd are true.
func (h *history) pass(ctx context.Context, moments int) {
	GinkgoHelper()
	for range moments {
		h.compare(ctx)
	}
}

// run runs the history. At its end, the content of etcd and the cluster must match the last event, and a termination must delete
// everything.
func (h *history) run(ctx context.Context) {
	GinkgoHelper()
	acts := 3 + h.random.IntN(8)
	for range acts {
		h.done = append(h.done, h.act(ctx))
		h.pass(ctx, h.random.IntN(20))
	}
	By(strings.Join(h.done, ", "))
	h.each(func(r *replica) {
		r.faults.heal()
		r.wire.Delay(0)
	})
	h.settle(ctx)
	for _, id := range []string{h.new, h.old} {
		if err := rsync.Enqueue(ctx, store, id, deploy.EventTerminate, "", time.Now()); err == nil {
			h.last = id
			h.settle(ctx)
			Expect(stateOf(ctx, id)).To(Equal(state("Terminated")), "%s after %v", id, h.done)
		}
	}
	for _, name := range []string{"same", "changed", "added", "removed", "b"} {
		Expect(dataOf(ctx, h.namespace, name)).To(Equal("absent"), "%s after %v", name, h.done)
	}
	for _, app := range []string{"a", "b"} {
		Expect(exists(ctx, &k8spluginv1alpha1.ResourceBundleState{}, h.namespace, h.old+"-"+app)).To(BeFalse(), "%s after %v", app, h.done)
	}
	for name, was := range h.foreign {
		is := &corev1.ConfigMap{}
		Expect(exists(ctx, is, h.namespace, name)).To(BeTrue())
		Expect(is.ResourceVersion).To(Equal(was.ResourceVersion), "%s was touched after %v", name, h.done)
	}
	h.each(func(r *replica) { r.stop() })
	h.killed.Wait()
}

// settle waits until the last event has the required result, and compares etcd with the cluster.
func (h *history) settle(ctx context.Context) {
	GinkgoHelper()
	Eventually(h.unsettled).WithContext(ctx).WithTimeout(time.Minute).WithPolling(10*time.Millisecond).Should(BeEmpty(), "after %v", h.done)
	h.compare(ctx)
}

// unsettled returns a description of what is not yet as required; empty when everything is.
func (h *history) unsettled(ctx context.Context) string {
	GinkgoHelper()
	final := []appcontext.State{"", "Created", "Instantiated", "InstantiateFailed", "Terminated", "TerminateFailed", "Updated", "UpdatedFailed"}
	for _, id := range []string{h.old, h.new, h.old} { // The end of an update adds deletions to the other context.
		all := stored(ctx, id)
		s, err := store.Snapshot(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		l, err := deploy.ReadLifecycle(s)
		Expect(err).NotTo(HaveOccurred())
		_, active := all["/activecontext/"+id+"/"]
		switch {
		case l.Active() || active:
			return id + " is active"
		case l.PendingTerminate:
			return id + " waits for a termination"
		case !slices.Contains(final, l.Current) || l.Status != l.Current:
			return fmt.Sprintf("%s is %q, and its status %q", id, l.Current, l.Status)
		}
		if wrong := h.wrongEnd(ctx, id, l); wrong != "" {
			return wrong
		}
	}
	return ""
}

// wrongEnd returns the reason why the last event of a context does not have the required result; empty when it has.
func (h *history) wrongEnd(ctx context.Context, id string, l deploy.Lifecycle) string {
	GinkgoHelper()
	if len(l.Queue) == 0 || l.Stop {
		return ""
	}
	switch last := l.Queue[len(l.Queue)-1]; {
	case last.Status == deploy.EventSkipped:
	case id != h.last && last.Event != deploy.EventUpdateDelete: // A later event of the other context may have ended it.
	case h.taken && id == h.old && last.Event.Deploys():
		words, err := store.Sidecar(ctx, appcontext.AppInCluster{ContextID: h.old, App: "b", Cluster: edge02}.Handle().Level("resource/taken+ConfigMap").Level("status"))
		Expect(err).NotTo(HaveOccurred())
		if last.Status != deploy.EventError || !strings.Contains(words, theirWords) {
			return fmt.Sprintf("%s wants what is another's, and %+v says %q", id, l, words)
		}
	case last.Status != deploy.EventDone:
		return fmt.Sprintf("the last event of %s has not succeeded: %+v", id, l)
	}
	return ""
}

// compare compares the statuses of resources in etcd with the cluster. It reads etcd before and after it reads the cluster, and
// skips statuses that have changed.
func (h *history) compare(ctx context.Context) {
	GinkgoHelper()
	before, err := store.Snapshot(ctx, h.old)
	Expect(err).NotTo(HaveOccurred())
	in := map[string]string{}
	for _, name := range []string{"same", "changed", "added", "removed", "b"} {
		in[name] = dataOf(ctx, h.namespace, name)
	}
	after, err := store.Snapshot(ctx, h.old)
	Expect(err).NotTo(HaveOccurred())
	for _, a := range after.Apps() {
		for _, c := range a.Clusters() {
			for _, r := range c.Resources() {
				name, _, _ := r.Split()
				at := r.Handle().Level("status")
				if _, ours := in[name]; !ours || before.StoredRevision(at) != after.StoredRevision(at) {
					continue
				}
				status, err := r.Status()
				Expect(err).NotTo(HaveOccurred())
				by, err := r.Reference()
				Expect(err).NotTo(HaveOccurred())
				switch status {
				case appcontext.ResourceApplied:
					want := map[string]string{h.old: "v1", h.new: "v2"}[by]
					if name == "same" {
						want = "v1"
					}
					Expect(in[name]).To(Equal(want), "%s is Applied by %s after %v", name, by, h.done)
				case appcontext.ResourceDeleted:
					Expect(in[name]).To(Equal("absent"), "%s is Deleted after %v", name, h.done)
				default:
				}
			}
		}
	}
}

var _ = Describe("rsync, killed after a deletion of which it has no answer, and then stopped", func() {
	It("calls nothing applied that may be gone", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite("1060", namespace, "a").add("a", edge01, "kept+ConfigMap", configMap("kept"), "gone+ConfigMap", configMap("gone")).values)
		n := newNetwork()
		kill := start(n)
		instantiate(ctx, "1060")
		kill()
		deleted := make(chan struct{}, 1)
		n.intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) { // The responses to deletions are lost.
			response, err := next.RoundTrip(r)
			if r.Method != http.MethodDelete || err != nil {
				return response, err
			}
			_ = response.Body.Close()
			deleted <- struct{}{}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		kill = start(n)
		enqueue(ctx, "1060", deploy.EventTerminate)
		Eventually(deleted).Should(Receive())
		kill()
		Expect(rsync.Stop(ctx, store, "1060", time.Now())).To(Succeed())
		start(newNetwork())
		becomes(ctx, "1060", "TerminateFailed")
		Expect(dataOf(ctx, namespace, "gone")).To(Equal("absent"))
		Expect(statuses(ctx, "1060")).To(HaveEach("Pending"))
	})
})

var _ = Describe("rsync, stopped while etcd is away", func() {
	It("ends, whether it works or waits for the lock", func(ctx SpecContext) {
		h := &history{injected: &injected{count: map[string]int{}}, random: rand.New(rand.NewPCG(1, 2))}
		h.lead()
		Eventually(func() int64 {
			locks, err := raw.Get(ctx, "/healthscope/lock/rsync/", clientv3.WithPrefix(), clientv3.WithCountOnly())
			Expect(err).NotTo(HaveOccurred())
			if locks.Count == 1 && len(h.replicas) == 1 {
				h.lead()
			}
			return locks.Count
		}).Should(BeEquivalentTo(2))
		h.each(func(r *replica) {
			r.wire.Refuse(true)
			r.wire.Reset()
		})
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			h.each(func(r *replica) { r.stop() })
		}()
		Eventually(stopped).Should(BeClosed())
		h.expire(ctx)
	})
})

var _ = Describe("rsync, whatever fails and whoever asks for what", func() {
	It("says what is true, loses nothing, and leaves alone what is not its own", func(ctx SpecContext) {
		first, last := 0, fewHistories-1
		if many := os.Getenv(historiesVariable); many != "" {
			_, err := fmt.Sscanf(many, "%d-%d", &first, &last)
			Expect(err).NotTo(HaveOccurred(), "%s is %q", historiesVariable, many)
		}
		counts := &injected{count: map[string]int{}}
		for i := first; i <= last; i++ {
			By(fmt.Sprintf("history %d", i))
			newHistory(ctx, i, counts).run(ctx)
		}
		GinkgoWriter.Printf("%d histories: %v\n", last-first+1, counts.count)
	})
})
