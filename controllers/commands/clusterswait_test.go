package commands

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/healthscope/healthscope/controllers/enrol"
)

func TestWaitForConnectedCluster(t *testing.T) {
	t.Parallel()
	const published = `{"lease":{"namespace":"ns","name":"hub"},"clusters":[{"name":"a+b","secretUID":"now","state":%q,"message":%q}],"rejectedSecrets":[{"name":"a-c","message":"the name is taken"}]}`
	for name, c := range map[string]struct {
		cluster, document string
		renewed           time.Duration
		want              string
	}{
		"connected":                {"a+b", fmt.Sprintf(published, "Connected", ""), 0, "hub: cluster a+b Connected\n"},
		"removed, and added again": {"a+b", strings.Replace(fmt.Sprintf(published, "Connected", ""), `"now"`, `"before"`, 1), 0, "it has been added and is not Connected: the controller has not read its Secret yet"},
		"unreachable":              {"a+b", fmt.Sprintf(published, "Unreachable", "no answer"), 0, "it has been added and is not Connected: Unreachable: no answer"},
		"rejected":                 {"a+c", fmt.Sprintf(published, "Connected", ""), 0, "it has been added and is not Connected: Refused: the name is taken"},
		"not read":                 {"a+d", fmt.Sprintf(published, "Connected", ""), 0, "it has been added and is not Connected: the controller has not read its Secret yet"},
		"no controller":            {"a+b", fmt.Sprintf(published, "Connected", ""), time.Hour, "it has been added and is not Connected: the controller does not run: it does not renew its Lease ns/hub"},
		"nothing at all":           {"a+b", "", 0, `it has been added and is not Connected: there is no ConfigMap "ns/healthscope-clusters": the controller has not written it yet, or it does not run`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holder, at := "hub-0", metav1.NewMicroTime(time.Now().Add(-c.renewed))
			hub := fake.NewClientBuilder().WithObjects(&coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hub"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at},
			})
			hub.WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: enrol.SecretName(c.cluster), UID: "now"}})
			if c.document != "" {
				hub.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "healthscope-clusters"}, Data: map[string]string{"clusters.json": c.document}})
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			reads := 0
			hub.WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if _, ok := o.(*corev1.ConfigMap); ok {
					if reads++; reads == 2 {
						cancel() // This ends the wait.
					}
				}
				return c.Get(ctx, key, o, options...)
			}})
			var out, errOut bytes.Buffer
			err := waitConnected(ctx, hub.Build(), "ns", c.cluster, &out, &errOut)
			if got := strings.TrimPrefix(out.String()+fmt.Sprint(err), "<nil>"); strings.TrimSuffix(got, "<nil>") != c.want || errOut.Len() > 0 {
				t.Errorf("want %q, got %q; on no terminal there is no progress: %q", c.want, got, errOut.String())
			}
		})
	}
}
