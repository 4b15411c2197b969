package app

import (
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/leading"
	"github.com/healthscope/healthscope/controllers/recorder"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// setupRecorder adds to a manager what saves bundles in AppContexts, if that is wanted. store is where these are.
func setupRecorder(mgr ctrl.Manager, o *options, config *configv1alpha1.Configuration, view *fleet.View, store *appcontext.Store, gate *leading.Gate) error {
	if config.Recorder == nil {
		return nil
	}
	lease := types.NamespacedName{Namespace: o.leaseNamespace(), Name: controllerLease}
	return recorder.Setup(mgr, recorder.Options{View: view, Store: store, Lease: lease, Registry: metrics.Registry, Spans: o.spans, Leading: gate})
}
