package enrol

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// begin is the time at which the tests of renewal begin: the token in the Secret is new.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeRenewal is a renewer with a fake hub and a fake member.
type fakeRenewal struct {
	*renewer

	t        *testing.T
	clock    *clocktesting.FakePassiveClock
	recorder *events.FakeRecorder
	hub      client.Client
	member   *httptest.Server
	// answer writes the response of the member to a TokenRequest.
	answer func(http.ResponseWriter, *authenticationv1.TokenRequest)
	// asked are the paths of the requests to the member.
	asked []string
	// first is the token at the beginning.
	first string
}

func newRenewal(t *testing.T, annotate func(*corev1.Secret)) *fakeRenewal {
	t.Helper()
	r := &fakeRenewal{t: t, clock: clocktesting.NewFakePassiveClock(begin), recorder: events.NewFakeRecorder(20), first: tokenFor(1)}
	r.answer = func(w http.ResponseWriter, request *authenticationv1.TokenRequest) {
		request.Status.Token = tokenFor(len(r.asked) + 1)
		writeJSON(w, request)
	}
	r.member = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.asked = append(r.asked, request.Method+" "+request.URL.Path+" "+request.Header.Get("Authorization"))
		var asked authenticationv1.TokenRequest
		data, err := io.ReadAll(request.Body)
		if err == nil {
			_, _, err = clientgoscheme.Codecs.UniversalDeserializer().Decode(data, nil, &asked)
		}
		if err != nil {
			t.Error(err)
		}
		r.answer(w, &asked)
	}))
	t.Cleanup(r.member.Close)
	e := Enrolment{
		Name: "provider+edge01", Server: r.member.URL, SecretNamespace: "healthscope-clusters",
		Authority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.member.Certificate().Raw}),
	}
	s, err := e.Secret(Token{Value: r.first, Expires: begin.Add(time.Hour), Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s.UID = "s-1"
	s.Data["other"] = []byte("kept")
	s.Annotations[corev1alpha2.AnnotationMaintenance] = "kept"
	if annotate != nil {
		annotate(s)
	}
	r.hub = fake.NewClientBuilder().WithObjects(s).Build()
	r.renewer = &renewer{secrets: r.hub, writer: r.hub, recorder: r.recorder, clock: r.clock, tokens: map[types.NamespacedName]renewal{}}
	return r
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}

func (r *fakeRenewal) secret() *corev1.Secret {
	r.t.Helper()
	var s corev1.Secret
	if err := r.hub.Get(r.t.Context(), client.ObjectKey{Namespace: "healthscope-clusters", Name: "provider-edge01"}, &s); err != nil {
		r.t.Fatal(err)
	}
	return &s
}

func (r *fakeRenewal) token() string {
	r.t.Helper()
	token, err := kubeconfig.Token(r.secret().Data[corev1alpha2.KubeconfigKey])
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

func (r *fakeRenewal) reconcile() (ctrl.Result, error) {
	r.t.Helper()
	return r.Reconcile(r.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "healthscope-clusters", Name: "provider-edge01"}})
}

// events returns the events so far.
func (r *fakeRenewal) events() []string {
	var all []string
	for {
		select {
		case e := <-r.recorder.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// expiries returns the metric, by cluster.
func (r *fakeRenewal) expiries() map[string]float64 {
	r.t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r.renewer)
	families, err := registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			found[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return found
}

// TestTokenIsNotRenewedEarly also checks that every wait is short, because timers stop while the machine sleeps, and that nothing
// happens before it ends.
func TestTokenIsNotRenewedEarly(t *testing.T) {
	r := newRenewal(t, nil)
	before := r.secret()
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 9}))
	for r.clock.Since(begin) < time.Hour {
		result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(before)})
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > maxRequeueDelay {
			t.Fatalf("asks again after %s, %v; want at most %s", result.RequeueAfter, err, maxRequeueDelay)
		}
		if len(r.asked) > 0 {
			break
		}
		if got := r.events(); len(lines)+len(got) > 0 || r.secret().ResourceVersion != before.ResourceVersion {
			t.Fatalf("before it is due: log %q, events %q, or the Secret was written", lines, got)
		}
		r.clock.SetTime(r.clock.Now().Add(result.RequeueAfter))
	}
	if after := r.clock.Since(begin); after < 42*time.Minute || after > 48*time.Minute {
		t.Errorf("it is renewed after %s; want 42 to 48 minutes", after)
	}
}

