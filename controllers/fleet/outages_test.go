package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/healthscope"
)

// These kinds are wanted in the cluster of flaky. It does not serve notServed.
var (
	readable  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	forbidden = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	mute      = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	notServed = schema.GroupVersionKind{Group: "acme.example.com", Version: "v1", Kind: "Widget"}
)

// flaky is an API server with outages. It has one Deployment, refuses requests for Secrets and never responds to requests for
// ConfigMaps.
type flaky struct {
	*httptest.Server

	away atomic.Bool
	// ready is the number of ready replicas of the Deployment, of two.
	ready atomic.Int64
	// discoveries counts the discovery requests.
	discoveries atomic.Int64
}

func newFlaky(t *testing.T) *flaky {
	t.Helper()
	f := &flaky{}
	f.ready.Store(2)
	f.Server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// leave begins an outage of the server and breaks all of its connections.
func (f *flaky) leave() {
	f.away.Store(true)
	f.CloseClientConnections()
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.away.Load() {
		panic(http.ErrAbortHandler) // The connection is reset.
	}
	switch path := r.URL.Path; {
	case r.URL.Query().Get("watch") == "true", strings.HasSuffix(path, "/configmaps"):
		if !strings.HasSuffix(path, "/configmaps") {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Query().Get("sendInitialEvents") == "true" {
				http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity)
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	case strings.HasSuffix(path, "/secrets"):
		w.Header().Set("Content-Type", "application/json")
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, http.StatusForbidden)
	case strings.HasSuffix(path, "/deployments"):
		f.answer(w, map[string]any{"kind": "DeploymentList", "apiVersion": "apps/v1", "metadata": map[string]any{"resourceVersion": "7"}, "items": []any{f.deployment()}})
	default:
		f.discoveries.Add(1)
		f.discover(w, path)
	}
}

// discover responds to discovery requests.
func (f *flaky) discover(w http.ResponseWriter, path string) {
	version := func(groupVersion string) map[string]any {
		return map[string]any{"groupVersion": groupVersion, "version": "v1"}
	}
	resource := func(name, kind string) map[string]any {
		return map[string]any{"name": name, "kind": kind, "namespaced": true, "verbs": []string{"get", "list", "watch"}}
	}
	switch path {
	case "/api":
		f.answer(w, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
	case "/apis":
		f.answer(w, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{
			map[string]any{"name": "apps", "versions": []any{version("apps/v1")}, "preferredVersion": version("apps/v1")},
		}})
	case "/api/v1":
		f.answer(w, map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{resource("secrets", "Secret"), resource("configmaps", "ConfigMap")}})
	case "/apis/apps/v1":
		f.answer(w, map[string]any{"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": []any{resource("deployments", "Deployment")}})
	default:
		http.NotFound(w, &http.Request{})
	}
}

func (f *flaky) answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(object); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (f *flaky) deployment() map[string]any {
	ready := f.ready.Load()
	return map[string]any{
		"kind": "Deployment", "apiVersion": "apps/v1",
		"metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "u", "generation": 1, "resourceVersion": fmt.Sprint(ready)},
		"spec":     map[string]any{"replicas": 2},
		"status":   map[string]any{"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": ready, "availableReplicas": ready},
	}
}

// flakyHub is an Objects that watches everything in a cluster with outages.
type flakyHub struct {
	*Objects

	t       *testing.T
	changes *Subscription
}

func newFlakyHub(t *testing.T, f *flaky, kinds ...schema.GroupVersionKind) *flakyHub {
	t.Helper()
	h := &flakyHub{Objects: NewObjects(nil, nil), t: t}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	h.changes = h.Start(ctx)
	if err := h.Attach("edge", Access{Config: &rest.Config{Host: f.URL, QPS: -1}}); err != nil {
		t.Fatal(err)
	}
	h.state(Connected)
	wanted := map[Kind]struct{}{}
	for _, kind := range kinds {
		wanted[Kind{"edge", kind}] = struct{}{}
	}
	h.Want(types.NamespacedName{Name: "someone"}, wanted)
	return h
}

func (h *flakyHub) state(r Reachability) {
	h.setState(ClusterState{Name: "edge", Reachability: r, Since: time.Now()})
}

// look returns the state, the reason and the last state of an object of a kind.
func (h *flakyHub) look(kind schema.GroupVersionKind) string {
	found := h.Get("edge", kind, types.NamespacedName{Namespace: "shop", Name: "web"})
	if found.Syncing {
		return "Settling"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", found.Result.State, found.Result.Reason, found.LastState))
}

// await waits until the lookups of all kinds are as expected.
func (h *flakyHub) await(when string, want map[schema.GroupVersionKind]string) {
	h.t.Helper()
	late := time.After(30 * time.Second)
	for {
		h.changes.Take()
		got := map[schema.GroupVersionKind]string{}
		wrong := 0
		for kind, words := range want {
			if got[kind] = h.look(kind); got[kind] != words {
				wrong++
			}
		}
		if wrong == 0 {
			return
		}
		select {
		case <-h.changes.Ready(): // No lookup changes without a notification.
		case <-late:
			h.t.Fatalf("%s: want %v, got %v", when, want, got)
		}
	}
}

// TestObjectsRecoverFromTwentyOutages: repeated outages of a member do no harm to the hub, for all kinds of objects. After each
// outage the current states are shown.
func TestObjectsRecoverFromTwentyOutages(t *testing.T) {
	t.Parallel()
	f := newFlaky(t)
	h := newFlakyHub(t, f, readable, forbidden, mute, notServed)
	ready := map[bool]string{true: "Ready", false: "Pending ReplicasNotReady"}
	there := func(all bool) map[schema.GroupVersionKind]string {
		return map[schema.GroupVersionKind]string{readable: ready[all], forbidden: "Unknown Forbidden", mute: "Settling", notServed: "Unknown KindNotFound"}
	}
	h.await("at first", there(true))
	for outage := range 20 {
		all := outage%2 == 1 // It changes during the outage.
		f.leave()
		h.state(Unreachable)
		lost := "Unknown " + string(healthscope.ReasonClusterUnreachable)
		last := strings.Fields(ready[!all])[0]
		h.await(fmt.Sprintf("outage %d", outage), map[schema.GroupVersionKind]string{readable: lost + " " + last, forbidden: lost, mute: lost, notServed: lost})
		f.ready.Store(map[bool]int64{true: 2, false: 1}[all])
		f.away.Store(false)
		h.state(Connected)
		h.await(fmt.Sprintf("after outage %d", outage), there(all))
	}
}

// TestKindThatIsNotRelistedRecoversFromOutages: a read after an outage may be interrupted repeatedly by other outages.
func TestKindThatIsNotRelistedRecoversFromOutages(t *testing.T) {
	t.Parallel()
	withKindFixture(t, func(k *kindFixture) {
		k.read(readyWeb())
		for range 20 {
			k.setState(ClusterState{Name: "local", Reachability: Unreachable, Since: time.Now()})
			k.expect(healthscope.Unknown, healthscope.ReasonClusterUnreachable, healthscope.Ready, false)
			<-time.After(InitialSyncTimeout)
			k.setState(ClusterState{Name: "local", Reachability: Connected, Since: time.Now()})
			k.expect(healthscope.Unknown, healthscope.ReasonClusterUnreachable, healthscope.Ready, false)
		}
	})
}
