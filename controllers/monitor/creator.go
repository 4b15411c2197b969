package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// syncTimeout leaves time for a discovery, a list and its attempts that all end
// at their deadlines: a kind that fails for longer than startGrace is not waited for.
const syncTimeout = 5 * time.Minute

const (
	// labelManagedBy and managedBy mark the bundles that the monitor made.
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "healthscope-monitor"
	// createInterval is the time between two creations: a cluster full of new
	// applications must not keep the API server from anything else.
	createInterval = 10 * time.Millisecond
	// createTimeout bounds a creation.
	createTimeout = 30 * time.Second
	// minCreatePause and maxCreatePause bound the pause before a creation that failed is tried again.
	minCreatePause = time.Second
	maxCreatePause = 10 * time.Minute
	// commonRefusals is how many namespaces that refuse bundles in a row are taken for
	// a right that is missing everywhere: one or two have a quota, or an admission of their own.
	commonRefusals = 3
	// maxCommonPause bounds the pause that they cause for all namespaces.
	maxCommonPause = time.Minute
)

var (
	// createPause is the pause before the next attempt in a namespace that refuses bundles.
	createPause = wait.Backoff{Duration: minCreatePause, Factor: 2, Jitter: 0.1, Steps: 20, Cap: maxCreatePause}
	// commonPause is the pause before the next attempt in any namespace, while no namespace takes bundles.
	commonPause = wait.Backoff{Duration: minCreatePause, Factor: 2, Jitter: 0.1, Steps: 20, Cap: maxCommonPause}
)

// refusal is for how long no bundles are made because they were refused, and for how long after the next time.
type refusal struct {
	until time.Time
	pause wait.Backoff
}

// creator makes missing bundles: one for each value of a
// label in a namespace that some object carries. It never deletes one, because
// an application that has vanished must be seen to be missing. It is the
// reconciler of a controller whose requests are selector keys, with one worker.
type creator struct {
	key     string
	client  client.Client
	bundles func(context.Context, selectorKey) ([]types.NamespacedName, error)
	// isCarried reports whether an object carries the label.
	isCarried func(selectorKey) bool
	// created is called for each bundle that was made.
	created func()
	logger  logr.Logger
	// limiter admits creations, and pauses says when to try one again that failed.
	limiter *rate.Limiter
	pauses  workqueue.TypedRateLimiter[selectorKey]
	// queue is that of the controller, nil before it starts.
	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[selectorKey]]

	// What follows belongs to the one worker. reported are the keys of which it has been logged that no bundle can be
	// made, refusals those in force by namespace, that of all namespaces by the empty name, and refusing the namespaces
	// that have refused bundles since one was made.
	reported sets.Set[selectorKey]
	refusals map[string]refusal
	refusing sets.Set[string]
}

func newCreator(key string, c client.Client, logger logr.Logger) *creator {
	return &creator{
		key: key, client: c, logger: logger,
		limiter:  rate.NewLimiter(rate.Every(createInterval), 1),
		pauses:   workqueue.NewTypedItemExponentialFailureRateLimiter[selectorKey](minCreatePause, maxCreatePause),
		reported: sets.New[selectorKey](), refusals: map[string]refusal{}, refusing: sets.New[string](),
	}
}

// options are those of the creator's controller.
func (c *creator) options() controller.TypedOptions[selectorKey] {
	return controller.TypedOptions[selectorKey]{
		MaxConcurrentReconciles: 1,
		CacheSyncTimeout:        syncTimeout,
	}
}

// begin makes q the queue of the keys to look at. What was considered before is
// not in it: the caller considers all keys once more.
func (c *creator) begin(q workqueue.TypedRateLimitingInterface[selectorKey]) { c.queue.Store(&q) }

// consider enqueues keys whose objects or bundles have changed. A cluster-scoped object has no namespace for a bundle.
func (c *creator) consider(touched sets.Set[selectorKey]) {
	q := c.queue.Load()
	for t := range touched {
		if q != nil && t.namespace != "" && t.key == c.key {
			(*q).Add(t)
		}
	}
}

