package fleet

import (
	"context"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// +kubebuilder:rbac:groups=k8splugin.io,resources=resourcebundlestates,verbs=list;watch

// Options configure Setup.
type Options struct {
	// ClusterName is the name of the hub's own cluster.
	ClusterName string
	// Policy is the installation's policy in matters of time.
	Policy healthscope.Policy
	// Clock tells the time. The default is the machine's.
	Clock clock.PassiveClock
}

// CacheByObject returns how a manager's cache must hold bundles for Setup:
// judged by the rules as they come in, and without the objects they were judged from.
func CacheByObject() (client.Object, cache.ByObject) {
	return &k8spluginv1alpha1.ResourceBundleState{}, cache.ByObject{Transform: slim}
}

func slim(object any) (any, error) {
	if b, ok := object.(*k8spluginv1alpha1.ResourceBundleState); ok {
		bundle.Slim(b)
	}
	return object, nil
}

// Setup adds to a manager what keeps a view of the bundles of its cluster, and
// returns the view. It runs on every replica, so that a new leader has a warm view.
func Setup(mgr ctrl.Manager, o Options) (*View, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	view := newView(o.ClusterName)
	r := &bundleReconciler{reader: mgr.GetClient(), view: view, policy: o.Policy, clock: o.Clock}
	if err := mgr.Add(primer{r}); err != nil {
		return nil, errors.Wrap(err, "cannot add the first reading of bundles")
	}
	everywhere := false
	err := ctrl.NewControllerManagedBy(mgr).
		Named("bundle").
		For(&k8spluginv1alpha1.ResourceBundleState{}).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere}).
		Complete(r)
	return view, errors.Wrap(err, "cannot set up the bundle controller")
}

// bundleReconciler keeps a view in step with the bundles of one cluster.
type bundleReconciler struct {
	reader client.Reader
	view   *View
	policy healthscope.Policy
	clock  clock.PassiveClock
	// mu keeps an older reading of a bundle from being put into the view after a newer one.
	mu sync.Mutex
}

// Reconcile judges one bundle, now and again when time alone changes its judgement.
func (r *bundleReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := BundleKey{Cluster: r.view.cluster, Namespace: req.Namespace, Name: req.Name}
	var b k8spluginv1alpha1.ResourceBundleState
	if err := r.reader.Get(ctx, req.NamespacedName, &b); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, errors.Wrapf(err, "cannot get ResourceBundleState %q", req.NamespacedName)
		}
		r.view.put(key, nil)
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: r.judge(key, &b)}, nil
}

// judge puts a bundle into the view and returns when to look at it again; zero means when it changes.
func (r *bundleReconciler) judge(key BundleKey, b *k8spluginv1alpha1.ResourceBundleState) time.Duration {
	now := r.clock.Now()
	contents := bundle.Read(key.Cluster, b)
	verdict := healthscope.Judge(contents.Results, r.policy, now)
	r.view.put(key, &Bundle{
		BundleKey: key, UID: b.UID, App: bundle.App(b), Labels: b.Labels,
		Observed: contents.Observed, Truncated: contents.Truncated, Malformed: contents.Malformed,
		Members: verdict.Members,
	})
	return healthscope.Until(verdict.NextCheck, now)
}

// primer judges all bundles of a cluster once before the view says that it is synced.
type primer struct{ *bundleReconciler }

// Start implements manager.Runnable.
func (p primer) Start(ctx context.Context) error {
	err := p.prime(ctx)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // The manager is stopping, which is why there is an error.
	}
	return err
}

func (p primer) prime(ctx context.Context) error {
	var list k8spluginv1alpha1.ResourceBundleStateList
	if err := p.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return errors.Wrap(err, "cannot list ResourceBundleStates")
	}
	for i := range list.Items {
		// What Reconcile says about looking again is left to the controller, which is given every bundle once when it starts.
		if _, err := p.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}); err != nil {
			return err
		}
	}
	close(p.view.synced)
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica keeps a view.
func (p primer) NeedLeaderElection() bool { return false }

var _ manager.LeaderElectionRunnable = primer{}
