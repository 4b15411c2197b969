package probe_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// apiServer serves Services, and answers in place of their pods: for tests of more targets than a real API server has pods for. Every namespace has the same Services, all of the scope called web.
type apiServer struct {
	services []string
	// proxy answers for a Service.
	proxy func(w http.ResponseWriter, r *http.Request, namespace, service string)
	// inFlight is the number of concurrent probes, and most the largest so far.
	inFlight, most atomic.Int64
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/readyz" {
		return
	}
	_, path, _ := strings.Cut(r.URL.Path, "/api/v1/namespaces/")
	parts := strings.Split(path, "/") // <namespace>/services/<scheme>:<name>:<port>/proxy/...
	switch {
	case len(parts) > 3:
		if n := s.inFlight.Add(1); n > s.most.Load() {
			s.most.Store(n)
		}
		defer s.inFlight.Add(-1)
		s.proxy(w, r, parts[0], strings.Split(parts[2], ":")[1])
	case r.URL.Query().Has("sendInitialEvents"):
		w.WriteHeader(http.StatusUnprocessableEntity) // As an API server answers that cannot stream lists.
	case r.URL.Query().Has("watch"):
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		w.Header().Set("Content-Type", "application/json")
		if data, err := json.Marshal(s.list(parts[0])); err == nil {
			_, _ = w.Write(data)
		}
	}
}

// list returns the Services of a namespace.
func (s *apiServer) list(namespace string) *corev1.ServiceList {
	list := &corev1.ServiceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for _, name := range s.services {
		list.Items = append(list.Items, corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{corev1alpha2.LabelScopeName: "web"}},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		})
	}
	return list
}

// start serves as the API server of a cluster.
func (s *apiServer) start(t testing.TB) oneCluster {
	t.Helper()
	return startCluster(t, httptest.NewUnstartedServer(s))
}

// startCluster returns a cluster whose API server serves over TLS and HTTP/2, as API servers do.
func startCluster(t testing.TB, server *httptest.Server) oneCluster {
	t.Helper()
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}, QPS: -1}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return oneCluster{fleet.Access{Config: config, Client: client}, fleet.NewSubscription()}
}

// oneCluster is a fleet of one cluster that is always connected.
type oneCluster struct {
	access  fleet.Access
	changes *fleet.Subscription
}

func (oneCluster) State(string) (fleet.ClusterState, bool) {
	return fleet.ClusterState{Name: "edge", Reachability: fleet.Connected}, true
}

func (c oneCluster) Access(string) (fleet.Access, bool) { return c.access, true }

func (c oneCluster) Subscribe(fleet.Topic) (*fleet.Subscription, func()) {
	return c.changes, func() {}
}
