package app

import (
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/controllers/leading"
)

// setupClusters adds what renews the tokens of members, and what publishes the states of clusters.
func setupClusters(mgr ctrl.Manager, o *options, config *configv1alpha1.Configuration, view *fleet.View, gate *leading.Gate) error {
	return enrol.Setup(mgr, enrol.Options{
		Namespace: config.Fleet.Namespace, Secrets: view.Secrets(), Parse: kubeconfig.Parse, States: view,
		Lease: types.NamespacedName{Namespace: o.leaseNamespace(), Name: controllerLease}, Metrics: metrics.Registry, Spans: o.spans, Leading: gate,
	})
}
