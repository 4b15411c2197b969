package rights

import (
	"context"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/healthscope/healthscope/e2e/installation"
)

// asks requests a scope from the status REST server, and the metrics of both programs, with the token of a ServiceAccount that
// has no right to any of them. It expects 403 Forbidden.
func asks(ctx context.Context, hs *installation.Installation, a application) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: string(a), Name: "asker"}}
	Expect(k8s.Create(ctx, account)).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	Expect(k8s.SubResource("token").Create(ctx, account, request)).To(Succeed())
	for _, url := range []string{hs.GuardedAPI + "/scopes/" + string(a) + "/single", hs.GuardedMetrics, hs.GuardedMonitorMetrics} {
		status, _, err := hs.Ask(ctx, url, request.Status.Token)
		Expect(err).NotTo(HaveOccurred())
		Expect(status).To(Equal(http.StatusForbidden), url)
	}
}
