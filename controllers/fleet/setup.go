package fleet

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// +kubebuilder:rbac:groups=k8splugin.io,resources=resourcebundlestates,verbs=list;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=healthscope-system,resources=leases,verbs=list;watch,resourceNames=healthscope-monitor

// memberScheme contains bundles and Secrets.
var memberScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(errors.Join(corev1.AddToScheme(scheme), k8spluginv1alpha1.AddToScheme(scheme)))
	return scheme
}()

// Setup adds a fleet to a manager, and returns its view of the bundles of all clusters.
// It runs on every replica, so that a new leader has a warm view. Only the leader calls
// View.RecordEvents.
//
// The hub's own cluster is a member like any other. As long as its API server
// does not serve bundles, the hub waits for their CRD, and View.Ready says so.
func Setup(mgr ctrl.Manager, o Options) (*View, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	h := &hub{members: map[string]*member{}, environment: &environment{
		options: o, view: newView(o.ClusterName), clock: o.Clock, config: mgr.GetConfig(),
		events: secretEvents{recorder: mgr.GetEventRecorder("healthscope-controller")},
		quotas: quotas{hard: o.Budget, clock: o.Clock},
	}}
	if o.Objects != nil {
		o.Objects.clock = o.Clock
	}
	h.view.usedRatios, h.view.record, h.view.refresh = h.quotas.usedRatios, h.events.run, h.refresh
	if o.Members != nil {
		var err error
		if h.secrets, err = newSecretWatch(mgr, o.Members.Namespace); err != nil {
			return nil, err
		}
		h.view.secrets = h.secrets.cache
	}
	return h.view, errors.Wrap(mgr.Add(h), "cannot add the fleet")
}
