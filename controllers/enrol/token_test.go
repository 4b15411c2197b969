package enrol

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// newJWT returns a token with the given claims and an invalid signature.
func newJWT(payload string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(payload)) + "." + encode([]byte("signature"))
}

// tokenFor returns a token of the hub's account with a serial number.
func tokenFor(serial int) string {
	return newJWT(fmt.Sprintf(`{"sub":"system:serviceaccount:healthscope-system:healthscope-hub","jti":"%d","kubernetes.io":{"serviceaccount":{"uid":"u-1"}}}`, serial))
}

func TestAccountOf(t *testing.T) {
	got, err := accountOf(tokenFor(1))
	if want := (accountID{types.NamespacedName{Namespace: "healthscope-system", Name: "healthscope-hub"}, "u-1"}); err != nil || got != want {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for name, token := range map[string]string{
		"nothing":                "",
		"no JWT":                 "4f1f5e.0123456789abcdef",
		"no base64":              "a.!.c",
		"no JSON":                newJWT("sub"),
		"a user":                 newJWT(`{"sub":"admin"}`),
		"no name":                newJWT(`{"sub":"system:serviceaccount:healthscope-system"}`),
		"a way out of the path":  newJWT(`{"sub":"system:serviceaccount:kube-system:../../secrets"}`),
		"namespace with a slash": newJWT(`{"sub":"system:serviceaccount:a/b:c"}`),
	} {
		if account, err := accountOf(token); err == nil {
			t.Errorf("%s: it is of %v", name, account)
		}
	}
}

// secretWith returns a Secret with annotations.
func secretWith(annotations map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "healthscope-clusters", Name: "edge01", UID: "s-1", Annotations: annotations}}
}

func TestTokenFromAnnotations(t *testing.T) {
	expires := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		annotations map[string]string
		want        Token
		renewed     bool
		wrong       bool
	}{
		"none":             {nil, Token{}, false, false},
		"lifetime alone":   {map[string]string{corev1alpha2.AnnotationTokenLifetime: "1h"}, Token{}, false, false},
		"both":             {map[string]string{corev1alpha2.AnnotationTokenExpires: "2026-03-01T12:00:00Z", corev1alpha2.AnnotationTokenLifetime: "90m"}, Token{Expires: expires, Lifetime: 90 * time.Minute}, true, false},
		"default lifetime": {map[string]string{corev1alpha2.AnnotationTokenExpires: "2026-03-01T14:00:00+02:00"}, Token{Expires: expires, Lifetime: 24 * time.Hour}, true, false},
		"no time":          {map[string]string{corev1alpha2.AnnotationTokenExpires: "tomorrow"}, Token{}, false, true},
		"no duration":      {map[string]string{corev1alpha2.AnnotationTokenExpires: "2026-03-01T12:00:00Z", corev1alpha2.AnnotationTokenLifetime: "a day"}, Token{}, false, true},
		"too short":        {map[string]string{corev1alpha2.AnnotationTokenExpires: "2026-03-01T12:00:00Z", corev1alpha2.AnnotationTokenLifetime: "9m59s"}, Token{}, false, true},
		"negative":         {map[string]string{corev1alpha2.AnnotationTokenExpires: "2026-03-01T12:00:00Z", corev1alpha2.AnnotationTokenLifetime: "-1h"}, Token{}, false, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, renewed, err := tokenFromAnnotations(secretWith(c.annotations))
			if renewed != c.renewed || (err != nil) != c.wrong {
				t.Errorf("renewed %v, error %v", renewed, err)
			}
			if !got.Expires.Equal(c.want.Expires) || c.renewed && got.Lifetime != c.want.Lifetime {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestRenewalTimeIsBeforeExpiry checks that a token of any lifetime is renewed after seven to eight tenths of it, always at the
// same time, and that the renewals of many tokens are spread.
func TestRenewalTimeIsBeforeExpiry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := Token{
			Expires:  time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "expires"), 0),
			Lifetime: time.Duration(rapid.Int64Range(int64(MinTokenLifetime), int64(MaxTokenLifetime)).Draw(t, "lifetime")),
		}
		uid := types.UID(rapid.String().Draw(t, "uid"))
		at := token.renewalTime(uid)
		used := 1 - float64(token.Expires.Sub(at))/float64(token.Lifetime)
		if used < 0.699 || used > 0.801 {
			t.Errorf("renewed after %.3f of its lifetime", used)
		}
		if token.Expires = token.Expires.In(time.FixedZone("x", 3600)); !token.renewalTime(uid).Equal(at) {
			t.Error("the same token is renewed at another time")
		}
	})
	times := map[time.Time]bool{}
	for i := range 100 {
		times[Token{Expires: time.Unix(1e9, 0), Lifetime: 24 * time.Hour}.renewalTime(types.UID(fmt.Sprint(i))).Truncate(time.Minute)] = true
	}
	if len(times) < 20 {
		t.Errorf("100 tokens of one time are renewed in %d different minutes", len(times))
	}
}

