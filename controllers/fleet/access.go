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
	// Config leads to the API server, and Client is made from it. The default of the latter is a new one.
	Config *rest.Config
	Client *http.Client
	// Namespaces are those that may be read; none means all.
	Namespaces []string

	// reader reads bundles, whole.
	reader rest.Interface
	// meter counts what is held of the cluster; nil when nothing is counted.
	meter *meter
}

// Reads reports whether a namespace may be read.
func (a Access) Reads(namespace string) bool {
	return len(a.Namespaces) == 0 || slices.Contains(a.Namespaces, namespace)
}

// Count returns what reads objects within the cluster's budget, and what is to be called when none of them is held any more.
func (a Access) Count(source toolscache.ListerWatcher) (metered toolscache.ListerWatcher, uncount func()) {
	return a.meter.wrap(source, objectsPage, usageOfObject)
}

// Ask returns why the API server seems not to be there; nil when it is.
func (a Access) Ask(ctx context.Context) error { return a.try(ctx, "") }
