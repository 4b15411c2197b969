package enrol

import (
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// TestTokenIsRenewedSoonAfterTheMachineWakesUp checks that every wait is short, because timers stop while the machine sleeps.
func TestTokenIsRenewedSoonAfterTheMachineWakesUp(t *testing.T) {
	r := newRenewal(t, func(s *corev1.Secret) {
		s.Annotations[corev1alpha2.AnnotationTokenExpires] = begin.Add(24 * time.Hour).Format(time.RFC3339)
		s.Annotations[corev1alpha2.AnnotationTokenLifetime] = "24h"
	})
	before := r.secret()
	token, _, err := tokenFromAnnotations(before)
	if err != nil {
		t.Fatal(err)
	}
	due := token.renewalTime(before.UID)
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 9}))
	reconciled := func(now time.Time) {
		t.Helper()
		r.clock.SetTime(now)
		result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(before)})
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > maxRequeueDelay {
			t.Fatalf("asks again after %s, %v; want at most %s", result.RequeueAfter, err, maxRequeueDelay)
		}
	}

	for early := 10 * time.Hour; early > 0; early -= time.Hour {
		reconciled(due.Add(-early))
	}
	if got := r.events(); len(r.asked)+len(lines)+len(got) > 0 || r.secret().ResourceVersion != before.ResourceVersion {
		t.Errorf("before it is due: asked %q, log %q, events %q, or the Secret was written", r.asked, lines, got)
	}
	reconciled(due.Add(time.Second))
	if len(r.asked) != 1 || r.token() == r.first {
		t.Errorf("once it is due: asked %q, and the token is new: %t", r.asked, r.token() != r.first)
	}
}
