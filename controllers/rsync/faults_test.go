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
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// historiesVariable says how many random histories are run. A few are in each run of the tests.
const historiesVariable = "HEALTHSCOPE_RSYNC_HISTORIES"

const fewHistories = 5

// faulty is the way to an API server that refuses, gives no answer, or gives none after it has done what was asked.
type faulty struct {
	next http.RoundTripper

	mu sync.Mutex
	// random is nil when there are no faults.
	random *rand.Rand
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

var errReset = errors.New("connection reset by peer")

// RoundTrip implements http.RoundTripper.
func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	switch f.draw(16) {
	case 0:
		codes := []int{401, 403, 409, 410, 413, 422, 429, 500, 503}
		if r.Method == http.MethodPatch {
			codes = append(codes, 404)
		}
		code := codes[f.draw(len(codes))%len(codes)]
		body, err := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reasonOf(code), Message: "a fault"})
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
	case 1:
		return nil, errReset
	case 2:
		response, err := f.next.RoundTrip(r)
		if err == nil {
			_ = response.Body.Close()
		}
		return nil, errReset
	default:
		return f.next.RoundTrip(r)
	}
}

func reasonOf(code int) metav1.StatusReason {
	return map[int]metav1.StatusReason{
		401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict,
		410: metav1.StatusReasonGone, 413: metav1.StatusReasonRequestEntityTooLarge, 422: metav1.StatusReasonInvalid, 429: metav1.StatusReasonTooManyRequests,
		500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable,
	}[code]
}

// history is a random history of two contexts, of which the second is an update of the first.
type history struct {
	old, new, namespace string
	random              *rand.Rand
	network             *network
	faults              *faulty
	leaders             []func()
}

func newHistory(ctx context.Context, i int) *history {
	GinkgoHelper()
	h := &history{old: fmt.Sprint(20000 + 2*i), new: fmt.Sprint(20001 + 2*i), namespace: newNamespace(ctx), random: rand.New(rand.NewPCG(uint64(i), 2))}
	first := newComposite(h.old, h.namespace, "a", "b").
		add("a", edge01, "same+ConfigMap", with("same", "1"), "changed+ConfigMap", with("changed", "1")).
		add("b", edge01, "b+ConfigMap", with("b", "1")).add("b", edge02, "removed+ConfigMap", with("removed", "1"))
	first.values["/context/"+h.old+"/app/b/instruction/dependency/"] = `"[{\"app\":\"a\",\"opstatus\":\"Deployed\"}]"`
	put(ctx, first.values)
	second := newComposite(h.new, h.namespace, "a", "b").
		add("a", edge01, "same+ConfigMap", with("same", "1"), "changed+ConfigMap", with("changed", "2"), "added+ConfigMap", with("added", "2")).
		add("b", edge01, "b+ConfigMap", with("b", "2"))
	second.values["/context/"+h.new+"/statusappctxid/"] = strconv.Quote(h.old)
	put(ctx, second.values)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "foreign"}, Data: map[string]string{"k": "foreign"}}
	Expect(api.Create(ctx, foreign)).To(Succeed())
	h.network = newNetwork()
	h.faults = &faulty{next: h.network.access.Client.Transport, random: rand.New(rand.NewPCG(uint64(i), 3))}
	h.network.access.Client = &http.Client{Transport: h.faults}
	h.lead() //nolint:contextcheck // A replica ends when it is killed.
	h.lead() //nolint:contextcheck // The same.
	return h
}

// lead starts a replica.
func (h *history) lead() { h.leaders = append(h.leaders, start(h.network)) }

