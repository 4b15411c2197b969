package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	goruntime "runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
)

// floodBudget returns a small part of the default budget of an installation, so that a flood ends soon. In extended tests it is
// the default.
func floodBudget() Budget {
	b := Budget{Bundles: 500, Resources: 2_500, Bytes: 5 << 20, Total: 20 << 20}
	if suite.IsExtended() {
		b = Budget{Bundles: 10_000, Resources: 100_000, Bytes: 100 << 20, Total: 400 << 20}
	}
	return b
}

// maxFloodHeap is the maximum live heap with one member that sends as much as it can, with the default budget.
const maxFloodHeap = 256 << 20

// stream is the response to a watch of bundles.
type stream struct {
	http.ResponseWriter

	buffer *bufio.Writer
	ctx    context.Context //nolint:containedctx // That of the request.
}

// send sends an event, and returns false when the client has disconnected.
func (s *stream) send(kind, object string) bool {
	_, err := fmt.Fprintf(s.buffer, `{"type":%q,"object":%s}`+"\n", kind, object)
	return err == nil && s.ctx.Err() == nil
}

func (s *stream) flush() {
	_ = s.buffer.Flush()
	_ = http.NewResponseController(s.ResponseWriter).Flush()
}

// complete ends the initial list.
func (s *stream) complete() {
	s.send("BOOKMARK", `{"apiVersion":"k8splugin.io/v1alpha1","kind":"ResourceBundleState","metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}`)
	s.flush()
}

