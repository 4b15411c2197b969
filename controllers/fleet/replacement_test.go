package fleet

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/healthscope/healthscope/e2e/suite"
)

// shops is an API server with a bundle in each of the namespaces back and shop, which another monitor has filled.
type shops struct {
	*httptest.Server

	mu sync.Mutex
	// opened and open count the watches of bundles, by the watched namespace; empty for all namespaces.
	opened, open map[string]int
	// broken are the unreadable namespaces. end ends the watches of a namespace.
	broken map[string]bool
	end    map[string]chan struct{}
}

func newShops(t *testing.T) *shops {
	t.Helper()
	s := &shops{opened: map[string]int{}, open: map[string]int{}, broken: map[string]bool{}, end: map[string]chan struct{}{}}
	s.Server = startMember(t, func(w http.ResponseWriter, r *http.Request) {
		switch resource := path.Base(r.URL.Path); {
		case resource == bundlesResource && r.URL.Query().Get("watch") == "true":
			s.watch(w, r)
		case resource == "readyz":
			_, _ = io.WriteString(w, "ok")
		default:
			http.NotFound(w, r)
		}
	})
	return s
}

func (s *shops) watch(w http.ResponseWriter, r *http.Request) {
	namespace := ""
	if parts := strings.Split(r.URL.Path, "/"); slices.Contains(parts, "namespaces") {
		namespace = parts[slices.Index(parts, "namespaces")+1]
	}
	s.mu.Lock()
	broken := s.broken[namespace]
	if s.end[namespace] == nil {
		s.end[namespace] = make(chan struct{})
	}
	end := s.end[namespace]
	if !broken {
		s.opened[namespace]++
		s.open[namespace]++
	}
	s.mu.Unlock()
	if broken {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open[namespace]--
	}()
	w.Header().Set("Content-Type", "application/json")
	out := &stream{ResponseWriter: w, buffer: bufio.NewWriter(w), ctx: r.Context()}
	out.flush()
	if r.URL.Query().Get("sendInitialEvents") != "" {
		for _, in := range []string{"back", "shop"} {
			if namespace == "" || namespace == in {
				out.send("ADDED", fmt.Sprintf(`{"apiVersion":"k8splugin.io/v1alpha1","kind":"ResourceBundleState","metadata":{"namespace":%q,"name":"web","uid":%q,"resourceVersion":"7"},"status":{"ready":true}}`, in, in))
			}
		}
		out.complete()
	}
	select {
	case <-end:
	case <-r.Context().Done():
	}
}

// fail makes a namespace unreadable, and ends the watches of it.
func (s *shops) fail(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[namespace] = true
	close(s.end[namespace])
	delete(s.end, namespace)
}

// mend makes a namespace readable again.
func (s *shops) mend(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[namespace] = false
}

// watches returns the number of watches of a namespace so far, and the number of open ones.
func (s *shops) watches(namespace string) (opened, open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened[namespace], s.open[namespace]
}

// reachability returns the reachability of the cluster "edge" in the view of a hub.
func reachability(h *hub) Reachability {
	s, _ := h.view.State("edge")
	return s.Reachability
}

// TestClusterWithOneUnreadableNamespaceIsNotConnected ends the watch of one of two namespaces permanently, while the watch of
// the other namespace and the API server continue.
func TestClusterWithOneUnreadableNamespaceIsNotConnected(t *testing.T) {
	t.Parallel()
	server := newShops(t)
	h, stop := newFloodHub(t, Budget{})
	defer stop()
	h.clock, h.options.Liveness = suite.NewFastClock(5), &Liveness{Timeout: 10 * time.Minute} // A pause of the machine does not show.
	w := newClusterSpec(secretWith("edge", kubeconfigOf(t, server.Server, "t")))
	w.namespaces = []string{"back", "shop"}
	h.add("edge", false, logr.Discard()).setSpec(w)
	all := func(lost bool) func() bool {
		return func() bool {
			for _, namespace := range w.namespaces {
				if b := h.view.Bundle(BundleKey{"edge", namespace, "web"}); b == nil || b.Stale != lost {
					return false
				}
			}
			return (reachability(h) == Connected) != lost
		}
	}
	eventually(t, "both namespaces are current", all(false))
	server.fail("back")
	eventually(t, "neither is", all(true))
	if opened, open := server.watches("shop"); opened != 1 || open != 1 {
		t.Errorf("of %d watches of the other namespace %d are open, want the first one", opened, open)
	}
	if got := reachability(h); got != Unreachable {
		t.Errorf("the cluster is %s", got)
	}
	server.mend("back")
	eventually(t, "both namespaces are current again", all(false))
}

// TestReplacedConnectionKeepsAllBundles makes changes that replace the connection of a cluster that stays as it was.
func TestReplacedConnectionKeepsAllBundles(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, w *clusterSpec){
		"the authority": func(t *testing.T, w *clusterSpec) {
			t.Helper()
			authority, _, err := cert.GenerateSelfSignedCertKey("another", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.Load(w.kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range config.Clusters {
				c.CertificateAuthorityData = append(c.CertificateAuthorityData, authority...)
			}
			if w.kubeconfig, err = clientcmd.Write(*config); err != nil {
				t.Fatal(err)
			}
		},
		"the certificate": func(t *testing.T, w *clusterSpec) {
			t.Helper()
			certificate, key, err := cert.GenerateSelfSignedCertKey("hub", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			config, err := clientcmd.Load(w.kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range config.AuthInfos {
				u.Token, u.ClientCertificateData, u.ClientKeyData = "", certificate, key
			}
			if w.kubeconfig, err = clientcmd.Write(*config); err != nil {
				t.Fatal(err)
			}
		},
		"the namespaces": func(_ *testing.T, w *clusterSpec) { w.namespaces = []string{"shop"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replaceConnection(t, change)
		})
	}
}

// replaceConnection changes the specification of a current cluster, and asserts that it stays current.
func replaceConnection(t *testing.T, change func(*testing.T, *clusterSpec)) {
	t.Helper()
	server := newShops(t)
	h, stop := newFloodHub(t, Budget{})
	defer stop()
	w := newClusterSpec(secretWith("edge", kubeconfigOf(t, server.Server, "t")))
	m := h.add("edge", false, logr.Discard())
	m.setSpec(w)
	key := BundleKey{"edge", "shop", "web"}
	current := func() bool {
		b := h.view.Bundle(key)
		return b != nil && !b.Stale && reachability(h) == Connected && h.view.CompleteFor("edge", "shop")
	}
	eventually(t, "the bundle is current", current)
	changes, cancel := h.view.Subscribe(Bundles | Writes)
	defer cancel()
	var missed atomic.Int64
	end := whileRunning(func() {
		if !current() {
			missed.Add(1)
		}
	})
	change(t, &w)
	w.checksum[0]++
	m.setSpec(w)
	eventually(t, "the new connection is in use, and the old one has ended", func() bool {
		opened, open := server.watches("")
		of, is := server.watches("shop")
		return opened+of == 2 && open+is == 1
	})
	end()
	eventually(t, "the budget counts what the view has, and nothing of the old connection", func() bool {
		h.quotas.mu.Lock()
		defer h.quotas.mu.Unlock()
		return m.quota.used.bundles == int64(len(h.view.All()))
	})
	if missed.Load() > 0 {
		t.Errorf("the bundle was not current %d times", missed.Load())
	}
	for _, c := range changes.Take() {
		if b, ok := c.(BundleChange); ok && b.BundleKey == key {
			t.Errorf("notified of %+v", c)
		}
	}
}
