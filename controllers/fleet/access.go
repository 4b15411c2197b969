package fleet

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// errUnauthorized means that the API server does not accept the credentials.
var errUnauthorized = errors.New("the API server does not accept the credentials (401 Unauthorized): the token or the certificate may have expired")

// Access is how to reach a cluster.
type Access struct {
	// Config is the client configuration of the cluster, and Client a client made from it. The default of Client is a new one.
	Config *rest.Config
	Client *http.Client
	// Namespaces are the namespaces that may be read; empty means all.
	Namespaces []string

	// reader reads bundles.
	reader rest.Interface
	// meter counts what the hub holds of the cluster; nil when nothing is counted.
	meter *meter
}

// Reads reports whether a namespace may be read.
func (a Access) Reads(namespace string) bool {
	return len(a.Namespaces) == 0 || slices.Contains(a.Namespaces, namespace)
}

// watchNamespaces returns the namespaces to watch; the empty one stands for all.
func (a Access) watchNamespaces() []string {
	if len(a.Namespaces) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return a.Namespaces
}

// Meter returns a ListerWatcher that reads from source within the cluster's budget. The caller calls uncount once it holds none of the objects any more.
func (a Access) Meter(source toolscache.ListerWatcher) (metered toolscache.ListerWatcher, uncount func()) {
	return a.meter.wrap(source, objectsPage, usageOfObject)
}

// CheckReady probes the API server, and returns an error when it is not reachable or not ready.
func (a Access) CheckReady(ctx context.Context) error { return a.try(ctx, "") }

// clusterClients are the clients that read the objects of a cluster. client is nil until the cluster is attached.
type clusterClients struct {
	Access

	client    dynamic.Interface
	discovery *apiDiscovery
}

// open returns the clients of an Access.
func (a Access) open(c clock.PassiveClock) (clients clusterClients, err error) {
	if a.Client == nil {
		if a.Client, err = rest.HTTPClientFor(a.Config); err != nil {
			return clients, err
		}
	}
	clients.Access = a
	if clients.client, err = dynamic.NewForConfigAndClient(a.Config, a.Client); err != nil {
		return clients, err
	}
	clients.discovery, err = newAPIDiscovery(a.Config, a.Client.Transport, c)
	return clients, err
}

// try probes an API server, and returns an error when it does not answer or is not ready. A refusal (403) counts as an answer.
// The error is errUnauthorized when the API server does not accept the credentials, which are the token, or without a token
// those of the client.
//
// See https://kubernetes.io/docs/reference/using-api/health-checks/ for /readyz, which every client may read by default.
func (a Access) try(ctx context.Context, token string) error {
	base, _, err := rest.DefaultServerUrlFor(a.Config)
	if err != nil {
		return errors.Wrap(err, "cannot read the server's address")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("readyz").String(), http.NoBody)
	if err != nil {
		return errors.Wrap(err, "cannot ask")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := a.Client.Do(request)
	if ctx.Err() != nil {
		err = errors.New("no answer in time")
	}
	if err != nil {
		return withoutAddress(err)
	}
	_ = response.Body.Close() // Only the status matters.
	switch {
	case response.StatusCode >= http.StatusInternalServerError:
		return errors.Errorf("it is not ready: /readyz answers %s", response.Status)
	case response.StatusCode == http.StatusUnauthorized:
		return errUnauthorized
	}
	return nil
}

// withoutAddress returns the cause of a failed request without the address, which the cause contains already or which adds nothing.
func withoutAddress(err error) error {
	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
		return urlErr.Err
	}
	return err
}
