package support

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeproxy "k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/healthscope/healthscope/e2e/kubelet"
)

// token is the token that may get metrics. No archive may contain it.
const token = "canary-S3cr3t-metrics"

// servePortForward forwards ports of all pods to the same ports of this machine.
func servePortForward(w http.ResponseWriter, r *http.Request) {
	kubelet.ServePortForward(w, r, "hub-1", func(port int32) (string, error) {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))), nil
	})
}

// newAPIServer returns an API server that forwards ports through a kubelet, as those of Kubernetes 1.31 and later do.
func newAPIServer(t *testing.T) http.Handler {
	t.Helper()
	node := httptest.NewServer(http.HandlerFunc(servePortForward))
	t.Cleanup(node.Close)
	target, err := url.Parse(node.URL)
	if err != nil {
		t.Fatal(err)
	}
	handler := kubeproxy.NewUpgradeAwareHandler(target, http.DefaultTransport, false, true, proxyErrorReporter{t})
	return proxy.NewTranslatingHandler(handler, proxy.NewTunnelingHandler(handler), wsstream.IsWebSocketRequestWithTunnelingProtocol)
}

// proxyErrorReporter fails a test for each request that a proxy cannot forward, unless the client has canceled the request.
type proxyErrorReporter struct{ t *testing.T }

func (f proxyErrorReporter) Error(_ http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		f.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
}

// checkGoroutineLeaks fails a test that leaks goroutines. SPDY takes up to a second to end them, and 30 seconds if the
// connection closes while it waits for the peer to accept a stream. Goroutines of the peer, which is the kubelet of the test,
// are not counted where spdystream waits for the acceptance: if the connection closes before, it waits for ever.
func checkGoroutineLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	peer := goleak.IgnoreAnyFunction("github.com/moby/spdystream.(*Stream).waitWriteReply")
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections() //nolint:forcetypeassert // It is one.
		var left error
		for range 70 { // Each waits for half a second.
			if left = goleak.Find(before, peer); left == nil {
				return
			}
		}
		t.Error(left)
	})
}

// collectMetrics returns the metrics of a pod in an archive, and the archive's errors.txt.
func collectMetrics(ctx context.Context, t *testing.T, handler http.Handler, podURL, token string) (metrics, problems string) {
	t.Helper()
	target, err := url.Parse(podURL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(target.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	apiServer := httptest.NewTLSServer(handler)
	t.Cleanup(apiServer.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: apiServer.Certificate().Raw})
	config := &rest.Config{Host: apiServer.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	g := &gatherer{options: Options{Config: config, MetricsToken: token}, client: client, archive: newArchive(&out, time.Now(), token)}
	g.addMetrics(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hub-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: 1}, {Name: metricsPort, ContainerPort: int32(port)}}},
	}}})
	if err := g.archive.close(); err != nil {
		t.Fatal(err)
	}
	files := readArchive(t, strings.NewReader(out.String()))
	for name, text := range files {
		if token != "" && strings.Contains(text, token) {
			t.Errorf("%s has the token: %s", name, text)
		}
	}
	return files["metrics/hub-1.txt"], files["errors.txt"]
}

// serveMetrics serves metrics to the token. It echoes the token, which must not get into an archive.
func serveMetrics(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" || r.Header.Get("Authorization") != "Bearer "+token {
		http.Error(w, "not for "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	_, _ = io.WriteString(w, "up 1\n"+strings.Repeat("# a line of many\n", 1<<14)+"# for "+token+"\n")
}

func TestMetricsThroughAPortForward(t *testing.T) {
	for name, c := range map[string]struct {
		wantMethod string
		apiServer  func(*testing.T) http.Handler
		pod        func(http.Handler) *httptest.Server
	}{
		"by a WebSocket":       {http.MethodGet, newAPIServer, httptest.NewTLSServer},
		"by SPDY alone":        {http.MethodPost, newSPDYAPIServer, httptest.NewTLSServer},
		"of a pod without TLS": {http.MethodGet, newAPIServer, httptest.NewServer},
	} {
		t.Run(name, func(t *testing.T) {
			checkGoroutineLeaks(t)
			pod := c.pod(http.HandlerFunc(serveMetrics))
			t.Cleanup(pod.Close)
			var method atomic.Value
			handler := c.apiServer(t)
			recording := func(w http.ResponseWriter, r *http.Request) {
				method.Store(r.Method)
				handler.ServeHTTP(w, r)
			}
			metrics, problems := collectMetrics(t.Context(), t, http.HandlerFunc(recording), pod.URL, token)
			if !strings.HasPrefix(metrics, "up 1\n") || !strings.HasSuffix(metrics, "# for "+redacted+"\n") || problems != "Everything could be read.\n" {
				t.Errorf("got %d bytes of metrics, and problems %s", len(metrics), problems)
			}
			if got := method.Load(); got != c.wantMethod {
				t.Errorf("the last request to the API server is a %v, want a %s", got, c.wantMethod)
			}
		})
	}
}

// newSPDYAPIServer returns an API server as of Kubernetes 1.30, or one behind a proxy that does not support WebSockets.
func newSPDYAPIServer(*testing.T) http.Handler {
	return rejectWebSockets(servePortForward)
}

func rejectWebSockets(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wsstream.IsWebSocketRequest(r) {
			http.Error(w, "unknown protocol", http.StatusBadRequest)
			return
		}
		next(w, r)
	})
}

