package app

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// setupFleet adds to the manager of a hub the connections to its clusters, and returns what they observe.
func setupFleet(mgr ctrl.Manager, o *Options, config *configv1alpha1.Configuration, userRules rules.UserRules) (*fleet.View, *fleet.Objects, error) {
	objects := fleet.NewObjects(config.Monitor.AllowedLabels, userRules)
	timeout := time.Duration(*config.Fleet.TimeoutSeconds) * time.Second
	member := kubeconfig.Options{
		QPS: float32(*config.Fleet.QueriesPerSecond), Burst: int(*config.Fleet.Burst), UserAgent: "healthscope/" + o.Version + " controller",
		// A whole list takes longer than its first byte.
		Timeout: max(2*timeout, kubeconfig.DefaultTimeout),
	}
	view, err := fleet.Setup(mgr, fleet.Options{
		ClusterName: config.ClusterName, Policy: PolicyOf(config.Policy), History: scope.ReadHistory(mgr.GetClient()), HealthChecks: userRules, Objects: objects,
		Liveness: &fleet.Liveness{MonitorNamespace: config.Fleet.MonitorNamespace, Timeout: timeout},
		Budget: fleet.Budget{
			Bundles: int64(*config.Fleet.Budget.Bundles), Resources: int64(*config.Fleet.Budget.Resources),
			Changes: int64(*config.Fleet.Budget.ChangesPerSecond),
			Bytes:   int64(*config.Fleet.Budget.MemoryMiB) << 20, Total: int64(*config.Fleet.Budget.TotalMemoryMiB) << 20,
		},
		Members: &fleet.Members{Namespace: config.Fleet.Namespace, Parse: member.Parse},
	})
	return view, objects, err
}
