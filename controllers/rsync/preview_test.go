package rsync_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// planOf reads the plan of a context.
func planOf(ctx context.Context, id string) *deploy.Plan {
	GinkgoHelper()
	s, err := store.Snapshot(ctx, id)
	Expect(err).NotTo(HaveOccurred())
	p, err := deploy.NewPlan(s)
	Expect(err).NotTo(HaveOccurred())
	return p
}

var _ = Describe("the preview of a context", func() {
	It("says what would be created, changed and deleted, and does nothing of it", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: "
		put(ctx, newComposite("1040", namespace, "a").
			add("a", edge01, "cm+ConfigMap", configMap("cm"), "s+Secret", secret+"hunter}\n").
			add("a", edge02, "far+ConfigMap", configMap("far")).values)
		n := newNetwork()
		n.set(true)
		actions := func(previews []rsync.Preview) map[string]rsync.Preview {
			all := map[string]rsync.Preview{}
			for _, p := range previews {
				Expect(p.App).To(Equal("a"))
				all[p.Resource] = rsync.Preview{Action: p.Action, Fields: p.Fields}
			}
			return all
		}
		Expect(actions(rsync.PreviewInstantiation(ctx, planOf(ctx, "1040"), n.Access))).To(Equal(map[string]rsync.Preview{
			"cm+ConfigMap": {Action: rsync.PreviewCreate}, "s+Secret": {Action: rsync.PreviewCreate}, "far+ConfigMap": {Action: rsync.PreviewUnknown},
		}))
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "cm")).To(BeFalse())

		n.set(false)
		stop := start(n)
		instantiate(ctx, "1040")
		stop()
		put(ctx, newComposite("1040", namespace, "a").
			add("a", edge01, "cm+ConfigMap", configMap("cm"), "s+Secret", secret+"other}\n", "bad+ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {k: 1}\n").values)
		Expect(actions(rsync.PreviewInstantiation(ctx, planOf(ctx, "1040"), n.Access))).To(Equal(map[string]rsync.Preview{
			"cm+ConfigMap": {Action: rsync.PreviewUnchanged}, "s+Secret": {Action: rsync.PreviewChange, Fields: []string{"data.password"}},
			"far+ConfigMap": {Action: rsync.PreviewUnchanged}, "bad+ConfigMap": {Action: rsync.PreviewRefused},
		}))
		Expect(actions(rsync.PreviewTermination(ctx, planOf(ctx, "1040"), n.Access))).To(Equal(map[string]rsync.Preview{
			"cm+ConfigMap": {Action: rsync.PreviewDelete}, "s+Secret": {Action: rsync.PreviewDelete},
			"far+ConfigMap": {Action: rsync.PreviewDelete}, "bad+ConfigMap": {Action: rsync.PreviewUnchanged},
		}))
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "cm")).To(BeTrue())
	})

	It("knows that what kubectl applied would be taken over", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cm", Namespace: namespace, Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}}, Data: map[string]string{"k": "old"}}
		Expect(api.Create(ctx, o, client.FieldOwner("kubectl-client-side-apply"))).To(Succeed())
		put(ctx, newComposite("1041", namespace, "a").add("a", edge01, "cm+ConfigMap", configMap("cm")).values)
		Expect(rsync.PreviewInstantiation(ctx, planOf(ctx, "1041"), newNetwork().Access)).To(ConsistOf(And(
			HaveField("Action", rsync.PreviewChange), HaveField("Fields", ContainElement("data.k")))))
	})
})
