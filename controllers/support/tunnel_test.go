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
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// token is one that may get metrics, which no archive may have.
const token = "canary-S3cr3t-metrics"

// node forwards ports of pods to the same ports of this machine.
type node struct{}

func (node) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	pod, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(pod, stream) // Who has gone needs nothing.
		_ = pod.Close()
	}()
	_, _ = io.Copy(stream, pod)
	return nil
}

// forwarding is the subresource portforward of all pods, as kubelets serve it.
func forwarding(w http.ResponseWriter, r *http.Request) {
	portforward.ServePortForward(w, r, node{}, "hub-1", "", nil, time.Minute, 10*time.Second, portforward.SupportedProtocols)
}

// newAPIServer returns an API server that forwards ports by way of a kubelet, as that of Kubernetes 1.31 and later does.
func newAPIServer(t *testing.T) http.Handler {
	t.Helper()
	at, err := url.Parse(serverFor(t, http.HandlerFunc(forwarding)).URL)
	if err != nil {
		t.Fatal(err)
	}
	way := kubeproxy.NewUpgradeAwareHandler(at, http.DefaultTransport, false, true, failing{t})
	return proxy.NewTranslatingHandler(way, proxy.NewTunnelingHandler(way), wsstream.IsWebSocketRequestWithTunnelingProtocol)
}

// failing fails a test for each request that a proxy cannot pass on, although somebody waits for the answer.
type failing struct{ t *testing.T }

func (f failing) Error(_ http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		f.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
}

// serverFor returns a server that ends with the test.
func serverFor(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// behindTLS returns a server that is asked by https, and passes everything on to another one.
func behindTLS(t *testing.T, server *httptest.Server) *httptest.Server {
	t.Helper()
	outer := httptest.NewTLSServer(server.Config.Handler)
	t.Cleanup(outer.Close)
	return outer
}

// noneLeft fails a test that leaves goroutines behind. SPDY takes up to a second to end them.
func noneLeft(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections() //nolint:forcetypeassert // It is one.
		var left error
		for range 10 { // Each waits for half a second.
			if left = goleak.Find(before); left == nil {
				return
			}
		}
		t.Error(left)
	})
}

// metricsOf returns what an archive says of the metrics of a pod, and of why there are none.
func metricsOf(ctx context.Context, t *testing.T, apiServer *httptest.Server, podURL, token string) (metrics, problems string) {
	t.Helper()
	at, err := url.Parse(podURL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(at.Port(), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	apiServer = behindTLS(t, apiServer)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: apiServer.Certificate().Raw})
	config := &rest.Config{Host: apiServer.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	g := &gatherer{options: Options{Config: config, MetricsToken: token}, client: client, archive: newArchive(&out, time.Now(), token)}
	g.metrics(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hub-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: 1}, {Name: metricsPort, ContainerPort: int32(port)}}},
	}}})
	if err := g.archive.close(); err != nil {
		t.Fatal(err)
	}
	files := contents(t, strings.NewReader(out.String()))
	for name, text := range files {
		if token != "" && strings.Contains(text, token) {
			t.Errorf("%s has the token: %s", name, text)
		}
	}
	return files["metrics/hub-1.txt"], files["errors.txt"]
}

// guarded serves metrics to the token, and says what it was given: nothing of that may get into an archive.
func guarded(w http.ResponseWriter, r *http.Request) {
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
		"by SPDY alone":        {http.MethodPost, withoutWebSockets, httptest.NewTLSServer},
		"of a pod without TLS": {http.MethodGet, newAPIServer, httptest.NewServer},
	} {
		t.Run(name, func(t *testing.T) {
			noneLeft(t)
			pod := c.pod(http.HandlerFunc(guarded))
			t.Cleanup(pod.Close)
			var method atomic.Value
			handler := c.apiServer(t)
			apiServer := serverFor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				method.Store(r.Method)
				handler.ServeHTTP(w, r)
			}))
			metrics, problems := metricsOf(t.Context(), t, apiServer, pod.URL, token)
			if !strings.HasPrefix(metrics, "up 1\n") || !strings.HasSuffix(metrics, "# for "+notShown+"\n") || problems != "Everything could be read.\n" {
				t.Errorf("got %d bytes of metrics, and problems %s", len(metrics), problems)
			}
			if got := method.Load(); got != c.wantMethod {
				t.Errorf("the last request to the API server is a %v, want a %s", got, c.wantMethod)
			}
		})
	}
}

