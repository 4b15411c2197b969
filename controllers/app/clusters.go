package app

import (
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// setupClusters adds the renewal of the members' tokens, and the publisher of the states of clusters.
func setupClusters(mgr *term, o *Options, config *configv1alpha1.Configuration, view *fleet.View) error {
	return enrol.Setup(mgr, enrol.Options{
		Namespace: config.Fleet.Namespace, Secrets: mgr.cache(view.Secrets()), States: view,
		Lease: types.NamespacedName{Namespace: o.LeaseNamespace, Name: controllerLease}, Metrics: mgr, TracerProvider: o.spans,
	})
}