// bundleJSON returns a bundle of n resources as an API server sends it.
func bundleJSON(tb testing.TB, name string, n int) string {
	tb.Helper()
	b := received(tb, "edge", name, n)
	b.APIVersion, b.Kind = "k8splugin.io/v1alpha1", "ResourceBundleState"
	data, err := json.Marshal(b)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// serveBundles starts an API server whose watch of bundles is served by watch, and which serves nothing else. It returns the
// kubeconfig.
func serveBundles(tb testing.TB, watch func(*stream)) []byte {
	tb.Helper()
	return kubeconfigOf(tb, startMember(tb, func(w http.ResponseWriter, r *http.Request) {
		switch resource := path.Base(r.URL.Path); {
		case resource == bundlesResource && r.URL.Query().Get("watch") == "true":
			w.Header().Set("Content-Type", "application/json")
			s := &stream{ResponseWriter: w, buffer: bufio.NewWriterSize(w, 64<<10), ctx: r.Context()}
			s.flush()
			watch(s)
		case resource == "readyz":
			_, _ = io.WriteString(w, "ok")
		default:
			http.NotFound(w, r)
		}
	}), "t")
}

// startMember starts an API server with a handler.
func startMember(tb testing.TB, handler http.HandlerFunc) *httptest.Server {
	tb.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

// kubeconfigOf returns a kubeconfig for a server, with a token.
func kubeconfigOf(tb testing.TB, server *httptest.Server, token string) []byte {
	tb.Helper()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	data, err := kubeconfig.New(kubeconfig.Member{Name: "edge", Server: server.URL, Authority: authority, Token: token})
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// newFloodHub returns a hub without a cluster of its own. Stop the hub before the servers of its members.
func newFloodHub(t *testing.T, b Budget) (h *hub, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	h = &hub{ctx: ctx, members: map[string]*member{}, environment: &environment{
		view: newView("local"), clock: clock.RealClock{},
		events: secretEvents{recording: true, recorder: quietRecorder{}}, quotas: quotas{hard: b, clock: clock.RealClock{}},
		options: Options{ClusterName: "local", Policy: healthscope.DefaultPolicy(), Members: &Members{Parse: kubeconfig.Parse}},
	}}
	return h, func() {
		cancel()
		h.running.Wait()
	}
}

// quietRecorder drops events.
type quietRecorder struct{ events.EventRecorder }

func (quietRecorder) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// addMember adds a server as a member of the hub.
func addMember(h *hub, name string, config []byte) {
	h.add(name, false, logr.Discard()).setSpec(clusterSpec{name: name, kubeconfig: config, secret: &corev1.ObjectReference{Name: name, UID: types.UID(name)}})
}

// liveHeap returns the size of the heap after the last garbage collection, in bytes.
func liveHeap() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// neighbour is a member without faults.
type neighbour struct {
	t       *testing.T
	hub     *hub
	changes chan string
	seen    chan string
}

// newNeighbour adds a member without faults to the hub.
func newNeighbour(t *testing.T, h *hub) *neighbour {
	t.Helper()
	n := &neighbour{t: t, hub: h, changes: make(chan string), seen: make(chan string, 1000)}
	changes, cancel := h.view.Subscribe(Bundles)
	t.Cleanup(cancel)
	go changes.Deliver(t.Context(), func(c Change) {
		if c, ok := c.(BundleChange); ok && c.Cluster == "neighbour" {
			n.seen <- c.Name
		}
	})
	addMember(h, "neighbour", serveBundles(t, func(s *stream) {
		s.complete()
		for {
			select {
			case object := <-n.changes:
				s.send("ADDED", object)
				s.flush()
			case <-s.ctx.Done():
				return
			}
		}
	}))
	n.change("first")
	return n
}

// change changes a bundle, waits until the view shows the change, and returns how long that took.
func (n *neighbour) change(name string) time.Duration {
	n.t.Helper()
	late := time.After(20 * time.Second)
	object := bundleJSON(n.t, name, 2)
	begin := time.Now()
	select {
	case n.changes <- object:
	case <-late:
		n.t.Fatal("the neighbour is not watched")
	}
	for {
		select {
		case seen := <-n.seen:
			if seen == name {
				return time.Since(begin)
			}
		case <-late:
			state, _ := n.hub.view.State("neighbour")
			n.t.Fatalf("bundle %q of the neighbour is not seen: it is %s: %s", name, state.Reachability, state.Message)
		}
	}
}

// samples is the minimum number of changes for the measurement of a delay.
const samples = 50

// changeSlack is how much later a change may be seen while another member floods. A change passes about ten goroutines of the
// neighbour's server and of the hub. Each of them may wait for a core, and all share the cores with the member that floods.
const changeSlack = time.Second

// delay returns the 95th percentile of the time until changes of a neighbour are seen. It makes at least samples changes, and
// continues until enough returns true.
func (n *neighbour) delay(phase string, enough func() bool) time.Duration {
	n.t.Helper()
	var times []time.Duration
	for len(times) < samples || !enough() {
		times = append(times, n.change(fmt.Sprintf("%s-%d", phase, len(times))))
		<-time.After(10 * time.Millisecond) // Without pauses the neighbour would use all memory.
	}
	slices.Sort(times)
	p95 := times[len(times)*95/100]
	n.t.Logf("%d changes of the neighbour, %s: median %s, 95th percentile %s, maximum %s", len(times), phase, times[len(times)/2], p95, times[len(times)-1])
	return p95
}

// undisturbed returns true: the samples are always enough.
func undisturbed() bool { return true }

// disturb adds a server as a member, waits until the member is in a state, and returns that state and the maximum live heap
// meanwhile. The neighbour changes all the time, and its changes must not be seen much later than before.
func disturb(t *testing.T, h *hub, n *neighbour, config []byte, want Reachability) (state ClusterState, most int64) {
	t.Helper()
	before := n.delay("undisturbed", undisturbed)
	late := time.Now().Add(2 * time.Minute)
	addMember(h, "edge", config)
	during := n.delay("disturbed", func() bool {
		most = max(most, liveHeap())
		state, _ = h.view.State("edge")
		switch {
		case most > 2*maxFloodHeap:
			t.Fatalf("the live heap has %d MiB", most>>20)
		case time.Now().After(late):
			t.Fatalf("the member is %s: %s", state.Reachability, state.Message)
		}
		return state.Reachability == want
	})
	if limit := 2*before + changeSlack; during > limit {
		t.Errorf("changes of the neighbour take %s, and may take %s", during, limit)
	}
	return state, most
}

// TestFloodingMemberIsCutOff: a member that sends as much as it can is cut off before it exhausts the hub's memory, and does not
// affect other members.
func TestFloodingMemberIsCutOff(t *testing.T) {
	page := bundleJSON(t, "NAME", 200)
	named := func(i int) string { return strings.Replace(page, `"name":"NAME"`, fmt.Sprintf(`"name":"b%d"`, i), 1) }
	small := bundleJSON(t, "NAME", 0)
	budget := floodBudget()
	cases := map[string]struct {
		watch func(*stream)
		want  string
	}{
		"an initial list that does not end": {func(s *stream) {
			for i := 0; s.send("ADDED", named(i)); i++ {
			}
		}, fmt.Sprintf("resources, and may hold %d resources", budget.Resources)},
		"endless events after the list": {func(s *stream) {
			s.complete()
			for i := 0; s.send("ADDED", named(i)); i++ {
			}
		}, fmt.Sprintf("resources, and may hold %d resources", budget.Resources)},
		"endless empty bundles": {func(s *stream) {
			s.complete()
			for i := 0; s.send("ADDED", strings.Replace(small, `"name":"NAME"`, fmt.Sprintf(`"name":"b%d"`, i), 1)); i++ {
			}
		}, fmt.Sprintf("bundles, and may hold %d bundles", budget.Bundles)},
		"a list that repeats": {func(s *stream) {
			for s.send("ADDED", small) {
			}
		}, fmt.Sprintf("it has not ended a list after %d events", budget.Bundles)},
		"huge names": {func(s *stream) {
			huge := strings.Repeat("x", 1<<20)
			for i := 0; s.send("ADDED", strings.Replace(small, `"name":"NAME"`, fmt.Sprintf(`"name":"%s%d"`, huge, i), 1)); i++ {
			}
		}, "MiB, and may hold " + mebibytes(budget.Bytes)},
		"an event that does not end": {func(s *stream) {
			s.complete()
			_, _ = s.buffer.WriteString(`{"type":"ADDED","object":{"kind":"`)
			for s.ctx.Err() == nil {
				if _, err := s.buffer.WriteString("no end is to be seen, "); err != nil {
					return
				}
			}
		}, "the server's event has more than 4194304 bytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			goruntime.GC() // Garbage of other tests must not count here.
			h, stop := newFloodHub(t, floodBudget())
			defer stop()
			n := newNeighbour(t, h)
			state, most := disturb(t, h, n, serveBundles(t, c.watch), OverBudget)
			if !strings.Contains(state.Message, c.want) {
				t.Errorf("the state says %q", state.Message)
			}
			t.Logf("the live heap had %d MiB: %s", most>>20, state.Message)
			if most > maxFloodHeap {
				t.Errorf("the live heap had %d MiB", most>>20)
			}
			n.change("after")
			for _, b := range h.view.All() {
				if b.Cluster == "edge" && !b.Stale {
					t.Fatal("a bundle of the member that was cut off is shown as current")
				}
			}
		})
	}
}

// TestEndlessLeasesAreNotRead: the hub reads the monitor's Lease with a list, whose size is limited. It would keep all Leases of a
// streaming list until that ends.
func TestEndlessLeasesAreNotRead(t *testing.T) {
	h, stop := newFloodHub(t, floodBudget())
	defer stop()
	h.options.Liveness = &Liveness{MonitorNamespace: "healthscope-system", Timeout: 10 * time.Second}
	listed := make(chan struct{})
	var once sync.Once
	addMember(h, "edge", kubeconfigOf(t, startMember(t, func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		switch {
		case path.Base(r.URL.Path) != leasesResource:
			http.NotFound(w, r)
		case query.Get("sendInitialEvents") == "true":
			t.Error("the hub asks for a stream of Leases, which need not end")
			once.Do(func() { close(listed) })
		case query.Get("watch") == "true":
			<-r.Context().Done()
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"apiVersion":"coordination.k8s.io/v1","kind":"LeaseList","metadata":{"resourceVersion":"1"},"items":[]}`)
			once.Do(func() { close(listed) })
		}
	}), "t"))
	select {
	case <-listed:
	case <-time.After(20 * time.Second):
		t.Fatal("the hub has not read the Lease")
	}
}

// TestIncompleteInitialListIsNotShown: a slow list that never ends does not affect other clusters, and none of its objects are
// shown.
func TestIncompleteInitialListIsNotShown(t *testing.T) {
	h, stop := newFloodHub(t, floodBudget())
	defer stop()
	n := newNeighbour(t, h)
	var once sync.Once
	dripping := make(chan struct{})
	drip := serveBundles(t, func(s *stream) {
		for i := 0; s.send("ADDED", bundleJSON(t, fmt.Sprintf("b%d", i), 2)); i++ {
			s.flush()
			if i == 20 {
				once.Do(func() { close(dripping) })
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-s.ctx.Done():
			}
		}
	})
	state, _ := disturb(t, h, n, drip, Connecting)
	<-dripping
	if state.Answers() || slices.ContainsFunc(h.view.All(), func(b *Bundle) bool { return b.Cluster == "edge" }) {
		t.Errorf("the member is %s, and %d bundles are shown", state.Reachability, len(h.view.All()))
	}
}

// TestEndlessChangesAreThrottled: if a member changes the same bundle without end, the hub reads it only at the allowed rate.
func TestEndlessChangesAreThrottled(t *testing.T) {
	const perSecond, atOnce = 50, 500
	b := floodBudget()
	b.Changes = perSecond
	h, stop := newFloodHub(t, b)
	defer stop()
	bundle := bundleJSON(t, "same", 2)
	begin := time.Now()
	addMember(h, "edge", serveBundles(t, func(s *stream) {
		s.complete()
		for i := 1; s.send("MODIFIED", strings.Replace(bundle, `"resourceVersion":"4711"`, fmt.Sprintf(`"resourceVersion":"%d"`, i), 1)); i++ {
		}
	}))
	eventually(t, "it changes for more than a second after its burst", func() bool {
		came := int64(0)
		if b := h.view.Bundle(keyOf("edge", "same")); b != nil {
			came, _ = strconv.ParseInt(b.ResourceVersion, 10, 64)
		}
		if most := atOnce + int64(perSecond*time.Since(begin).Seconds()) + 1; came > most {
			t.Fatalf("%d changes were read in %s, of at most %d", came, time.Since(begin), most)
		}
		return came >= atOnce+2*perSecond
	})
}
