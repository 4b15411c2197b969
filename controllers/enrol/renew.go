package enrol

import (
	"context"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
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

// renewer renews the tokens in the Secrets of clusters.
type renewer struct {
	secrets  client.Reader
	writer   client.Writer
	recorder events.EventRecorder
	clock    clock.PassiveClock
	tokens   *tokens
}

// Reconcile renews the token of a Secret when it is due, and requeues the Secret for the next renewal.
func (r *renewer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var s corev1.Secret
	if err := r.secrets.Get(ctx, request.NamespacedName, &s); err != nil {
		if apierrors.IsNotFound(err) {
			r.tokens.remove(request.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, errors.Wrap(err, "cannot read the Secret of a cluster")
	}
	token, ok, err := tokenFromAnnotations(&s)
	switch {
	case err != nil:
		r.tokens.record(&s, time.Time{})
		r.warn(&s, r.sanitize(&s, err))
		return reconcile.Result{}, nil // Only a change of the Secret can help.
	case !ok:
		r.tokens.remove(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	r.tokens.record(&s, token.Expires)
	now := r.clock.Now()
	if wait := token.renewalTime(s.UID).Sub(now); wait > 0 {
		return reconcile.Result{RequeueAfter: min(wait, maxRequeueDelay)}, nil
	}
	renewed, err := r.renew(ctx, &s, token.Lifetime, now)
	switch {
	case errors.Is(err, errConflict):
		return reconcile.Result{}, nil
	case err != nil:
		cause := r.sanitize(&s, err)
		r.warn(&s, cause)
		return reconcile.Result{}, errors.Errorf("cannot renew the token of cluster %q: %s", clusterOf(&s), cause)
	}
	r.tokens.record(&s, renewed.Expires)
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
	account, _, err := accountOf(config.BearerToken)
	if err != nil {
		return Token{}, err
	}
	token, err := requestToken(ctx, config, account, lifetime, now)
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

// warn records an event for a cause, unless the last one was for the same cause.
func (r *renewer) warn(s *corev1.Secret, cause string) {
	if r.tokens.warn(s, cause) {
		r.recorder.Eventf(s, nil, corev1.EventTypeWarning, ReasonTokenNotRenewed, "Renew", "the token of cluster %q is not renewed: %s", clusterOf(s), cause)
	}
}

// sanitize returns the message of an error without the token, which a member might repeat, without control characters, and with at
// most maxCauseBytes.
func (r *renewer) sanitize(s *corev1.Secret, err error) string {
	cause := err.Error()
	if token, err := kubeconfig.Token(s.Data[corev1alpha2.KubeconfigKey]); err == nil && token != "" {
		cause = strings.ReplaceAll(cause, token, "[token]")
	}
	return healthscope.Shorten(healthscope.Clean(cause), maxCauseBytes)
}
