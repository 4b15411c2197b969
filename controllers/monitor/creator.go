package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	// commonPause is the pause before the next attempt withoutNamespace, while no namespace takes bundles.
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

	// mu guards queue, that of the controller, which is nil before it starts, and
	// skipped, the keys for which no bundle can be made, after that has been
	// logged, by the name that the bundle would have.
	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[selectorKey]
	skipped map[types.NamespacedName]sets.Set[selectorKey]

	// What follows belongs to the one worker. refusals are those in force by namespace,
	// that of all namespaces by the empty name, and refusing the namespaces that
	// have refused bundles since one was made.
	refusals map[string]refusal
	refusing sets.Set[string]
}

func newCreator(key string, c client.Client, logger logr.Logger) *creator {
	return &creator{
		key: key, client: c, logger: logger,
		limiter: rate.NewLimiter(rate.Every(createInterval), 1),
		pauses:  workqueue.NewTypedItemExponentialFailureRateLimiter[selectorKey](minCreatePause, maxCreatePause),
		skipped: map[types.NamespacedName]sets.Set[selectorKey]{}, refusals: map[string]refusal{}, refusing: sets.New[string](),
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
func (c *creator) begin(q workqueue.TypedRateLimitingInterface[selectorKey]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = q
}

// consider enqueues keys whose objects or bundles have changed, and those
// that wait for a bundle that may have gone: one that is named like the value of
// a key. A cluster-scoped object has no namespace for a bundle.
func (c *creator) consider(touched sets.Set[selectorKey]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue == nil {
		return
	}
	for t := range touched {
		if t.namespace == "" {
			continue
		}
		if t.key == c.key {
			c.queue.Add(t)
		}
		for waiting := range c.skipped[types.NamespacedName{Namespace: t.namespace, Name: t.value}] {
			c.queue.Add(waiting)
		}
	}
}

// Reconcile makes the bundle of a key, if there is none. A failure is no error
// of the controller: a refusal is logged once, and all else is tried again at growing intervals.
func (c *creator) Reconcile(ctx context.Context, wanted selectorKey) (ctrl.Result, error) {
	wait, err := c.ensure(ctx, wanted)
	switch {
	case err != nil:
		wait = max(c.pauses.When(wanted), c.turn(wanted))
	case wait == 0:
		c.pauses.Forget(wanted)
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

// turn returns how long a key must wait for its namespace. Keys that have failed
// go last, so that they do not starve the others.
func (c *creator) turn(wanted selectorKey) time.Duration {
	wait := c.refusedFor(wanted.namespace)
	if wait > 0 && c.pauses.NumRequeues(wanted) > 0 {
		wait += minCreatePause
	}
	return wait
}

// refusedFor returns how long no bundle is made in a namespace from now on.
func (c *creator) refusedFor(namespace string) time.Duration {
	return max(0, time.Until(c.refusals[namespace].until), time.Until(c.refusals[""].until))
}

// ensure makes the bundle of a key unless there is one, or nothing to report
// in it. The error asks for another attempt, and a wait for one after that.
func (c *creator) ensure(ctx context.Context, wanted selectorKey) (wait time.Duration, err error) {
	if !c.isCarried(wanted) {
		c.forget(wanted)
		return 0, nil
	}
	selecting, err := c.bundles(ctx, wanted)
	if err != nil {
		return 0, fmt.Errorf("cannot find the bundles of label %q: %w", wanted.index(), err)
	}
	for _, b := range selecting {
		if b.Namespace == wanted.namespace {
			c.forget(wanted)
			return 0, nil
		}
	}
	if wanted.value == "" {
		c.reportSkipped(wanted, "the label has no value")
		return 0, nil
	}
	if taken, err := c.taken(ctx, wanted); taken || err != nil {
		return 0, err
	}
	if wait := c.turn(wanted); wait > 0 {
		return wait, nil
	}
	if err := c.limiter.Wait(ctx); err != nil {
		return 0, err
	}
	return 0, c.create(ctx, wanted)
}

// taken reports whether the cache has a bundle of the name that selects something else.
func (c *creator) taken(ctx context.Context, wanted selectorKey) (bool, error) {
	name := bundleOf(wanted)
	// It is noted before it is looked for: when the bundle goes in between, that enqueues the key.
	known := c.note(wanted)
	err := c.client.Get(ctx, name, &k8spluginv1alpha1.ResourceBundleState{}, client.UnsafeDisableDeepCopyOption(true))
	if !known && err == nil {
		c.logSkipped(wanted, "another bundle has the name")
	} else if !known {
		c.forget(wanted)
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot get bundle %q from the cache: %w", name, err)
	}
	return err == nil, nil
}

// create makes the bundle of a key, and reports what is in the way once. The error asks for another attempt.
func (c *creator) create(ctx context.Context, wanted selectorKey) error {
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	b := bundleFor(wanted)
	name := nameOfBundle(b)
	err := c.client.Create(ctx, b, fieldOwner)
	if err == nil || apierrors.IsAlreadyExists(err) {
		delete(c.refusals, wanted.namespace)
		delete(c.refusals, "")
		c.refusing.Clear()
	}
	switch {
	case err == nil:
		c.forget(wanted)
		c.created()
		c.logger.Info("Made bundle", "bundle", name, "label", wanted.index())
		return nil
	case namespaceGoes(err):
		return nil // And with it what carries the label.
	case apierrors.IsInvalid(err):
		c.reportSkipped(wanted, err.Error())
		return nil
	case apierrors.IsForbidden(err):
		c.refused(name, err)
	}
	// Also when the name is taken: the cache will say by whom.
	return fmt.Errorf("cannot make bundle %q: %w", name, err)
}

// namespaceGoes reports whether a bundle could not be made because its namespace is going or gone. That something else was
// not found is no end: it is what an API server says while it has no CRD of bundles.
func namespaceGoes(err error) bool {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	missing := ok && apierrors.IsNotFound(err) && answer.ErrStatus.Details != nil && answer.ErrStatus.Details.Kind == "namespaces"
	return missing || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// refused notes that a bundle may not be made, and logs it once: for its
// namespace or, when several refuse, for all.
func (c *creator) refused(name types.NamespacedName, err error) {
	for namespace, r := range c.refusals {
		if time.Since(r.until) > 2*maxCreatePause {
			delete(c.refusals, namespace) // No object there carries the label any more.
		}
	}
	pause := func(namespace string, backoff wait.Backoff, message string) {
		r, again := c.refusals[namespace]
		if !again {
			r.pause = backoff
		}
		r.until = time.Now().Add(r.pause.Step())
		c.refusals[namespace] = r
		if !again && message != "" {
			c.logger.Info(message, "bundle", name, "reason", err.Error())
		}
	}
	c.refusing.Insert(name.Namespace)
	if c.refusing.Len() < commonRefusals {
		pause(name.Namespace, createPause, "Cannot make bundles in a namespace, trying again at growing intervals")
		return
	}
	pause(name.Namespace, createPause, "")
	pause("", commonPause, "Cannot make bundles in several namespaces, trying again at growing intervals")
}

// reportSkipped logs once why no bundle can be made for a key.
func (c *creator) reportSkipped(wanted selectorKey, reason string) {
	if !c.note(wanted) {
		c.logSkipped(wanted, reason)
	}
}

func (c *creator) logSkipped(wanted selectorKey, reason string) {
	c.logger.Info("Cannot make a bundle for a label", "namespace", wanted.namespace, "label", wanted.index(), "reason", reason)
}

// note notes that no bundle can be made for a key, and reports whether that was known.
func (c *creator) note(wanted selectorKey) (known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := bundleOf(wanted)
	known = c.skipped[name].Has(wanted)
	if c.skipped[name] == nil {
		c.skipped[name] = sets.New[selectorKey]()
	}
	c.skipped[name].Insert(wanted)
	return known
}

// forget drops that no bundle can be made for a key.
func (c *creator) forget(wanted selectorKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := bundleOf(wanted)
	c.skipped[name].Delete(wanted)
	if c.skipped[name].Len() == 0 {
		delete(c.skipped, name)
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