// withoutWebSockets is an API server of Kubernetes 1.30, or one behind a proxy that knows no WebSockets.
func withoutWebSockets(*testing.T) http.Handler {
	return refusingWebSockets(forwarding)
}

func refusingWebSockets(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wsstream.IsWebSocketRequest(r) {
			http.Error(w, "unknown protocol", http.StatusBadRequest)
			return
		}
		next(w, r)
	})
}

// TestMetricsWithoutAToken: the API server's own way passes no token on, and who is refused learns of the other way.
func TestMetricsWithoutAToken(t *testing.T) {
	refusing := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/ns/pods/https:hub-1:8080/proxy/metrics" {
			t.Errorf("%s %s is asked for", r.Method, r.URL)
		}
		http.Error(w, "there is no bearer token", http.StatusUnauthorized)
	}
	metrics, problems := metricsOf(t.Context(), t, serverFor(t, http.HandlerFunc(refusing)), "https://hub-1:8080", "")
	if metrics != "" || !strings.HasPrefix(problems, "metrics/hub-1.txt: ") || !strings.Contains(problems, "--metrics-token-file") {
		t.Errorf("got metrics %q and problems %s", metrics, problems)
	}
}

// always returns an API server that does one thing.
func always(h http.HandlerFunc) func(*testing.T) http.Handler {
	return func(*testing.T) http.Handler { return h }
}

// deaf returns an address at which nobody listens and which nobody else is given until the test ends: that of the near end
// of a connection. A port that was closed may be that of the next server.
func deaf(t *testing.T) string {
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

func TestMetricsThatCannotBeRead(t *testing.T) {
	refusing := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no right, "+r.Header.Get("Authorization"), http.StatusForbidden)
	}))
	t.Cleanup(refusing.Close)
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/metrics", http.StatusFound)
	}))
	t.Cleanup(elsewhere.Close)
	gone := &httptest.Server{URL: "http://" + deaf(t)}
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
		"the pod refuses":         {newAPIServer, refusing, "the pod answers 403 Forbidden: no right, Bearer " + notShown},
		"the pod sends elsewhere": {newAPIServer, elsewhere, "the pod answers 302 Found"},
		"nobody listens":          {newAPIServer, gone, "connection refused"},
		"nobody listens, by SPDY": {withoutWebSockets, gone, "connection refused"},
		"no right":                {always(forbidden), refusing, `the API server answers 403 Forbidden: pods "hub-1" is forbidden: cannot create pods/portforward`},
	} {
		t.Run(name, func(t *testing.T) {
			noneLeft(t)
			metrics, problems := metricsOf(t.Context(), t, serverFor(t, c.apiServer(t)), c.pod.URL, token)
			if metrics != "" || !strings.HasPrefix(problems, "metrics/hub-1.txt: cannot read metrics through a port-forward: ") || !strings.Contains(problems, c.want) {
				t.Errorf("got metrics %q and problems %s", metrics, problems)
			}
		})
	}
}

// TestMetricsEndInTime: whoever falls silent on the way, nothing waits longer than the context allows.
func TestMetricsEndInTime(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	mute := httptest.NewTLSServer(http.HandlerFunc(hang))
	t.Cleanup(mute.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It is closed below.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for name, c := range map[string]struct {
		apiServer func(*testing.T) http.Handler
		pod       string
	}{
		"the API server":               {always(hang), mute.URL},
		"the API server, after all":    {func(*testing.T) http.Handler { return refusingWebSockets(hang) }, mute.URL},
		"the pod":                      {newAPIServer, mute.URL},
		"the pod, without a handshake": {newAPIServer, "http://" + listener.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			noneLeft(t)
			ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("the time is over"))
			defer cancel()
			_, problems := metricsOf(ctx, t, serverFor(t, c.apiServer(t)), c.pod, token)
			if !strings.Contains(problems, "cannot read metrics through a port-forward: the time is over") {
				t.Errorf("got %s", problems)
			}
		})
	}
}
