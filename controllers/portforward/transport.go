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

// maxErrorText is how much of an error message is read, in bytes.
const maxErrorText = 4 << 10

// Transport is an http.RoundTripper that sends requests to a port of a pod. It ignores scheme and host of their URLs. Each request uses its own
// connection, which is closed when the request's context ends. Transport tries https first, and then http if the pod does not serve TLS: a
// listener on a loopback address has no certificate.
type Transport struct {
	// Config configures the client for the API server.
	Config *rest.Config
	// Pod is the pod, and Port the port on which it serves HTTP.
	Pod  types.NamespacedName
	Port int32
}

// CheckVerified returns an error if the connection to the API server is not verified. The pod's own certificate proves nothing, so a token may be
// sent only through a verified API server.
func (t Transport) CheckVerified() error {
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
	response, err := t.send(r, "https")
	if recordErr := (tls.RecordHeaderError{}); errors.As(err, &recordErr) && string(recordErr.RecordHeader[:]) == "HTTP/" {
		response, err = t.send(r, "http")
	}
	return response, err
}

// send sends a request to the pod by a scheme, http or https.
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
		// The context that the transport passes outlives the request; ctx does not.
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return dialPort(ctx, t.Config, target, t.Port)
		},
		// The pod's certificate is self-signed. The API server and its connection to the node prove which pod responds.
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // See above.
		DisableKeepAlives: true,
	}
	return transport.RoundTrip(r)
}
