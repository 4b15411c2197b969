package enrol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/healthscope/healthscope/controllers/fleet"
)

// namespace and lease are the namespace and the Lease with which the tests publish.
const namespace = "healthscope-clusters"

var lease = types.NamespacedName{Namespace: "healthscope-system", Name: "healthscope-controller"}

// fakeStates are clusters whose states the test sets.
type fakeStates struct {
	changes *fleet.Subscription

	mu     sync.Mutex
	states []fleet.ClusterState
}

func (f *fakeStates) States() []fleet.ClusterState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.states
}

func (*fakeStates) RejectedSecrets() []fleet.RejectedSecret { return nil }

func (f *fakeStates) Subscribe(fleet.Topic) (*fleet.Subscription, func()) {
	f.changes = fleet.NewSubscription()
	return f.changes, func() { f.changes = nil }
}

// set changes the states and notifies the subscriber.
func (f *fakeStates) set(states ...fleet.ClusterState) {
	f.mu.Lock()
	f.states = states
	f.mu.Unlock()
	f.changes.Add(fleet.ClusterChange{})
}

// memoryHub is an API server in memory that counts writes, and may reject them.
type memoryHub struct {
	client.Client

	mu     sync.Mutex
	writes []time.Time
	broken error
}

// breakWith makes writes fail from now on; nil lets them succeed.
func (h *memoryHub) breakWith(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken = err
}

// written returns the times of the writes, including failed ones.
func (h *memoryHub) written() []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.writes)
}

func newHub(objects ...client.Object) *memoryHub {
	h := &memoryHub{}
	write := func(do func() error) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.writes = append(h.writes, time.Now())
		if h.broken != nil {
			return h.broken
		}
		return do()
	}
	h.Client = interceptor.NewClient(fake.NewClientBuilder().WithObjects(objects...).Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return write(func() error { return c.Update(ctx, o, opts...) })
		},
	})
	return h
}

func (h *memoryHub) read(t *testing.T, now time.Time) Report {
	t.Helper()
	r, err := Read(t.Context(), h, namespace, now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// publishing runs a publisher in a bubble until stop is called.
func publishing(t *testing.T, h *memoryHub, states *fakeStates) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	p := &publisher{reader: h, writer: h, states: states, namespace: namespace, lease: ObjectName(lease), logger: logr.Discard()}
	go func() { ended <- p.Start(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func connected(name string) fleet.ClusterState {
	return fleet.ClusterState{Name: name, Reachability: fleet.Connected, Since: begin, LastSeen: time.Now()}
}

func lost(name string) fleet.ClusterState {
	return fleet.ClusterState{Name: name, Reachability: fleet.Unreachable, Since: begin, LastSeen: begin, Message: "no answer"}
}

func TestPublisherCoalescesChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, states := newHub(), &fakeStates{states: []fleet.ClusterState{connected("a"), connected("b")}}
		stop := publishing(t, h, states)
		<-time.After(time.Minute)
		if len(h.written()) != 1 {
			t.Fatalf("%d writes at the start, want 1", len(h.written()))
		}
		// Time passes, and connected clusters are seen, but no state changes.
		states.set(connected("a"), connected("b"))
		<-time.After(time.Hour)
		if len(h.written()) != 1 {
			t.Errorf("%d writes though nothing has changed", len(h.written())-1)
		}
		// A storm: a change each 10 milliseconds for 10 seconds.
		for i := range 1000 {
			if i%2 == 0 {
				states.set(connected("a"), lost("b"))
			} else {
				states.set(connected("a"), connected("b"))
			}
			<-time.After(10 * time.Millisecond)
		}
		states.set(lost("a"), lost("b"))
		<-time.After(time.Minute)
		if n := len(h.written()) - 1; n < 1 || n > 7 {
			t.Errorf("%d writes in 10 seconds, want at most one in 2", n)
		}
		for i, writes := 1, h.written(); i < len(writes); i++ {
			if pause := writes[i].Sub(writes[i-1]); pause < 2*time.Second {
				t.Errorf("writes follow each other after %s", pause)
			}
		}
		if r := h.read(t, time.Now()); r.Clusters[0].State != fleet.Unreachable || r.Clusters[1].State != fleet.Unreachable {
			t.Errorf("published %v, want the last state", r.Clusters)
		}
		stop()
		if states.changes != nil {
			t.Error("it is still subscribed")
		}
	})
}

func TestPublisherRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, states := newHub(), &fakeStates{states: []fleet.ClusterState{lost("a")}}
		h.breakWith(errors.New("no"))
		stop := publishing(t, h, states)
		<-time.After(10 * time.Minute)
		if n := len(h.written()); n < 8 || n > 20 {
			t.Errorf("%d attempts in 10 minutes", n)
		}
		h.breakWith(nil)
		<-time.After(2 * time.Minute)
		if r := h.read(t, time.Now()); len(r.Clusters) != 1 {
			t.Errorf("published %v", r.Clusters)
		}
		stop()
	})
}

// TestNewPublisherWritesNothingUnchanged checks that a new leader does not write the same content as the former leader again.
func TestNewPublisherWritesNothingUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, states := newHub(), &fakeStates{states: []fleet.ClusterState{connected("a"), lost("b")}}
		for range 2 {
			stop := publishing(t, h, states)
			<-time.After(time.Minute)
			stop()
		}
		if len(h.written()) != 1 {
			t.Errorf("%d writes, want 1", len(h.written()))
		}
	})
}

