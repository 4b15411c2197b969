package fleet

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/controllers/observe"
)

// TestDiscoveryIsSharedByKinds: for any number of wanted kinds that a cluster does not serve, there is one discovery of the
// cluster for all of them in each interval.
func TestDiscoveryIsSharedByKinds(t *testing.T) {
	t.Parallel()
	const kinds = 1000
	f := newFlaky(t)
	var missing []schema.GroupVersionKind
	for i := range kinds {
		missing = append(missing, schema.GroupVersionKind{Group: fmt.Sprintf("g%d.example.com", i), Version: "v1", Kind: fmt.Sprintf("Missing%d", i)})
	}
	h := newFlakyHub(t, f, missing...)
	want := map[schema.GroupVersionKind]string{}
	for _, kind := range missing {
		want[kind] = "Unknown KindNotFound"
	}
	h.await("at first", want)
	// Discovery of two groups takes four requests if the server responds for each group separately.
	if asked := f.discoveries.Load(); asked > 8 {
		t.Errorf("%d requests for what is served: each kind asks for itself", asked)
	}
	wanted := map[Kind]struct{}{{"edge", readable}: {}}
	before := f.discoveries.Load()
	h.Want(types.NamespacedName{Name: "another"}, wanted)
	h.await("a kind that is known to be served", map[schema.GroupVersionKind]string{readable: "Ready"})
	// On a busy machine the response may be too old by now. It is then requested once more.
	if asked := f.discoveries.Load() - before; asked > 4 {
		t.Errorf("%d requests for a kind that is known to be served", asked)
	}
}

// TestEndlessDiscoveryAnswerFails: the transport of a member's kubeconfig limits the size of its discovery responses, as of all
// its responses.
func TestEndlessDiscoveryAnswerFails(t *testing.T) {
	t.Parallel()
	const most = 48 << 20 // One response of 32 MiB, and the data in transit.
	var sent atomic.Int64
	server := startMember(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		for blank := make([]byte, 1<<20); sent.Load() < 2*most; {
			n, err := w.Write(blank)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	config, err := kubeconfig.Parse(kubeconfigOf(t, server, "t"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	c, err := newAPIDiscovery(config, client.Transport, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.find(t.Context(), deployments, time.Now()); err == nil || errors.Is(err, observe.ErrUnsuitable) {
		t.Errorf("the answer counts: %v", err)
	}
	if n := sent.Load(); n == 0 || n > most {
		t.Errorf("%d MiB of the answer have been read", n>>20)
	}
}

// TestFailedDiscoverySaysNothingOfAKind: whatever discovery is answered with, it is no refusal of the kind.
func TestFailedDiscoverySaysNothingOfAKind(t *testing.T) {
	t.Parallel()
	var code atomic.Int64
	server := startMember(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(code.Load())) })
	config, err := kubeconfig.Parse(kubeconfigOf(t, server, "t"))
	if err != nil {
		t.Fatal(err)
	}
	clients, err := Access{Config: config}.open(clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	defer clients.Client.CloseIdleConnections()
	for _, answer := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusGone, http.StatusServiceUnavailable} {
		code.Store(int64(answer))
		_, err := clients.discovery.find(t.Context(), deployments, time.Now())
		if err == nil {
			t.Fatalf("%d: no error", answer)
		}
		if kind, reason := observe.Classify(err); kind != observe.Failed || reason != observe.NoAnswer || !strings.Contains(err.Error(), "cannot discover what the cluster serves") {
			t.Errorf("%d: %s, and %v", answer, reason, err)
		}
	}
}