func TestTokenIsRenewedWhenDue(t *testing.T) {
	r := newRenewal(t, nil)
	now := begin.Add(48 * time.Minute)
	r.clock.SetTime(now)
	before := r.secret()
	if result, err := r.reconcile(); err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > maxRequeueDelay {
		t.Fatalf("asks again after %s, %v", result.RequeueAfter, err)
	}
	if want := "POST /api/v1/namespaces/healthscope-system/serviceaccounts/healthscope-hub/token Bearer " + r.first; len(r.asked) != 1 || r.asked[0] != want {
		t.Errorf("asked %q, want %q once", r.asked, want)
	}
	after := r.secret()
	config, err := kubeconfig.Parse(after.Data[corev1alpha2.KubeconfigKey])
	if err != nil || config.BearerToken == r.first || config.Host != r.member.URL {
		t.Errorf("the new kubeconfig has an old token, or another server: %v", err)
	}
	want := before.DeepCopy()
	want.ResourceVersion = after.ResourceVersion
	want.Data[corev1alpha2.KubeconfigKey] = after.Data[corev1alpha2.KubeconfigKey]
	want.Annotations[corev1alpha2.AnnotationTokenExpires] = now.Add(time.Hour).Format(time.RFC3339)
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("more or less has changed than the token (-want +got):\n%s", diff)
	}
	if got := r.events(); len(got) != 1 || !contains(got[0], "Normal TokenRenewed") {
		t.Errorf("events %q", got)
	}
	if diff := cmp.Diff(map[string]float64{"provider+edge01": float64(now.Add(time.Hour).Unix())}, r.expiries()); diff != "" {
		t.Errorf("metric (-want +got):\n%s", diff)
	}
}

func TestSecretsWithoutTheAnnotationAreLeftAlone(t *testing.T) {
	r := newRenewal(t, func(s *corev1.Secret) { delete(s.Annotations, corev1alpha2.AnnotationTokenExpires) })
	r.clock.SetTime(begin.AddDate(1, 0, 0))
	before := r.secret().ResourceVersion
	if result, err := r.reconcile(); err != nil || result.RequeueAfter != 0 {
		t.Errorf("asks again after %s, %v", result.RequeueAfter, err)
	}
	if len(r.asked) > 0 || r.secret().ResourceVersion != before || len(r.events()) > 0 || len(r.expiries()) > 0 {
		t.Error("something was done")
	}
}

func TestFailedRenewalIsReportedOnceAndWritesNothing(t *testing.T) {
	refuse := func(w http.ResponseWriter, _ *authenticationv1.TokenRequest) {
		w.WriteHeader(http.StatusForbidden)
		writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: "no right"})
	}
	lifetime := func(seconds int64) func(http.ResponseWriter, *authenticationv1.TokenRequest) {
		return func(w http.ResponseWriter, asked *authenticationv1.TokenRequest) {
			asked.Spec.ExpirationSeconds, asked.Status.Token = &seconds, tokenFor(9)
			writeJSON(w, asked)
		}
	}
	tokenOnly := func(token string) func(http.ResponseWriter, *authenticationv1.TokenRequest) {
		return func(w http.ResponseWriter, asked *authenticationv1.TokenRequest) {
			asked.Status.Token = token
			writeJSON(w, asked)
		}
	}
	cases := map[string]struct {
		annotate func(*corev1.Secret)
		answer   func(http.ResponseWriter, *authenticationv1.TokenRequest)
		want     string
	}{
		"refused":              {nil, refuse, "no right"},
		"no token":             {nil, tokenOnly(""), "it has 0 bytes"},
		"token of no use":      {nil, tokenOnly("a\nb"), "the member gives a token that cannot be used"},
		"huge token":           {nil, tokenOnly(strings.Repeat("x", 1<<20)), "the member gives a token that cannot be used"},
		"token for a moment":   {nil, lifetime(1), "is valid for 1s"},
		"token of the past":    {nil, lifetime(-5), "is valid for -5s"},
		"another token":        {func(s *corev1.Secret) { replaceToken(s, "opaque") }, refuse, "the token is not one of a ServiceAccount"},
		"hostile kubeconfig":   {func(s *corev1.Secret) { s.Data[corev1alpha2.KubeconfigKey] = []byte("users: []") }, refuse, "current-context"},
		"no kubeconfig":        {func(s *corev1.Secret) { delete(s.Data, corev1alpha2.KubeconfigKey) }, refuse, "it is empty"},
		"answer without sense": {nil, func(w http.ResponseWriter, _ *authenticationv1.TokenRequest) { writeJSON(w, 7) }, "cannot get a token"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRenewal(t, c.annotate)
			r.answer = c.answer
			r.clock.SetTime(begin.Add(50 * time.Minute))
			before := r.secret()
			for range 3 {
				if _, err := r.reconcile(); err == nil || !contains(err.Error(), c.want) {
					t.Errorf("error %.300v, want %q in it", err, c.want)
				}
			}
			if r.secret().ResourceVersion != before.ResourceVersion {
				t.Error("the Secret was written")
			}
			if got := r.events(); len(got) != 1 || !contains(got[0], "Warning TokenNotRenewed") || !contains(got[0], c.want) {
				t.Errorf("events %.300q", got)
			}
		})
	}
}

