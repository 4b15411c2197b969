package portforward

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// maxProblem is how much of an answer that says what is wrong is read, in bytes.
const maxProblem = 4 << 10

// Transport sends requests to a port of a pod, whatever the host in their URLs. Each request has a connection of its own, which ends with
// the request's context. It is asked by https or, if it speaks nothing but http, by that: a listener for its own machine has no certificate.
type Transport struct {
	// Config is how the API server is reached.
	Config *rest.Config
	// Pod is the pod, and Port its port.
	Pod  types.NamespacedName
	Port int32
}

// Verified returns why it cannot be known that the API server answers. The pod's own certificate proves nothing, so that whether a
// token may be sent depends on that alone.
func (t Transport) Verified() error {
	config, err := rest.TLSConfigFor(t.Config)
	switch {
	case err != nil:
		return err
	case t.Config.Insecure || config != nil && config.InsecureSkipVerify:
		return errors.New("the kubeconfig does not have the API server verified (insecure-skip-tls-verify)")
	case !strings.HasPrefix(t.Config.Host, "https://"):
		return errors.New("the API server is not reached by https, and so not verified")
	}
	return nil
}

// RoundTrip implements http.RoundTripper for requests without a body.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.send(r, "https")
	if plain := (tls.RecordHeaderError{}); errors.As(err, &plain) && string(plain.RecordHeader[:]) == "HTTP/" {
		answer, err = t.send(r, "http")
	}
	return answer, err
}

func (t Transport) send(r *http.Request, scheme string) (*http.Response, error) {
	client, err := kubernetes.NewForConfig(t.Config)
	if err != nil {
		return nil, err
	}
	target := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(t.Pod.Namespace).Name(t.Pod.Name).SubResource("portforward").URL()
	ctx := r.Context()
	r = r.Clone(ctx)
	r.URL.Scheme = scheme
	transport := &http.Transport{
		// The transport's own context outlives the request; this one does not.
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return dialPort(ctx, t.Config, target, t.Port)
		},
		// The pod makes its certificate itself. That the pod answers is known from the API server and its way to the node.
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // As it says.
		DisableKeepAlives: true,
	}
	return transport.RoundTrip(r)
}
