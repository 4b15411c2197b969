package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// syncTimeout is long enough for a discovery, a list and its retries that all take
// until their timeouts: the start does not wait for a kind that fails for longer than startGrace.
const syncTimeout = 5 * time.Minute

const (
	// labelManagedBy and managedBy are the label and its value on the bundles that the monitor created.
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "healthscope-monitor"
	// createInterval is the minimum time between two creations, so that many new applications do not overload the API server.
	createInterval = 10 * time.Millisecond
	// createTimeout is the timeout of a create request.
	createTimeout = 30 * time.Second
	// minCreatePause and maxCreatePause bound the pause before a failed creation is retried.
	minCreatePause = time.Second
	maxCreatePause = 10 * time.Minute
)

// creator creates missing bundles: one for each value of a label that an object in a namespace carries. It never deletes a bundle,
// because an application whose objects are gone must be reported as missing. It is the reconciler of a controller with one worker.
type creator struct {
	key     string
	client  client.Client
	bundles func(context.Context, selectorKey) ([]types.NamespacedName, error)
	// isCarried reports whether an object carries the label.
	isCarried func(selectorKey) bool
	// created is called for each created bundle.
	created func()
	logger  logr.Logger
	// limiter limits the rate of creations, and pauses returns when to retry a failed one.
	limiter *rate.Limiter
	pauses  workqueue.TypedRateLimiter[selectorKey]
	// queue is the queue of the controller; nil before it starts.
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[selectorKey]]

	// Only the worker uses the following fields. reported holds the keys for which it was logged that no bundle can be created, and refusals
	// the namespaces that have refused one.
	reported sets.Set[selectorKey]
	refusals map[string]refusal
}

// refusal is how long no bundles are created in a namespace because it refused one, and until when.
type refusal struct {
	pause time.Duration
	until time.Time
}

func newCreator(key string, c client.Client, logger logr.Logger) *creator {
	return &creator{
		key: key, client: c, logger: logger,
		limiter:  rate.NewLimiter(rate.Every(createInterval), 1),
		pauses:   workqueue.NewTypedItemExponentialFailureRateLimiter[selectorKey](minCreatePause, maxCreatePause),
		reported: sets.New[selectorKey](), refusals: map[string]refusal{},
	}
}

// options returns the options of the creator's controller.
func (c *creator) options() controller.TypedOptions[selectorKey] {
	return controller.TypedOptions[selectorKey]{MaxConcurrentReconciles: 1, CacheSyncTimeout: syncTimeout}
}

// setQueue sets the queue of the controller. Keys that were enqueued before are dropped: the caller must enqueue all keys again.
func (c *creator) setQueue(q workqueue.TypedRateLimitingInterface[selectorKey]) { c.queue.Store(&q) }

// enqueue enqueues keys whose objects or bundles have changed, but no keys of cluster-scoped objects, which have no namespace for a bundle.
func (c *creator) enqueue(touched sets.Set[selectorKey]) {
	q := c.queue.Load()
	for t := range touched {
		if q != nil && t.namespace != "" && t.key == c.key {
			(*q).Add(t)
		}
	}
}

// keysOf returns a function that returns the keys whose bundle may be missing once a bundle is changed or deleted: the one that it selected,
// and the one whose value is its name, which the creator may have been unable to use.
func (c *creator) keysOf(m membership) handler.TypedMapFunc[*k8spluginv1alpha1.ResourceBundleState, selectorKey] {
	return func(_ context.Context, b *k8spluginv1alpha1.ResourceBundleState) []selectorKey {
		keys := []selectorKey{{namespace: b.Namespace, key: c.key, value: b.Name}}
		if key, value, ok := m.selected(b); ok && key == c.key {
			keys = append(keys, selectorKey{namespace: b.Namespace, key: key, value: value})
		}
		return keys
	}
}

// released accepts the events of bundles that may select other objects than before. A bundle that is deleted and recreated between two
// lists appears as an update.
var released = predicate.TypedFuncs[*k8spluginv1alpha1.ResourceBundleState]{
	CreateFunc: func(event.TypedCreateEvent[*k8spluginv1alpha1.ResourceBundleState]) bool { return false },
	UpdateFunc: func(e event.TypedUpdateEvent[*k8spluginv1alpha1.ResourceBundleState]) bool {
		return e.ObjectOld.UID != e.ObjectNew.UID || e.ObjectOld.Generation != e.ObjectNew.Generation
	},
}

