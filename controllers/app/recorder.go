package app

import (
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/recorder"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// setupRecorder adds to a manager the recorder, which saves bundles in the AppContexts of store, if it is configured.
func setupRecorder(mgr *term, o *Options, config *configv1alpha1.Configuration, view *fleet.View, store *appcontext.Store) error {
	if config.Recorder == nil {
		return nil
	}
	lease := types.NamespacedName{Namespace: o.LeaseNamespace, Name: controllerLease}
	return recorder.Setup(mgr, recorder.Options{View: view, Store: store, Lease: lease, Registry: mgr, TracerProvider: o.spans, ReadyKeys: config.Recorder.ReadyKeys})
}
