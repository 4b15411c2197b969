package app

import (
	"context"
	"net/http"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/inventory"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// PreviewInventory judges all scopes as the controller does, without writing anything, and returns what the controller
// would change in A&AI. The configuration must have the section inventory.
func PreviewInventory(ctx context.Context, o Options, config *configv1alpha1.Configuration, logger logr.Logger) (preview inventory.Preview, err error) {
	mgr, err := newReadOnlyManager(&o)
	if err != nil {
		return preview, err
	}
	if err := scope.CheckReadable(ctx, mgr.GetAPIReader()); err != nil {
		return preview, err
	}
	i, err := setupPreview(mgr, &o, config, newHealthChecks(config, logger))
	if err != nil {
		return preview, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- mgr.Start(ctx)
		cancel()
	}()
	if mgr.GetCache().WaitForCacheSync(ctx) {
		preview, err = i.Preview(ctx, mgr.GetClient())
	} else {
		err = errors.New("the cluster cannot be read")
	}
	cancel()
	if end := <-ended; end != nil {
		return preview, end
	}
	return preview, err
}

// setupPreview adds to a manager the fleet and the scope controller, and returns the inventory that receives their results.
func setupPreview(mgr ctrl.Manager, o *Options, config *configv1alpha1.Configuration, checks rules.UserRules) (*inventory.Inventory, error) {
	view, objects, err := setupFleet(mgr, o, config, checks)
	if err != nil {
		return nil, err
	}
	options := inventoryOptionsOf(config)
	options.View, options.Registry, options.Metrics = view, scope.NewRegistry(), prometheus.NewRegistry()
	i, err := inventory.New(options)
	if err != nil {
		return nil, err
	}
	return i, scope.Setup(mgr, scope.Options{View: view, Objects: objects, Registry: options.Registry, Policy: PolicyOf(config.Policy), TrustedNamespaces: config.OAM.TrustedNamespaces})
}

// newReadOnlyManager returns a manager whose clients cannot write.
func newReadOnlyManager(o *Options) (ctrl.Manager, error) {
	config := rest.CopyConfig(o.REST)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return readOnlyTransport{next} })
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	return mgr, errors.Wrap(err, "cannot make the manager")
}

// readOnlyTransport rejects every request that could change an object.
type readOnlyTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r readOnlyTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		return nil, errors.Errorf("this command changes nothing: no %s", request.Method)
	}
	return r.next.RoundTrip(request)
}
