package fleet

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// +kubebuilder:rbac:groups=k8splugin.io,resources=resourcebundlestates,verbs=list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=healthscope-system,resources=leases,verbs=list;watch,resourceNames=healthscope-monitor

// monitorLease is the name of the Lease of a cluster's monitor.
const monitorLease = "healthscope-monitor"

// Options configure Setup.
type Options struct {
	// ClusterName is the name of the hub's own cluster.
	ClusterName string
	// Policy is the installation's policy in matters of time.
	Policy healthscope.Policy
	// Past returns what is remembered from before a restart of objects whose monitors keep no time, judged. The default is nothing.
	Past func(context.Context) (map[healthscope.Key]Seen, error)
	// HealthChecks are the user's rules, or nil.
	HealthChecks rules.UserRules
	// Objects get to know all clusters, so that they can watch objects there; nil when none are to be watched.
	Objects *Objects
	// Liveness makes the hub find out whether it sees its clusters. Without it, a cluster that was read once is Connected.
	Liveness *Liveness
	// Members makes the hub connect to other clusters. Without it, there is the hub's own cluster only.
	Members *Members
	// Budget bounds what clusters may take of the hub's memory. The default is no bound.
	Budget Budget
	// Clock tells the time. The default is the machine's.
	Clock clock.WithTickerAndDelayedExecution
}

// Liveness configures how a hub finds out whether it sees its clusters.
type Liveness struct {
	// MonitorNamespace is the namespace of the monitor's Lease in every cluster.
	MonitorNamespace string
	// Timeout is how long a cluster may take for an answer before it counts as away.
	Timeout time.Duration
}

// Members configures from where a hub knows other clusters.
type Members struct {
	// Namespace is the namespace of the Secrets with their kubeconfigs. Secrets are read in no other.
	Namespace string
	// Parse reads a kubeconfig, which is not to be trusted.
	Parse func([]byte) (*rest.Config, error)
}

// Setup adds to a manager what keeps a view of the bundles of all clusters, and
// returns the view. It runs on every replica, so that a new leader has a warm view.
// Only View.RecordEvents is for the leader.
//
// The hub's own cluster is a member as any other. As long as its API server
// does not serve bundles, the hub waits for their CRD, and View.Ready says so.
func Setup(mgr ctrl.Manager, o Options) (*View, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), k8spluginv1alpha1.AddToScheme(scheme)); err != nil {
		return nil, errors.Wrap(err, "cannot make a scheme")
	}
	h := &hub{
		options: o, view: newView(o.ClusterName), clock: o.Clock, config: mgr.GetConfig(),
		recorder: mgr.GetEventRecorder("healthscope-controller"), members: map[string]*member{},
		connect: connectOptions{scheme: scheme, user: o.HealthChecks},
		quotas:  quotas{hard: o.Budget, clock: o.Clock},
	}
	if o.Objects != nil {
		o.Objects.clock = o.Clock
	}
	h.view.usedRatios, h.view.record, h.view.refresh = h.quotas.usedRatios, h.recordEvents, h.refresh
	if o.Liveness != nil {
		h.connect.leaseNamespace = o.Liveness.MonitorNamespace
	}
	if o.Members != nil {
		var err error
		if h.secrets, err = newSecretWatch(mgr, scheme, o.Members.Namespace); err != nil {
			return nil, err
		}
		h.view.secrets = h.secrets.cache
	}
	return h.view, errors.Wrap(mgr.Add(h), "cannot add the fleet")
}
