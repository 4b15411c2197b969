package fleet

import (
	"context"
	"net/http"
	"slices"

	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

// Access is how to reach a cluster.
type Access struct {
	// Config is the client configuration of the cluster, and Client a client made from it. The default of Client is a new one.
	Config *rest.Config
	Client *http.Client
	// Namespaces are the namespaces that may be read; empty means all.
	Namespaces []string

	// reader reads whole bundles.
	reader rest.Interface
	// meter counts what the hub holds of the cluster; nil when nothing is counted.
	meter *meter
}

// Reads reports whether a namespace may be read.
func (a Access) Reads(namespace string) bool {
	return len(a.Namespaces) == 0 || slices.Contains(a.Namespaces, namespace)
}

// Meter returns a ListerWatcher that reads from source within the cluster's budget. The caller calls uncount once it holds none of the objects any more.
func (a Access) Meter(source toolscache.ListerWatcher) (metered toolscache.ListerWatcher, uncount func()) {
	return a.meter.wrap(source, objectsPage, usageOfObject)
}

// CheckReady probes the API server, and returns an error when it is not reachable or not ready.
func (a Access) CheckReady(ctx context.Context) error { return a.try(ctx, "") }
