package probe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	probes "github.com/healthscope/healthscope/controllers/probe"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// testTimeout bounds the wait for an expected event.
const testTimeout = 20 * time.Second

// run runs a Prober until the test ends.
func run(t testing.TB, at probes.Clusters) *probes.Prober {
	t.Helper()
	p := probes.New(probes.Options{Clusters: at})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(testTimeout):
			t.Error("the prober does not end")
		}
	})
	return p
}

// wants returns the want of the scope web.
func wants(t testing.TB, interval, timeout int32) *probe.Want {
	t.Helper()
	spec, err := probe.Parse(&corev1alpha2.HealthScopeSpec{ProbeMethod: "GET", ProbeEndpoint: "/health", ProbeInterval: &interval, ProbeTimeout: &timeout})
	if err != nil {
		t.Fatal(err)
	}
	return &probe.Want{Spec: spec, Clusters: []string{"edge"}}
}

// names returns n names.
func names(what string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", what, i))
	}
	return all
}

func scopeIn(namespace string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: "web"}
}

// wantIn sets a want in each of some namespaces, and waits until the Prober has found n Services in each.
func wantIn(t testing.TB, p *probes.Prober, w *probe.Want, namespaces []string, n int) {
	t.Helper()
	for _, namespace := range namespaces {
		eventually(t, "the Services are found", func() bool { return len(p.Want(scopeIn(namespace), w).Services) == n })
	}
}

// eventually waits until a condition is true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !is(); {
		if time.Now().After(end) {
			t.Fatalf("it does not come: %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// Hanging targets, however many, delay no other: neither in their namespace beyond its pace, nor elsewhere.
func TestHangingTargetsDelayNoOther(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked := map[string][]time.Time{}
	release := make(chan struct{})
	defer close(release)
	server := &apiServer{services: names("s", 20), proxy: func(_ http.ResponseWriter, r *http.Request, namespace, service string) {
		mu.Lock()
		asked[namespace] = append(asked[namespace], time.Now())
		mu.Unlock()
		if namespace == "calm" {
			return
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}}
	p := run(t, server.start(t))
	hanging := names("n", 50) // With 20 Services each: a thousand.
	begin := map[string]time.Time{}
	for _, namespace := range append(slices.Clone(hanging), "calm") {
		begin[namespace] = time.Now()
		wantIn(t, p, wants(t, 1, 60), []string{namespace}, 20)
	}
	eventually(t, "the others are probed", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(asked["calm"]) >= 4
	})
	if server.inFlight.Load() < int64(len(hanging)) {
		t.Errorf("%d probes hang, of %d namespaces", server.inFlight.Load(), len(hanging))
	}
	mu.Lock()
	defer mu.Unlock()
	for namespace, times := range asked {
		for i, at := range times { // A probe may arrive late, but not early.
			if after := at.Sub(begin[namespace]); after < time.Duration(i)*probe.Gap {
				t.Errorf("probe %d in namespace %q arrives after %s", i+1, namespace, after)
			}
		}
	}
}

// A Service has one probe at a time, also when it takes longer than the interval.
func TestServiceHasOneProbeAtATime(t *testing.T) {
	t.Parallel()
	var asked sync.WaitGroup
	asked.Add(2)
	server := &apiServer{services: []string{"slow"}, proxy: func(_ http.ResponseWriter, r *http.Request, _, _ string) {
		asked.Done()
		select { // The server would notice late that the client has given up, so the probe ends with a response.
		case <-time.After(2 * time.Second):
		case <-r.Context().Done():
		}
	}}
	p := run(t, server.start(t))
	w := wants(t, 1, 60)
	wantIn(t, p, w, []string{"n"}, 1)
	asked.Wait()
	if most := server.most.Load(); most != 1 {
		t.Errorf("%d probes at once", most)
	}
	p.Want(scopeIn("n"), nil)
}

// Probes of a Service end when no scope wants them.
func TestProbesStopWithoutAWant(t *testing.T) {
	t.Parallel()
	answers := make(chan struct{}, 100)
	server := &apiServer{services: []string{"a"}, proxy: func(http.ResponseWriter, *http.Request, string, string) { answers <- struct{}{} }}
	p := run(t, server.start(t))
	wantIn(t, p, wants(t, 1, 1), []string{"n"}, 1)
	<-answers
	p.Want(scopeIn("n"), nil)
	for len(answers) > 0 {
		<-answers
	}
	select {
	case <-answers:
		select { // One may have been on its way.
		case <-answers:
			t.Error("it is still probed")
		case <-time.After(2 * time.Second):
		}
	case <-time.After(2 * time.Second):
	}
}

// While the API server is unreachable, a Service keeps its result at first and then is blocked: it does not fail.
func TestUnreachableAPIServerBlocksProbes(t *testing.T) {
	t.Parallel()
	down := make(chan struct{})
	server := &apiServer{services: []string{"a"}, proxy: func(http.ResponseWriter, *http.Request, string, string) {}}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-down:
			panic(http.ErrAbortHandler)
		default:
			server.ServeHTTP(w, r)
		}
	}))
	p := run(t, startCluster(t, s))
	w := wants(t, 1, 1)
	result := func() probe.Result { return p.Want(scopeIn("n"), w).Services[0].Result }
	wantIn(t, p, w, []string{"n"}, 1)
	eventually(t, "it passes", func() bool { return result() == probe.Passing })
	close(down)
	eventually(t, "it cannot be probed", func() bool {
		v := result()
		if v == probe.Failing {
			t.Fatal("it fails because its API server is silent")
		}
		return v == probe.Blocked
	})
}

