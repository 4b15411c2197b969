package enrol

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// Clusters are the two clusters of an enrolment. The clients have the rights of the user who runs the command.
type Clusters struct {
	// Hub reads and writes the hub.
	Hub client.Client
	// Member reads and writes the member.
	Member client.Client
	// MemberConfig is the client configuration for the member. Add requests a token with it.
	MemberConfig *rest.Config
	// Report is called for each object, after it was changed or found unchanged.
	Report func(Change)
}

// Add makes a cluster a member, or updates what differs: the hub's account and
// rights in the member, and the hub's Secret. It rejects a cluster that is a member
// by another name, or is the hub, before it creates anything. It keeps a token that
// need not be renewed. After an error, call it again to complete the enrolment.
func Add(ctx context.Context, c Clusters, e Enrolment, now time.Time) error {
	if err := e.Validate(); err != nil {
		return err
	}
	own, others, err := memberships(ctx, c.Hub, e.SecretNamespace, e.Name)
	if err != nil {
		return err
	}
	uid, err := checkNew(ctx, c, e, own, others)
	if err != nil {
		return err
	}
	hubAccount, err := applyMember(ctx, target{where: "member", client: c.Member, report: c.Report}, e.MemberObjects())
	if err != nil {
		return err
	}
	token, ok := reusableToken(own, hubAccount, e.TokenLifetime, now)
	if !ok {
		if token, err = requestToken(ctx, c.MemberConfig, hubAccount.NamespacedName, e.lifetime(), now); err != nil {
			return errors.Wrap(err, "member")
		}
	}
	desired, err := e.Secret(token)
	if err != nil {
		return err
	}
	if uid != "" {
		desired.Annotations[corev1alpha2.AnnotationClusterUID] = string(uid)
	}
	_, err = target{where: "hub", client: c.Hub, report: c.Report}.apply(ctx, desired)
	return err
}

// applyMember applies the objects that the hub needs in the member, deletes those that an earlier call created and that are no
// longer needed, and returns the hub's account.
func applyMember(ctx context.Context, t target, objects []client.Object) (hubAccount accountID, err error) {
	keep := map[string]bool{}
	for _, desired := range objects {
		existing, err := t.apply(ctx, desired)
		if err != nil {
			return accountID{}, err
		}
		if _, ok := existing.(*corev1.ServiceAccount); ok {
			hubAccount = accountID{client.ObjectKeyFromObject(existing), existing.GetUID()}
		}
		keep[t.name(desired)] = true
	}
	return hubAccount, t.prune(ctx, keep)
}

// reusableToken returns the token of a membership if it belongs to the current account, is not due for renewal, and has the
// requested lifetime.
func reusableToken(own []membership, current accountID, lifetime time.Duration, now time.Time) (Token, bool) {
	for _, m := range own {
		t, ok, err := tokenFromAnnotations(m.Secret)
		if ok && err == nil && now.Before(t.renewalTime(m.UID)) && (lifetime == 0 || lifetime == t.Lifetime) && current.uid != "" && m.account == current {
			t.Value = m.token
			return t, true
		}
	}
	return Token{}, false
}
