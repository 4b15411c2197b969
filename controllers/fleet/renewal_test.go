package fleet

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
)

// guarded is an API server that serves bundles to clients whose tokens it accepts, and records their requests.
type guarded struct {
	*httptest.Server

	mu       sync.Mutex
	rejected map[string]bool
	// asked are the requests since the last reset: token and resource.
	asked []string
	// end ends all watches.
	end chan struct{}
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{rejected: map[string]bool{}, end: make(chan struct{})}
	g.Server = startMember(t, func(w http.ResponseWriter, r *http.Request) {
		token, resource := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), path.Base(r.URL.Path)
		query := r.URL.Query()
		g.mu.Lock()
		rejected, end := g.rejected[token], g.end
		g.asked = append(g.asked, token+" "+resource)
		g.mu.Unlock()
		switch {
		case rejected:
			w.WriteHeader(http.StatusUnauthorized)
		case resource == bundlesResource && query.Get("watch") == "true":
			w.Header().Set("Content-Type", "application/json")
			s := &stream{ResponseWriter: w, buffer: bufio.NewWriter(w), ctx: r.Context()}
			s.flush()
			if query.Get("sendInitialEvents") != "" {
				s.complete()
			}
			select {
			case <-end:
			case <-r.Context().Done():
			}
		case resource == "readyz":
			_, _ = io.WriteString(w, "ok")
		default:
			http.NotFound(w, r)
		}
	})
	return g
}

// kubeconfig returns a kubeconfig with a token.
func (g *guarded) kubeconfig(t *testing.T, token string) []byte {
	t.Helper()
	return kubeconfigOf(t, g.Server, token)
}

// secretWith returns the Secret of a cluster.
func secretWith(name string, kubeconfig []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Data: map[string][]byte{corev1alpha2.KubeconfigKey: kubeconfig}}
}

// requests returns the requests that begin with a prefix, and resets all requests.
func (g *guarded) requests(prefix string) (matching []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.asked {
		if strings.HasPrefix(r, prefix) {
			matching = append(matching, r)
		}
	}
	g.asked = nil
	return matching
}

// endWatches ends all open watches.
func (g *guarded) endWatches() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.end)
	g.end = make(chan struct{})
}

// eventually waits until so returns true, for at most a minute.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !so() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not so within a minute: %s", what)
		}
	}
}

// TestTokenRenewalTakesOneRequest renews the tokens of 100 members. Each renewal costs one request, and nothing is read again.
// Later requests use the new tokens.
func TestTokenRenewalTakesOneRequest(t *testing.T) {
	const members = 100
	g := newGuarded(t)
	h, stop := newFloodHub(t, Budget{})
	defer stop()
	name := func(i int) string { return fmt.Sprintf("edge-%d", i) }
	ofMember := func(i int, generation string) clusterSpec {
		return newClusterSpec(secretWith(name(i), g.kubeconfig(t, generation+"-"+name(i))))
	}
	for i := range members {
		w := ofMember(i, "old")
		m := h.add(name(i), false, logr.Discard())
		m.setSpec(w)
	}
	connected := func() bool {
		for i := range members {
			if s, _ := h.view.State(name(i)); s.Reachability != Connected {
				return false
			}
		}
		return true
	}
	eventually(t, "all members are Connected", connected)
	g.requests("")
	for i := range members {
		h.members[name(i)].setSpec(ofMember(i, "new"))
	}
	renewed := map[string]int{}
	eventually(t, "all tokens have been tried", func() bool {
		for _, r := range g.requests("") {
			token, resource, _ := strings.Cut(r, " ")
			renewed[token]++
			if resource != "readyz" {
				t.Errorf("a renewal asks for %s", r)
			}
		}
		return len(renewed) == members
	})
	g.endWatches()
	watched := map[string]bool{}
	eventually(t, "watches go on with the new tokens", func() bool {
		for _, r := range g.requests("") {
			if token, resource, _ := strings.Cut(r, " "); resource == "readyz" {
				renewed[token]++
			} else {
				watched[token] = true
			}
		}
		return len(watched) >= members && connected()
	})
	for token, requests := range renewed {
		if requests != 1 || !strings.HasPrefix(token, "new-") || !watched[token] {
			t.Errorf("%d requests with token %s, want one with the new one; it is used by a watch: %t", requests, token, watched[token])
		}
	}
}

// TestRejectedTokenIsNotUsed renews a token with one that the API server rejects at first, and accepts later.
func TestRejectedTokenIsNotUsed(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	g.rejected["new"] = true
	h, stop := newFloodHub(t, Budget{})
	defer stop()
	m := h.add("edge", false, logr.Discard())
	m.setSpec(newClusterSpec(secretWith("edge", g.kubeconfig(t, "old"))))
	state := func() ClusterState { s, _ := h.view.State("edge"); return s }
	eventually(t, "it is Connected", func() bool { return state().Reachability == Connected })
	m.setSpec(newClusterSpec(secretWith("edge", g.kubeconfig(t, "new"))))
	eventually(t, "it says that the token is not accepted", func() bool {
		return state().Message == newKubeconfigFails+errUnauthorized.Error()
	})
	g.endWatches()
	eventually(t, "the watch goes on with the old token", func() bool { return len(g.requests("old "+bundlesResource)) > 0 })
	g.mu.Lock()
	g.rejected["new"], g.rejected["old"] = false, true
	g.mu.Unlock()
	eventually(t, "it says nothing any more", func() bool { return state().Message == "" && state().Reachability == Connected })
	g.endWatches()
	eventually(t, "the watch goes on with the new token", func() bool { return len(g.requests("new "+bundlesResource)) > 0 })
}

func TestRenewedToken(t *testing.T) {
	t.Parallel()
	kubeconfigAt := func(server, token string) []byte {
		data, err := kubeconfig.New(kubeconfig.Member{Name: "edge", Server: server, Token: token})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	before := clusterSpec{kubeconfig: kubeconfigAt("https://edge:6443", "old")}
	for name, c := range map[string]struct {
		spec clusterSpec
		want string
	}{
		"another token":      {clusterSpec{kubeconfig: kubeconfigAt("https://edge:6443", "new")}, "new"},
		"another server":     {clusterSpec{kubeconfig: kubeconfigAt("https://edge:6444", "new")}, ""},
		"other namespaces":   {clusterSpec{kubeconfig: kubeconfigAt("https://edge:6443", "new"), namespaces: []string{"shop"}}, ""},
		"no token any more":  {clusterSpec{kubeconfig: kubeconfigAt("https://edge:6443", "")}, ""},
		"no kubeconfig":      {clusterSpec{kubeconfig: []byte("{")}, ""},
		"a Secret with less": {clusterSpec{problem: "no key"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.spec.renewedToken(before); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestTokenFileIsNotReplaced: the token of the hub's own cluster is read from a file, which Kubernetes renews.
func TestTokenFileIsNotReplaced(t *testing.T) {
	t.Parallel()
	config := &rest.Config{BearerToken: "t", BearerTokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token"}
	if useToken(config) != nil || config.BearerToken != "t" {
		t.Errorf("the configuration has become %v", config)
	}
}