// movedCluster is a cluster whose connection a test replaces.
type movedCluster struct {
	oneCluster

	now atomic.Pointer[fleet.Access]
}

func (c *movedCluster) Access(string) (fleet.Access, bool) { return *c.now.Load(), true }

// When the Secret of a cluster leads to another API server, the Services of that one are probed.
func TestProbesFollowAClusterThatMoves(t *testing.T) {
	t.Parallel()
	var asked [2]atomic.Int64
	var clusters [2]oneCluster
	for i, name := range []string{"old", "new"} {
		server := &apiServer{services: []string{name}, proxy: func(http.ResponseWriter, *http.Request, string, string) { asked[i].Add(1) }}
		clusters[i] = server.start(t)
	}
	at := &movedCluster{oneCluster: clusters[0]}
	at.now.Store(&clusters[0].access)
	p := run(t, at)
	w := wants(t, 1, 1)
	name := func() string {
		services := p.Want(scopeIn("n"), w).Services
		if len(services) != 1 {
			return ""
		}
		return services[0].Name
	}
	eventually(t, "the old one is probed", func() bool { return name() == "old" && asked[0].Load() > 0 })
	at.now.Store(&clusters[1].access)
	at.changes.Add(fleet.ClusterChange{Cluster: "edge"})
	eventually(t, "the new one is probed", func() bool { return name() == "new" && asked[1].Load() > 0 })
}

// unreachableCluster is a cluster that a test makes unreachable.
type unreachableCluster struct {
	oneCluster

	away atomic.Bool
}

func (c *unreachableCluster) State(name string) (fleet.ClusterState, bool) {
	state, known := c.oneCluster.State(name)
	if c.away.Load() {
		state.Reachability = fleet.Unreachable
	}
	return state, known
}

// A Service of a cluster that is unreachable has no series, because it is not probed.
func TestUnreachableClusterHasNoSeries(t *testing.T) {
	t.Parallel()
	server := &apiServer{services: []string{"a"}, proxy: func(http.ResponseWriter, *http.Request, string, string) {}}
	c := &unreachableCluster{oneCluster: server.start(t)}
	p := run(t, c)
	series := func() int { return testutil.CollectAndCount(p, "healthscope_probe_success") }
	wantIn(t, p, wants(t, 1, 1), []string{"n"}, 1)
	eventually(t, "it passes", func() bool { return series() == 1 })
	c.away.Store(true)
	eventually(t, "the series ends", func() bool { return series() == 0 })
}

// A new interval changes the result of no Service.
func TestNewIntervalKeepsTheHistory(t *testing.T) {
	t.Parallel()
	server := &apiServer{services: []string{"a"}, proxy: func(http.ResponseWriter, *http.Request, string, string) {}}
	p := run(t, server.start(t))
	wantIn(t, p, wants(t, 1, 1), []string{"n"}, 1)
	eventually(t, "it passes", func() bool { return p.Want(scopeIn("n"), wants(t, 1, 1)).Services[0].Result == probe.Passing })
	if v := p.Want(scopeIn("n"), wants(t, 30, 1)).Services[0].Result; v != probe.Passing {
		t.Errorf("it is %d with another interval", v)
	}
}