// Reconcile makes the bundle of a key, if there is none. A failure is no error
// of the controller: it is logged once, and tried again at growing intervals.
func (c *creator) Reconcile(ctx context.Context, wanted selectorKey) (ctrl.Result, error) {
	wait, err := c.ensure(ctx, wanted)
	switch {
	case err != nil:
		c.logger.V(1).Info("No bundle for a label, trying again", "namespace", wanted.namespace, "label", wanted.index(), "reason", err.Error())
		wait = max(c.pauses.When(wanted), c.turn(wanted))
	case wait == 0:
		c.pauses.Forget(wanted)
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// turn returns how long a key must wait for its namespace. Keys that have failed
// go last, so that they do not starve the others.
func (c *creator) turn(wanted selectorKey) time.Duration {
	wait := max(0, time.Until(c.refusals[wanted.namespace].until), time.Until(c.refusals[""].until))
	if wait > 0 && c.pauses.NumRequeues(wanted) > 0 {
		wait += minCreatePause
	}
	return wait
}

// ensure makes the bundle of a key unless there is one, or nothing to report
// in it. The error asks for another attempt, and a wait for one after that.
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
		c.reportSkipped(wanted, "the label has no value")
		return 0, nil
	}
	name := bundleOf(wanted)
	err = c.client.Get(ctx, name, &k8spluginv1alpha1.ResourceBundleState{}, client.UnsafeDisableDeepCopyOption(true))
	switch {
	case err == nil:
		c.reportSkipped(wanted, "another bundle has the name")
		return 0, fmt.Errorf("another bundle has the name %q", name)
	case !apierrors.IsNotFound(err):
		return 0, fmt.Errorf("cannot get bundle %q from the cache: %w", name, err)
	}
	if wait := c.turn(wanted); wait > 0 {
		return wait, nil
	}
	if err := c.limiter.Wait(ctx); err != nil {
		return 0, err
	}
	return 0, c.create(ctx, wanted)
}

// create makes the bundle of a key, and reports what is in the way once. The error asks for another attempt.
func (c *creator) create(ctx context.Context, wanted selectorKey) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	b := bundleFor(wanted)
	name := nameOfBundle(b)
	err := c.client.Create(ctx, b, fieldOwner)
	switch {
	case err == nil:
		c.reported.Delete(wanted)
		c.accepted(wanted.namespace)
		c.created()
		c.logger.Info("Made bundle", "bundle", name, "label", wanted.index())
		return nil
	case namespaceGoes(err):
		return nil // And with it what carries the label.
	case apierrors.IsInvalid(err):
		c.reportSkipped(wanted, err.Error())
		return nil
	case apierrors.IsAlreadyExists(err):
		c.accepted(wanted.namespace) // The cache will say who has the name.
	default:
		c.refused(name, err)
	}
	return fmt.Errorf("cannot make bundle %q: %w", name, err)
}

// namespaceGoes reports whether a bundle could not be made because its namespace is going or gone. That something else was
// not found is no end: it is what an API server says while it has no CRD of bundles.
func namespaceGoes(err error) bool {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	missing := ok && apierrors.IsNotFound(err) && answer.ErrStatus.Details != nil && answer.ErrStatus.Details.Kind == "namespaces"
	return missing || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// accepted notes that bundles can be made in a namespace.
func (c *creator) accepted(namespace string) {
	delete(c.refusals, namespace)
	delete(c.refusals, "")
	c.refusing.Clear()
}

// refused notes that a bundle could not be made, and logs it once: for its
// namespace or, when several refuse, for all.
func (c *creator) refused(name types.NamespacedName, err error) {
	for namespace, r := range c.refusals {
		if time.Since(r.until) > 2*maxCreatePause {
			delete(c.refusals, namespace) // No object there carries the label any more.
		}
	}
	c.refusing.Insert(name.Namespace)
	begins, where := c.pause(name.Namespace, createPause), "a namespace"
	if c.refusing.Len() >= commonRefusals {
		begins, where = c.pause("", commonPause), "several namespaces"
	}
	if begins {
		c.logger.Info("Cannot make bundles in "+where+", trying again at growing intervals", "bundle", name, "reason", err.Error())
	}
}

// pause puts off the next attempt in a namespace, or in all for the empty name, and reports whether it had not been put off before.
func (c *creator) pause(namespace string, pauses wait.Backoff) (begins bool) {
	r, known := c.refusals[namespace]
	if !known {
		r.pause = pauses
	}
	r.until = time.Now().Add(r.pause.Step())
	c.refusals[namespace] = r
	return !known
}

// reportSkipped logs once why no bundle can be made for a key.
func (c *creator) reportSkipped(wanted selectorKey, reason string) {
	if !c.reported.Has(wanted) {
		c.reported.Insert(wanted)
		c.logger.Info("Cannot make a bundle for a label", "namespace", wanted.namespace, "label", wanted.index(), "reason", reason)
	}
}

// bundleOf returns the name of the bundle that the creator makes for a key.
func bundleOf(c selectorKey) types.NamespacedName {
	return types.NamespacedName{Namespace: c.namespace, Name: bundleName(c.value)}
}

// bundleFor returns the bundle that the creator makes for a key.
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

// bundleName is the name of the bundle for a value: the value itself or, where
// that is no name of an object, what is left of it in lower case with a hash
// that keeps values apart that differ in nothing else.
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