func TestDocumentDoesNotChangeWithTime(t *testing.T) {
	at := func(lastSeen time.Time) Document {
		s := connected("a")
		s.LastSeen = lastSeen
		return newDocument(ObjectName(lease), []fleet.ClusterState{s, lost("b")}, nil)
	}
	if diff := cmp.Diff(at(begin), at(begin.Add(time.Hour))); diff != "" {
		t.Errorf("it changes while a connected cluster is seen:\n%s", diff)
	}
	if seen := at(begin).Clusters[1].LastSeen; seen == nil || !seen.Equal(begin) {
		t.Errorf("the lost cluster was seen at %v, want %v", seen, begin)
	}
}

func TestDocumentSizeIsBounded(t *testing.T) {
	for _, n := range []int{0, 1, 500, 3000, 9000} {
		for name, text := range map[string]string{
			"no message": "", "short": "no answer", "long": strings.Repeat("x", 2000), "two bytes a letter": strings.Repeat("ä", 1000), "six bytes a letter": strings.Repeat("\x00", 2000),
		} {
			states := make([]fleet.ClusterState, n)
			for i := range states {
				states[i] = lost(fmt.Sprintf("provider-%0200d", i))
				states[i].Message = text
			}
			data, err := newDocument(ObjectName(lease), states, nil).encode()
			if err != nil || len(data) > maxDocumentBytes {
				t.Fatalf("%d, %s: %d bytes, %v", n, name, len(data), err)
			}
			d, err := decode(string(data))
			if err != nil || len(d.Clusters)+d.Omitted != n || n <= 500 && d.Omitted > 0 {
				t.Fatalf("%d, %s: %d clusters and %d more; %v", n, name, len(d.Clusters), d.Omitted, err)
			}
			if n == 500 && name != "six bytes a letter" && (d.Clusters[0].Message == "") != (text == "") {
				t.Errorf("%d, %s: messages are left out though there is room", n, name)
			}
		}
	}
}

func TestRead(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	holder, none, seconds := "hub-0", "", int32(15)
	newLease := func(renewed time.Duration, holder *string) *coordinationv1.Lease {
		at := metav1.NewMicroTime(now.Add(-renewed))
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: holder, LeaseDurationSeconds: &seconds, RenewTime: &at}}
	}
	published := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "healthscope-clusters"}, Data: map[string]string{
		"clusters.json": `{"lease":{"namespace":"healthscope-system","name":"healthscope-controller"},"clusters":[{"name":"a","state":"Connected"}]}`,
	}}
	cases := map[string]struct {
		lease   *coordinationv1.Lease
		running bool
		message string
	}{
		"renewed":              {newLease(2*time.Second, &holder), true, ""},
		"a clock that differs": {newLease(-20*time.Second, &holder), true, ""},
		"late, by little":      {newLease(29*time.Second, &holder), true, ""},
		"not renewed":          {newLease(31*time.Second, &holder), false, "it does not renew its Lease healthscope-system/healthscope-controller"},
		"given back":           {newLease(time.Second, &none), false, "it has given its Lease healthscope-system/healthscope-controller back"},
		"never held":           {newLease(time.Second, nil), false, "it has given its Lease"},
		"no lease":             {nil, false, "it has no Lease healthscope-system/healthscope-controller"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{published}
			if c.lease != nil {
				objects = append(objects, c.lease)
			}
			r := newHub(objects...).read(t, now)
			if r.Controller.Running != c.running || !contains(r.Controller.Message, c.message) || r.AllConnected() != c.running {
				t.Errorf("%+v, all connected %v", r.Controller, r.AllConnected())
			}
			if c.lease != nil && (r.Controller.LastRenewed == nil || !r.Controller.LastRenewed.Equal(c.lease.Spec.RenewTime.Time)) {
				t.Errorf("renewed at %v", r.Controller.LastRenewed)
			}
		})
	}
	if _, err := Read(t.Context(), newHub(), namespace, now); err == nil || !contains(err.Error(), `there is no ConfigMap "healthscope-clusters/healthscope-clusters"`) {
		t.Errorf("nothing published: %v", err)
	}
	broken := published.DeepCopy()
	broken.Data["clusters.json"] = "{"
	if _, err := Read(t.Context(), newHub(broken), namespace, now); err == nil {
		t.Error("what cannot be read is read")
	}
}

func TestAllConnected(t *testing.T) {
	running := Controller{Running: true}
	for name, c := range map[string]struct {
		report Report
		want   bool
	}{
		"all":          {Report{Controller: running, Document: Document{Clusters: []Cluster{{State: fleet.Connected}, {State: fleet.Connected}}}}, true},
		"one is not":   {Report{Controller: running, Document: Document{Clusters: []Cluster{{State: fleet.Connected}, {State: fleet.Connecting}}}}, false},
		"maintenance":  {Report{Controller: running, Document: Document{Clusters: []Cluster{{State: fleet.Unreachable, Maintenance: "moved"}}}}, false},
		"not running":  {Report{Document: Document{Clusters: []Cluster{{State: fleet.Connected}}}}, false},
		"some omitted": {Report{Controller: running, Document: Document{Omitted: 1}}, false},
	} {
		if got := c.report.AllConnected(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"lease":{"namespace":"a","name":"b"},"clusters":[{"name":"a","state":"Connected","since":"2026-03-01T12:00:00Z"}],"omitted":1}`)
	f.Fuzz(func(t *testing.T, data string) {
		d, err := decode(data)
		if err != nil {
			return
		}
		encoded, err := d.encode()
		if err != nil {
			return // A year beyond 9999 cannot be encoded.
		}
		if _, err := decode(string(encoded)); err != nil {
			t.Errorf("what was read cannot be read again: %v", err)
		}
	})
}