// act does something that users and machines do at any moment, and returns what.
func (h *history) act(ctx context.Context) string {
	GinkgoHelper()
	event := func(id string, event deploy.Event, from string) string {
		err := rsync.Enqueue(ctx, store, id, event, from, time.Now())
		if _, notAllowed := errors.AsType[*deploy.NotAllowedError](err); !notAllowed {
			Expect(err).NotTo(HaveOccurred())
		}
		return fmt.Sprintf("%s of %s", event, id)
	}
	switch h.random.IntN(10) {
	case 0, 1:
		return event(h.old, deploy.EventInstantiate, "")
	case 2:
		return event(h.old, deploy.EventTerminate, "")
	case 3, 4:
		return event(h.new, deploy.EventUpdate, h.old)
	case 5:
		return event(h.old, deploy.EventUpdate, h.new)
	case 6:
		return event(h.new, deploy.EventTerminate, "")
	case 7:
		id := []string{h.old, h.new}[h.random.IntN(2)]
		Expect(rsync.Stop(ctx, store, id, time.Now())).To(Succeed())
		return "stop of " + id
	case 8: // A replica is killed, and comes back.
		h.leaders[0]()
		h.leaders = h.leaders[1:]
		h.lead() //nolint:contextcheck // A replica ends when it is killed.
		return "kill"
	default: // The lock of a replica that is frozen is given to the other one, and it thaws.
		locks, err := raw.Get(ctx, "/healthscope/lock/rsync/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend), clientv3.WithLimit(1))
		Expect(err).NotTo(HaveOccurred())
		for _, kv := range locks.Kvs {
			_, err := raw.Revoke(ctx, clientv3.LeaseID(kv.Lease))
			Expect(err).NotTo(HaveOccurred())
		}
		return "freeze"
	}
}

// run runs the history. What etcd and the cluster hold at its end must be the same, and a termination must bring it to nothing.
func (h *history) run(ctx context.Context) {
	GinkgoHelper()
	var done []string
	acts := 3 + h.random.IntN(8)
	for range acts {
		done = append(done, h.act(ctx))
		for range h.random.IntN(40) {
			_ = stateOf(ctx, h.old) // Time passes.
		}
	}
	By(strings.Join(done, ", "))
	h.faults.heal()
	h.settle(ctx)
	for _, id := range []string{h.new, h.old} {
		if err := rsync.Enqueue(ctx, store, id, deploy.EventTerminate, "", time.Now()); err == nil {
			h.settle(ctx)
			Expect(stateOf(ctx, id)).To(Equal(state("Terminated")), "%s after %v", id, done)
		}
	}
	for _, name := range []string{"same", "changed", "added", "removed", "b"} {
		Expect(dataOf(ctx, h.namespace, name)).To(Equal("absent"), "%s after %v", name, done)
	}
	for _, app := range []string{"a", "b"} {
		Expect(exists(ctx, &k8spluginv1alpha1.ResourceBundleState{}, h.namespace, h.old+"-"+app)).To(BeFalse(), "%s after %v", app, done)
	}
	Expect(dataOf(ctx, h.namespace, "foreign")).To(Equal("foreign"))
	for _, stop := range h.leaders {
		stop()
	}
}

// settle waits until nothing is left to do, and compares etcd with the cluster.
func (h *history) settle(ctx context.Context) {
	GinkgoHelper()
	for _, id := range []string{h.old, h.new, h.old} {
		Eventually(stateOf).WithContext(ctx).WithArguments(id).WithPolling(10 * time.Millisecond).ShouldNot(HaveSuffix("active"))
	}
	final := []appcontext.State{"", "Created", "Instantiated", "InstantiateFailed", "Terminated", "TerminateFailed", "Updated", "UpdatedFailed"}
	for _, id := range []string{h.old, h.new} {
		s, err := store.Snapshot(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		l, err := deploy.ReadLifecycle(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(l.Active()).To(BeFalse())
		Expect(l.PendingTerminate).To(BeFalse())
		Expect(slices.Contains(final, l.Current)).To(BeTrue(), string(l.Current))
		Expect(l.Status).To(Equal(l.Current))
	}
	h.compare(ctx)
}

// compare compares what etcd says of resources with the cluster.
func (h *history) compare(ctx context.Context) {
	GinkgoHelper()
	s, err := store.Snapshot(ctx, h.old)
	Expect(err).NotTo(HaveOccurred())
	for _, a := range s.Apps() {
		for _, c := range a.Clusters() {
			for _, r := range c.Resources() {
				status, err := r.Status()
				Expect(err).NotTo(HaveOccurred())
				name, _, _ := r.Split()
				switch status {
				case appcontext.ResourceApplied:
					o := &corev1.ConfigMap{}
					Expect(api.Get(ctx, types.NamespacedName{Namespace: h.namespace, Name: name}, o)).To(Succeed(), "%s is Applied", name)
					by, err := r.Reference()
					Expect(err).NotTo(HaveOccurred())
					body := stored(ctx, by)["/context/"+by+"/app/"+a.Name()+"/cluster/"+c.Name()+"/resource/"+r.Name()+"/"]
					Expect(body).To(ContainSubstring("k: "+o.Data["k"]+`\n`), "%s is Applied by %s", name, by)
				case appcontext.ResourceDeleted:
					Expect(dataOf(ctx, h.namespace, name)).To(Equal("absent"), "%s is Deleted", name)
				default:
				}
			}
		}
	}
}

// lossy is the way to an API server whose answers to deletions are lost.
type lossy struct {
	next    http.RoundTripper
	deleted chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (l lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if r.Method != http.MethodDelete || err != nil {
		return response, err
	}
	_ = response.Body.Close()
	l.deleted <- struct{}{}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

var _ = Describe("rsync, killed after a deletion of which it has no answer, and then stopped", func() {
	It("calls nothing applied that may be gone", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite("1060", namespace, "a").add("a", edge01, "kept+ConfigMap", configMap("kept"), "gone+ConfigMap", configMap("gone")).values)
		n := newNetwork()
		kill := start(n)
		instantiate(ctx, "1060")
		kill()
		way := lossy{n.access.Client.Transport, make(chan struct{}, 1)}
		n.access.Client = &http.Client{Transport: way}
		kill = start(n)
		enqueue(ctx, "1060", deploy.EventTerminate)
		Eventually(way.deleted).Should(Receive())
		kill()
		Expect(rsync.Stop(ctx, store, "1060", time.Now())).To(Succeed())
		start(newNetwork())
		Eventually(stateOf).WithContext(ctx).WithArguments("1060").Should(Equal(state("TerminateFailed")))
		Expect(dataOf(ctx, namespace, "gone")).To(Equal("absent"))
		Expect(statuses(ctx, "1060")).To(HaveEach("Pending"))
	})
})

var _ = Describe("rsync, whatever fails and whoever asks for what", func() {
	It("says what is true, loses nothing, and leaves alone what is not its own", func(ctx SpecContext) {
		histories := fewHistories
		if many := os.Getenv(historiesVariable); many != "" {
			n, err := strconv.Atoi(many)
			Expect(err).NotTo(HaveOccurred())
			histories = n
		}
		for i := range histories {
			By(fmt.Sprintf("history %d", i))
			newHistory(ctx, i).run(ctx)
		}
	})
})