func TestSecretHasTheExpiryOfItsToken(t *testing.T) {
	e := Enrolment{Name: "vfw-cluster-provider+edge01", Server: "https://edge01:6443", Namespaces: []string{"vfw", "shop"}, SecretNamespace: "healthscope-clusters"}
	s, err := e.Secret(Token{Value: "t", Expires: time.Date(2026, 3, 1, 12, 0, 0, 5e8, time.FixedZone("CET", 3600)), Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	want := metav1.ObjectMeta{
		Namespace: "healthscope-clusters", Name: "vfw-cluster-provider-edge01",
		Labels: map[string]string{"app.kubernetes.io/managed-by": "healthscope", "healthscope.core.oam.dev/cluster-kubeconfig": "true"},
		Annotations: map[string]string{
			"healthscope.core.oam.dev/cluster-name": "vfw-cluster-provider+edge01", "healthscope.core.oam.dev/namespaces": "shop,vfw",
			"healthscope.core.oam.dev/token-expires": "2026-03-01T11:00:00Z", "healthscope.core.oam.dev/token-lifetime": "1h0m0s",
		},
	}
	if diff := cmp.Diff(want, s.ObjectMeta); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	good := Enrolment{Name: "edge01", Server: "https://edge01:6443"}
	cases := map[string]struct {
		change func(*Enrolment)
		want   string // empty: nothing is wrong
	}{
		"good":                  {func(*Enrolment) {}, ""},
		"EMCO's name":           {func(e *Enrolment) { e.Name = "vfw-cluster-provider+edge01" }, ""},
		"no name":               {func(e *Enrolment) { e.Name = "" }, `invalid name ""`},
		"name with a slash":     {func(e *Enrolment) { e.Name = "a/b" }, `invalid name "a/b"`},
		"name with a space":     {func(e *Enrolment) { e.Name = "edge 01" }, `invalid name "edge 01"`},
		"name like a path":      {func(e *Enrolment) { e.Name = "a..b" }, `invalid name "a..b"`},
		"name with an end":      {func(e *Enrolment) { e.Name = "edge+" }, `invalid name "edge+"`},
		"namespace":             {func(e *Enrolment) { e.Namespaces = []string{"vfw", "A b"} }, `invalid namespace "A b"`},
		"short lifetime":        {func(e *Enrolment) { e.TokenLifetime = time.Minute }, `invalid lifetime 1m0s of the token: want 10m0s to`},
		"server without TLS":    {func(e *Enrolment) { e.Server = "http://edge01" }, `its scheme is "http"`},
		"authority that is not": {func(e *Enrolment) { e.Authority = []byte("x") }, `it holds no certificate in PEM`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := good
			c.change(&e)
			err := e.Validate()
			if (err == nil) != (c.want == "") || err != nil && !contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}