// Reconcile creates the bundle of a key if there is none. It returns no error: a failure is logged once, and retried at growing intervals.
func (c *creator) Reconcile(ctx context.Context, wanted selectorKey) (ctrl.Result, error) {
	wait, err := c.ensure(ctx, wanted)
	switch {
	case err != nil:
		c.logger.V(1).Info("No bundle for a label, trying again", "namespace", wanted.namespace, "label", wanted.index(), "reason", err.Error())
		wait = max(c.pauses.When(wanted), c.waitTime(wanted))
	case wait == 0:
		c.pauses.Forget(wanted)
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// waitTime returns how long a key must wait for its namespace. Keys that have failed wait longer, so that they do not starve the others.
func (c *creator) waitTime(wanted selectorKey) time.Duration {
	wait := max(0, time.Until(c.refusals[wanted.namespace].until))
	if wait > 0 && c.pauses.NumRequeues(wanted) > 0 {
		wait += minCreatePause
	}
	return wait
}

// ensure creates the bundle of a key unless it exists or no object carries the label. It returns an error if the key must be retried, or
// a time after which it must be.
func (c *creator) ensure(ctx context.Context, wanted selectorKey) (wait time.Duration, err error) {
	selecting, err := c.bundles(ctx, wanted)
	if err != nil {
		return 0, fmt.Errorf("cannot find the bundles of label %q: %w", wanted.index(), err)
	}
	isIn := func(b types.NamespacedName) bool { return b.Namespace == wanted.namespace }
	if !c.isCarried(wanted) || slices.ContainsFunc(selecting, isIn) {
		c.reported.Delete(wanted)
		return 0, nil
	}
	if wanted.value == "" {
		c.logSkipped(wanted, "the label has no value")
		return 0, nil
	}
	name := nameOfBundle(bundleFor(wanted))
	err = c.client.Get(ctx, name, &k8spluginv1alpha1.ResourceBundleState{}, client.UnsafeDisableDeepCopyOption(true))
	switch {
	case err == nil:
		c.logSkipped(wanted, "another bundle has the name")
		return 0, fmt.Errorf("another bundle has the name %q", name)
	case !apierrors.IsNotFound(err):
		return 0, fmt.Errorf("cannot get bundle %q from the cache: %w", name, err)
	}
	if wait := c.waitTime(wanted); wait > 0 {
		return wait, nil
	}
	if err := c.limiter.Wait(ctx); err != nil {
		return 0, err
	}
	return 0, c.create(ctx, wanted)
}

// create creates the bundle of a key, and logs once why it cannot be created. It returns an error if the key must be retried.
func (c *creator) create(ctx context.Context, wanted selectorKey) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	b := bundleFor(wanted)
	name := nameOfBundle(b)
	err := c.client.Create(ctx, b, fieldOwner)
	switch {
	case err == nil:
		c.reported.Delete(wanted)
		delete(c.refusals, wanted.namespace)
		c.created()
		c.logger.Info("Made bundle", "bundle", name, "label", wanted.index())
		return nil
	case isNamespaceTerminating(err):
		return nil // The objects with the label are deleted too.
	case apierrors.IsInvalid(err):
		c.logSkipped(wanted, err.Error())
		return nil
	case apierrors.IsAlreadyExists(err):
		delete(c.refusals, wanted.namespace) // The cache is going to show the other bundle.
	default:
		c.refused(name, err)
	}
	return fmt.Errorf("cannot make bundle %q: %w", name, err)
}

// isNamespaceTerminating reports whether a bundle could not be created because its namespace is terminating or does not exist. Other
// NotFound errors are retried: an API server returns one while it does not have the CRD of bundles.
func isNamespaceTerminating(err error) bool {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	namespaceNotFound := ok && apierrors.IsNotFound(err) && answer.ErrStatus.Details != nil && answer.ErrStatus.Details.Kind == "namespaces"
	return namespaceNotFound || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// refused records that a bundle could not be created, and logs it once for its namespace.
func (c *creator) refused(name types.NamespacedName, err error) {
	maps.DeleteFunc(c.refusals, func(_ string, r refusal) bool {
		return time.Since(r.until) > 2*maxCreatePause // No object in the namespace carries the label any more.
	})
	r, again := c.refusals[name.Namespace]
	if !again {
		c.logger.Info("Cannot make bundles in a namespace, trying again at growing intervals", "bundle", name, "reason", err.Error())
	}
	r.pause = min(max(2*r.pause, minCreatePause), maxCreatePause)
	r.until = time.Now().Add(r.pause)
	c.refusals[name.Namespace] = r
}

// logSkipped logs once why no bundle can be created for a key.
func (c *creator) logSkipped(wanted selectorKey, reason string) {
	if !c.reported.Has(wanted) {
		c.reported.Insert(wanted)
		c.logger.Info("Cannot make a bundle for a label", "namespace", wanted.namespace, "label", wanted.index(), "reason", reason)
	}
}

// bundleFor returns the bundle that the creator creates for a key.
func bundleFor(c selectorKey) *k8spluginv1alpha1.ResourceBundleState {
	return &k8spluginv1alpha1.ResourceBundleState{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.namespace, Name: bundleName(c.value),
			Labels: map[string]string{c.key: c.value, labelManagedBy: managedBy},
		},
		Spec: k8spluginv1alpha1.ResourceBundleStateSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{c.key: c.value}},
		},
	}
}

// bundleName returns the name of the bundle for a value: the value itself or, if it is not a valid object name, its valid characters in
// lower case with a hash of the value, which keeps the names unique.
func bundleName(value string) string {
	if len(validation.IsDNS1123Subdomain(value)) == 0 {
		return value
	}
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '-'
		}
	}, value)
	sum := sha256.Sum256([]byte(value))
	return strings.TrimLeft(strings.Trim(plain, "-")+"-"+hex.EncodeToString(sum[:4]), "-")
}