// The API server's proxy passes no token on. If the pod rejects the request, the archive names the flag that sends one.
func TestMetricsWithoutAToken(t *testing.T) {
	rejecting := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/ns/pods/https:hub-1:8080/proxy/metrics" {
			t.Errorf("%s %s is asked for", r.Method, r.URL)
		}
		http.Error(w, "there is no bearer token", http.StatusUnauthorized)
	}
	metrics, problems := collectMetrics(t.Context(), t, http.HandlerFunc(rejecting), "https://hub-1:8080", "")
	if metrics != "" || !strings.HasPrefix(problems, "metrics/hub-1.txt: ") || !strings.Contains(problems, "--metrics-token-file") {
		t.Errorf("got metrics %q and problems %s", metrics, problems)
	}
}

// fixedAPIServer returns a constructor of an API server with one handler.
func fixedAPIServer(h http.HandlerFunc) func(*testing.T) http.Handler {
	return func(*testing.T) http.Handler { return h }
}

// unusedAddress returns an address that refuses connections and stays reserved until the test ends: the local end of a
// connection. The port of a closed listener could be assigned to the next server.
func unusedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It is closed below.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	connection, err := net.Dial("tcp", listener.Addr().String()) //nolint:noctx // The listener is there.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection.LocalAddr().String()
}

func TestMetricsErrors(t *testing.T) {
	rejecting := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no right, "+r.Header.Get("Authorization"), http.StatusForbidden)
	}))
	t.Cleanup(rejecting.Close)
	redirecting := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/metrics", http.StatusFound)
	}))
	t.Cleanup(redirecting.Close)
	notListening := &httptest.Server{URL: "http://" + unusedAddress(t)}
	forbidden := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"hub-1\" is forbidden: cannot create pods/portforward","code":403}`)
	}
	for name, c := range map[string]struct {
		apiServer func(*testing.T) http.Handler
		pod       *httptest.Server
		want      string
	}{
		"the pod refuses":         {newAPIServer, rejecting, "the pod answers 403 Forbidden: no right, Bearer " + redacted},
		"the pod sends elsewhere": {newAPIServer, redirecting, "the pod answers 302 Found"},
		"nobody listens":          {newAPIServer, notListening, "connection refused"},
		"nobody listens, by SPDY": {newSPDYAPIServer, notListening, "connection refused"},
		"no right":                {fixedAPIServer(forbidden), rejecting, `the API server answers 403 Forbidden: pods "hub-1" is forbidden: cannot create pods/portforward`},
	} {
		t.Run(name, func(t *testing.T) {
			checkGoroutineLeaks(t)
			metrics, problems := collectMetrics(t.Context(), t, c.apiServer(t), c.pod.URL, token)
			if metrics != "" || !strings.HasPrefix(problems, "metrics/hub-1.txt: cannot read metrics through a port-forward: ") || !strings.Contains(problems, c.want) {
				t.Errorf("got metrics %q and problems %s", metrics, problems)
			}
		})
	}
}

// Wherever on the way the response does not arrive, reading ends with the context.
func TestMetricsStopAtTheDeadline(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	hanging := httptest.NewTLSServer(http.HandlerFunc(hang))
	t.Cleanup(hanging.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It is closed below.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for name, c := range map[string]struct {
		apiServer func(*testing.T) http.Handler
		pod       string
	}{
		"the API server":               {fixedAPIServer(hang), hanging.URL},
		"the API server, after all":    {func(*testing.T) http.Handler { return rejectWebSockets(hang) }, hanging.URL},
		"the pod":                      {newAPIServer, hanging.URL},
		"the pod, without a handshake": {newAPIServer, "http://" + listener.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			checkGoroutineLeaks(t)
			ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("the time is over"))
			defer cancel()
			_, problems := collectMetrics(ctx, t, c.apiServer(t), c.pod, token)
			if !strings.Contains(problems, "cannot read metrics through a port-forward: the time is over") {
				t.Errorf("got %s", problems)
			}
		})
	}
}
