package kubeconfig

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// canary is in every secret of the tests, and must not appear in any output.
const canary = "canary-7f1e"

// newServer returns a TLS server with HTTP/2.
func newServer(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// authorityOf returns the certificate that verifies a server, as PEM.
func authorityOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// sample returns a kubeconfig that is accepted, after an edit.
func sample(t testing.TB, edit func(*clientcmdapi.Config)) []byte {
	t.Helper()
	config := &clientcmdapi.Config{
		APIVersion: "v1", Kind: "Config", CurrentContext: "edge",
		Clusters:  []clientcmdapi.NamedCluster{{Name: "site", Cluster: clientcmdapi.Cluster{Server: "https://edge01.example.org:6443"}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: "hub", AuthInfo: clientcmdapi.AuthInfo{Token: canary}}},
		Contexts:  []clientcmdapi.NamedContext{{Name: "edge", Context: clientcmdapi.Context{Cluster: "site", AuthInfo: "hub"}}},
	}
	if edit != nil {
		edit(config)
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// configOf returns the configuration of a kubeconfig for a server.
func configOf(t testing.TB, server *httptest.Server) *rest.Config {
	t.Helper()
	data, err := New(Member{Name: "edge", Server: server.URL, Authority: authorityOf(server), Token: canary})
	if err != nil {
		t.Fatal(err)
	}
	config, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// clientOf returns a client for a server, made from a kubeconfig. Limits that are set replace the defaults.
func clientOf(t testing.TB, server *httptest.Server, l limits) *http.Client {
	t.Helper()
	config := configOf(t, server)
	g := limitedTransportOf(t, config)
	for _, limit := range []struct{ to, from *int64 }{{&g.limits.body, &l.body}, {&g.limits.errorBody, &l.errorBody}, {&g.limits.event, &l.event}} {
		if *limit.from > 0 {
			*limit.to = *limit.from
		}
	}
	if l.timeout > 0 {
		g.limits.timeout = l.timeout
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transportOf(t, config).CloseIdleConnections)
	return client
}

func limitedTransportOf(t testing.TB, config *rest.Config) *limitedTransport {
	t.Helper()
	g, ok := config.Transport.(*limitedTransport)
	if !ok {
		t.Fatalf("the transport is a %T", config.Transport)
	}
	return g
}

func transportOf(t testing.TB, config *rest.Config) *http.Transport {
	t.Helper()
	transport, ok := limitedTransportOf(t, config).WrappedRoundTripper().(*http.Transport)
	if !ok {
		t.Fatalf("the limitedTransport wraps a %T", limitedTransportOf(t, config).WrappedRoundTripper())
	}
	return transport
}
