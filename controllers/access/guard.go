package access

import (
	"context"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope/api"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// The times for which answers of the API server are cached. A right that is granted takes effect within deniedTTL, and one that is
// revoked, or a token that is, within allowedTTL.
const (
	allowedTTL = time.Minute
	deniedTTL  = 5 * time.Second
)

// reviewTimeout is the deadline of one review by the API server.
const reviewTimeout = 10 * time.Second

// scopesResource is the plural of HealthScope.
const scopesResource = "healthscopes"

// Guard authenticates and authorizes callers by the API server of the hub. It implements api.Guard, and is safe for concurrent use.
type Guard struct {
	tokens     *authenticator
	authorizer authorizer.Authorizer
}

var _ api.Guard = &Guard{}

// NewGuard returns a Guard that uses an API server.
func NewGuard(config *rest.Config, client *http.Client) (*Guard, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client for token reviews")
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client for access reviews")
	}
	authorizer, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: authorization, AllowCacheTTL: allowedTTL, DenyCacheTTL: deniedTTL,
		WebhookRetryBackoff: &wait.Backoff{Steps: 1}, // The caller is waiting, and can ask again.
	}.New()
	if err != nil {
		return nil, errors.Wrap(err, "cannot make an authorizer")
	}
	return &Guard{tokens: newAuthenticator(reviewer{authentication.TokenReviews()}.review, clock.RealClock{}), authorizer: authorizer}, nil
}

// Authenticate implements api.Guard.
func (g *Guard) Authenticate(r *http.Request, token string) (api.Caller, bool, error) {
	return g.tokens.authenticate(r.Context(), sourceOf(r), token)
}

// Authorize implements api.Guard. The review does not end with the caller's request: the next caller needs the same answer, and a
// cancelled review would be logged as a failure.
func (g *Guard) Authorize(ctx context.Context, caller api.Caller, access api.Access) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
	defer cancel()
	decision, _, err := g.authorizer.Authorize(ctx, attributesOf(caller, access))
	return decision == authorizer.DecisionAllow, err
}

// attributesOf returns the attributes of a request for access as Kubernetes authorizes them.
func attributesOf(caller api.Caller, access api.Access) authorizer.Attributes {
	a := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: caller.Name, UID: caller.UID, Groups: caller.Groups, Extra: caller.Extra},
		Verb: access.Verb, Path: access.Path,
	}
	if access.Path == "" {
		version := corev1alpha2.GroupVersion
		a.APIGroup, a.APIVersion, a.Resource = version.Group, version.Version, scopesResource
		a.Namespace, a.Name, a.ResourceRequest = access.Namespace, access.Name, true
	}
	return a
}

// reviewer authenticates tokens by TokenReviews.
type reviewer struct {
	reviews authenticationclient.TokenReviewInterface
}

// review returns the caller that a token belongs to, and whether Kubernetes accepts the token. A token that it rejects is no error.
func (r reviewer) review(ctx context.Context, token string) (api.Caller, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review, err := r.reviews.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		return api.Caller{}, false, errors.Wrap(err, "cannot review the token")
	}
	u := review.Status.User
	extra := map[string][]string{}
	for key, values := range u.Extra {
		extra[key] = values
	}
	return api.Caller{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: extra}, true, nil
}
