package enrol

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/controllers/metric"
	"github.com/healthscope/healthscope/healthscope"
)

// Reasons of events on the Secrets of clusters.
const (
	// ReasonTokenRenewed means that the Secret holds a new token.
	ReasonTokenRenewed = "TokenRenewed"
	// ReasonTokenNotRenewed means that the renewal of the token failed; the message gives the cause.
	ReasonTokenNotRenewed = "TokenNotRenewed"
)

const (
	// renewTimeout is the deadline of renewing one token, for all requests together.
	renewTimeout = time.Minute
	// maxCauseBytes is the maximum size of a cause in a message. An event may hold 1 KiB, and the member controls the text.
	maxCauseBytes = 900
)

// errConflict means that a token was not written because the Secret has changed in the meantime. The change triggers a reconcile.
var errConflict = errors.New("the Secret has changed meanwhile")

var metricExpiry = metric.New(metric.Gauge, "healthscope_cluster_token_expiry_timestamp_seconds",
	"When the token of a cluster ends, in seconds since 1970, if it is one that is [renewed](clusters.md). Only the replica that leads has it.", "cluster")

// renewer renews the tokens in the Secrets of clusters. It is the collector of metricExpiry.
type renewer struct {
	secrets  client.Reader
	writer   client.Writer
	recorder events.EventRecorder
	clock    clock.PassiveClock

	mu sync.Mutex
	// tokens are the tokens that are renewed, by Secret.
	tokens map[types.NamespacedName]renewal
}

// renewal is the token of a Secret.
type renewal struct {
	cluster string
	// expires is when it expires; zero if the annotation of the Secret is invalid.
	expires time.Time
	// warning is the last cause for which it was not renewed.
	warning string
}

// Reconcile renews the token of a Secret when it is due, and requeues the Secret for the next renewal.
func (r *renewer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var s corev1.Secret
	if err := r.secrets.Get(ctx, request.NamespacedName, &s); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, errors.Wrap(err, "cannot read the Secret of a cluster")
	}
	token, ok, err := tokenFromAnnotations(&s)
	switch {
	case err != nil:
		r.warn(&s, time.Time{}, sanitize(&s, err))
		return reconcile.Result{}, nil // Only a change of the Secret can help.
	case !ok: // It is gone, or has no token to renew.
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.tokens, request.NamespacedName)
		return reconcile.Result{}, nil
	}
	r.record(&s, token.Expires, "")
	now := r.clock.Now()
	if wait := token.renewalTime(s.UID).Sub(now); wait > 0 {
		return reconcile.Result{RequeueAfter: min(wait, maxRequeueDelay)}, nil
	}
	renewed, err := r.renew(ctx, &s, token.Lifetime, now)
	switch {
	case errors.Is(err, errConflict):
		return reconcile.Result{}, nil
	case err != nil:
		cause := sanitize(&s, err)
		r.warn(&s, token.Expires, cause)
		return reconcile.Result{}, errors.Errorf("cannot renew the token of cluster %q: %s", clusterOf(&s), cause)
	}
	r.record(&s, renewed.Expires, "")
	r.recorder.Eventf(&s, nil, corev1.EventTypeNormal, ReasonTokenRenewed, "Renew", "the token of cluster %q is valid until %s", clusterOf(&s), renewed.Expires.UTC().Format(time.RFC3339))
	log.FromContext(ctx).Info("Token renewed", "cluster", clusterOf(&s), "expires", renewed.Expires.UTC())
	return reconcile.Result{RequeueAfter: min(renewed.renewalTime(s.UID).Sub(now), maxRequeueDelay)}, nil
}

// renew requests a new token of the same ServiceAccount from the member, and writes it to the Secret.
func (r *renewer) renew(ctx context.Context, s *corev1.Secret, lifetime time.Duration, now time.Time) (Token, error) {
	// client-go logs whole requests and responses at high log levels.
	ctx, cancel := context.WithTimeout(logr.NewContext(ctx, logr.Discard()), renewTimeout)
	defer cancel()
	data := s.Data[corev1alpha2.KubeconfigKey]
	config, err := kubeconfig.Parse(data)
	if err != nil {
		return Token{}, err
	}
	defer net.CloseIdleConnectionsFor(config.Transport)
	account, err := accountOf(config.BearerToken)
	if err != nil {
		return Token{}, err
	}
	token, err := requestToken(ctx, config, account.NamespacedName, lifetime, now)
	if err != nil {
		return Token{}, err
	}
	changed, err := kubeconfig.WithToken(data, token.Value)
	if err != nil {
		return Token{}, err
	}
	if _, err := kubeconfig.Parse(changed); err != nil {
		return Token{}, errors.Wrap(err, "the member gives a token that cannot be used")
	}
	after := s.DeepCopy()
	after.Data[corev1alpha2.KubeconfigKey] = changed
	token.annotate(after)
	err = r.writer.Patch(ctx, after, client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return Token{}, errConflict
	}
	return token, errors.Wrap(err, "cannot write the Secret")
}

// record records when the token of a Secret expires and, unless warning is empty, why it is not renewed. It reports whether the
// warning is new. A new token has none yet.
func (r *renewer) record(s *corev1.Secret, expires time.Time, warning string) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, now := client.ObjectKeyFromObject(s), renewal{clusterOf(s), expires, warning}
	if was := r.tokens[key]; was.cluster == now.cluster && was.expires.Equal(expires) {
		now.warning = cmp.Or(warning, was.warning)
		changed = now.warning != was.warning
	} else {
		changed = warning != ""
	}
	r.tokens[key] = now
	return changed
}

// warn records an event for the cause why a token is not renewed, unless the last one was for the same cause.
func (r *renewer) warn(s *corev1.Secret, expires time.Time, cause string) {
	if r.record(s, expires, cause) {
		r.recorder.Eventf(s, nil, corev1.EventTypeWarning, ReasonTokenNotRenewed, "Renew", "the token of cluster %q is not renewed: %s", clusterOf(s), cause)
	}
}

// sanitize returns the message of an error without the token, which a member might repeat, without control characters, and with at
// most maxCauseBytes.
func sanitize(s *corev1.Secret, err error) string {
	cause := err.Error()
	if token, err := kubeconfig.Token(s.Data[corev1alpha2.KubeconfigKey]); err == nil && token != "" {
		cause = strings.ReplaceAll(cause, token, "[token]")
	}
	return healthscope.Shorten(healthscope.Clean(cause), maxCauseBytes)
}

// Describe implements prometheus.Collector.
func (*renewer) Describe(out chan<- *prometheus.Desc) { out <- metricExpiry.Desc }

// Collect implements prometheus.Collector. If a cluster has two Secrets, it reports the token that expires first.
func (r *renewer) Collect(out chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := map[string]time.Time{}
	for _, token := range r.tokens {
		if at, ok := first[token.cluster]; !token.expires.IsZero() && (!ok || token.expires.Before(at)) {
			first[token.cluster] = token.expires
		}
	}
	for cluster, at := range first {
		out <- metricExpiry.Value(float64(at.Unix()), cluster)
	}
}
