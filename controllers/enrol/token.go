package enrol

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// Token is a token of a ServiceAccount.
type Token struct {
	// Value is the token itself.
	Value string
	// Expires is when it expires, by the clock of the requester.
	Expires time.Time
	// Lifetime is how long it is valid from its issue.
	Lifetime time.Duration
}

// annotate writes the expiry and lifetime of the token to the annotations of its Secret.
func (t Token) annotate(s *corev1.Secret) {
	s.Annotations[corev1alpha2.AnnotationTokenExpires] = t.Expires.UTC().Format(time.RFC3339)
	s.Annotations[corev1alpha2.AnnotationTokenLifetime] = t.Lifetime.String()
}

// requestToken requests a token of a ServiceAccount from a cluster. The token may have a shorter lifetime than requested, but it is an
// error if that is shorter than MinTokenLifetime.
func requestToken(ctx context.Context, config *rest.Config, account types.NamespacedName, lifetime time.Duration, now time.Time) (Token, error) {
	// client-go logs whole responses at high log levels.
	ctx = logr.NewContext(ctx, logr.Discard())
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return Token{}, err
	}
	seconds := int64(lifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	response, err := core.ServiceAccounts(account.Namespace).CreateToken(ctx, account.Name, request, metav1.CreateOptions{})
	if err != nil {
		return Token{}, errors.Wrapf(err, "cannot get a token of ServiceAccount %q", account)
	}
	if response.Spec.ExpirationSeconds != nil {
		seconds = min(seconds, *response.Spec.ExpirationSeconds)
	}
	t := Token{Value: response.Status.Token, Lifetime: time.Duration(seconds) * time.Second}
	if t.Value == "" || t.Lifetime < MinTokenLifetime {
		return Token{}, errors.Errorf("cannot use the token of ServiceAccount %q that the cluster gives: it has %d bytes and is valid for %s", account, len(t.Value), t.Lifetime)
	}
	// Not by the cluster's clock: the renewal uses the clock of this program.
	t.Expires = now.Add(t.Lifetime)
	return t, nil
}

// claims are the claims of a token of a ServiceAccount
// (https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#bound-service-account-tokens).
type claims struct {
	Subject    string `json:"sub"`
	Kubernetes struct {
		ServiceAccount struct {
			UID types.UID `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

// subjectPrefix begins the subject of every token of a ServiceAccount; namespace:name follows.
const subjectPrefix = "system:serviceaccount:"

// accountID identifies a ServiceAccount of a cluster.
type accountID struct {
	types.NamespacedName

	uid types.UID
}

// accountOf returns the ServiceAccount that a token claims to belong to. It does not verify the token: only the account's own
// cluster can.
func accountOf(token string) (accountID, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) == 3 {
		if payload, err := base64.RawURLEncoding.DecodeString(parts[1]); err != nil || json.Unmarshal(payload, &c) != nil {
			c = claims{}
		}
	}
	subject, ok := strings.CutPrefix(c.Subject, subjectPrefix)
	namespace, name, _ := strings.Cut(subject, ":")
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return accountID{}, errors.New("the token is not one of a ServiceAccount")
	}
	return accountID{types.NamespacedName{Namespace: namespace, Name: name}, c.Kubernetes.ServiceAccount.UID}, nil
}

// tokenFromAnnotations returns the expiry and lifetime of the token of a Secret, without its value. It returns false if the Secret has
// no annotation that requests the renewal of its token.
func tokenFromAnnotations(s *corev1.Secret) (Token, bool, error) {
	expires, ok := s.Annotations[corev1alpha2.AnnotationTokenExpires]
	if !ok {
		return Token{}, false, nil
	}
	t := Token{Lifetime: DefaultTokenLifetime}
	var err error
	if t.Expires, err = time.Parse(time.RFC3339, expires); err != nil {
		return Token{}, false, errors.Errorf("annotation %s: invalid value %q: want a time such as 2006-01-02T15:04:05Z", corev1alpha2.AnnotationTokenExpires, expires)
	}
	if lifetime, ok := s.Annotations[corev1alpha2.AnnotationTokenLifetime]; ok {
		t.Lifetime, err = time.ParseDuration(lifetime)
		if err != nil || t.Lifetime < MinTokenLifetime || t.Lifetime > MaxTokenLifetime {
			return Token{}, false, errors.Errorf("annotation %s: invalid value %q: want a duration of %s to %s", corev1alpha2.AnnotationTokenLifetime, lifetime, MinTokenLifetime, MaxTokenLifetime)
		}
	}
	return t, true, nil
}

const (
	// latestRenewal is the fraction of its lifetime after which a token is renewed at the latest.
	latestRenewal = 0.8
	// renewalJitter is by what share of the lifetime some are renewed earlier, so that members that were added together are not renewed together.
	renewalJitter = 0.1
)

// renewalTime returns when a token is due for renewal. It is deterministic for a token and the UID of its Secret.
func (t Token) renewalTime(uid types.UID) time.Time {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(string(uid) + t.Expires.UTC().Format(time.RFC3339)))
	left := 1 - latestRenewal + renewalJitter*float64(hash.Sum32())/math.MaxUint32
	return t.Expires.Add(-time.Duration(float64(t.Lifetime) * left))
}