func replaceToken(s *corev1.Secret, token string) {
	changed, err := kubeconfig.WithToken(s.Data[corev1alpha2.KubeconfigKey], token)
	if err != nil {
		panic(err)
	}
	s.Data[corev1alpha2.KubeconfigKey] = changed
}

// TestMessagesNeverContainTheToken has a member that repeats the token in its response.
func TestMessagesNeverContainTheToken(t *testing.T) {
	r := newRenewal(t, nil)
	r.answer = func(w http.ResponseWriter, _ *authenticationv1.TokenRequest) {
		w.WriteHeader(http.StatusForbidden)
		writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: 403, Reason: metav1.StatusReasonForbidden,
			Message: "you said " + r.first + "\x1b[2J" + strings.Repeat("!", 5000)})
	}
	r.clock.SetTime(begin.Add(50 * time.Minute))
	_, err := r.reconcile()
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, said := range append(r.events(), err.Error()) {
		if contains(said, r.first) || contains(said, "\x1b") || len(said) > 1024 {
			t.Errorf("it is said: %.2000q", said)
		}
	}
}

func TestInvalidAnnotationIsReportedOnce(t *testing.T) {
	r := newRenewal(t, func(s *corev1.Secret) { s.Annotations[corev1alpha2.AnnotationTokenExpires] = "soon" })
	for range 2 {
		if result, err := r.reconcile(); err != nil || result.RequeueAfter != 0 {
			t.Errorf("asks again after %s, %v", result.RequeueAfter, err)
		}
	}
	if got := r.events(); len(got) != 1 || !contains(got[0], `invalid value "soon"`) {
		t.Errorf("events %q", got)
	}
}

// TestConcurrentChangeOfTheSecretIsNotOverwritten writes to the Secret during the renewal.
func TestConcurrentChangeOfTheSecretIsNotOverwritten(t *testing.T) {
	r := newRenewal(t, nil)
	r.answer = func(w http.ResponseWriter, asked *authenticationv1.TokenRequest) {
		s := r.secret()
		replaceToken(s, "anothers")
		if err := r.hub.Update(context.WithoutCancel(t.Context()), s); err != nil {
			t.Error(err)
		}
		asked.Status.Token = tokenFor(2)
		writeJSON(w, asked)
	}
	r.clock.SetTime(begin.Add(50 * time.Minute))
	if _, err := r.reconcile(); err != nil {
		t.Errorf("error %v", err)
	}
	if r.token() != "anothers" || len(r.events()) > 0 {
		t.Errorf("token %q", r.token())
	}
}

func TestMetricOfADeletedSecretIsRemoved(t *testing.T) {
	r := newRenewal(t, nil)
	if _, err := r.reconcile(); err != nil || len(r.expiries()) != 1 {
		t.Fatalf("metric %v, %v", r.expiries(), err)
	}
	// Two Secrets may name the same cluster. There must be only one series for it.
	second := secretWith(map[string]string{corev1alpha2.AnnotationClusterName: "provider+edge01"})
	r.record(second, begin.Add(time.Minute), "")
	if got := r.expiries(); got["provider+edge01"] != float64(begin.Add(time.Minute).Unix()) {
		t.Errorf("metric %v, want the first end", got)
	}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(second)}); err != nil {
		t.Fatal(err)
	}
	if err := r.hub.Delete(t.Context(), r.secret()); err != nil {
		t.Fatal(err)
	}
	if result, err := r.reconcile(); err != nil || result.RequeueAfter != 0 || len(r.expiries()) != 0 {
		t.Errorf("metric %v, asks again after %s, %v", r.expiries(), result.RequeueAfter, err)
	}
}
