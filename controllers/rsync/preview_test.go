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

	It("says what others have changed since, and who, and an instantiation brings back what they have deleted", func(ctx SpecContext) {
		const id = "1044"
		namespace := newNamespace(ctx)
		put(ctx, newComposite(id, namespace, "a").add("a", edge01, "gone+ConfigMap", configMap("gone"), "same+ConfigMap", configMap("same"), "edited+ConfigMap", configMap("edited")).values)
		n := newNetwork()
		start(n)
		instantiate(ctx, id)
		drift := func() map[string]rsync.Preview {
			GinkgoHelper()
			all := map[string]rsync.Preview{}
			for _, p := range rsync.PreviewInstantiation(ctx, planOf(ctx, id), n.Access) {
				all[p.Resource] = p
			}
			return all
		}
		Expect(drift()).To(HaveEach(HaveField("Action", rsync.PreviewUnchanged)))

		edited := &corev1.ConfigMap{}
		Expect(exists(ctx, edited, namespace, "edited")).To(BeTrue())
		edited.Data["k"] = "by hand"
		Expect(api.Update(ctx, edited, client.FieldOwner("kubectl-edit"))).To(Succeed())
		Expect(api.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gone"}})).To(Succeed())
		Expect(drift()).To(And(
			HaveKeyWithValue("same+ConfigMap", HaveField("Action", rsync.PreviewUnchanged)),
			HaveKeyWithValue("gone+ConfigMap", HaveField("Action", rsync.PreviewCreate)),
			HaveKeyWithValue("edited+ConfigMap", And(HaveField("Action", rsync.PreviewRefused), HaveField("Problem", ContainSubstring(`conflict with "kubectl-edit"`))))))

		ends(ctx, id, deploy.EventInstantiate, "InstantiateFailed")
		Expect(dataOf(ctx, namespace, "gone")).To(Equal("v"))
		Expect(dataOf(ctx, namespace, "edited")).To(Equal("by hand"), "what others have set is theirs")
	})

	It("says what an update would bring, leave and delete", func(ctx SpecContext) {
		const from, to = "1042", "1043"
		namespace := newNamespace(ctx)
		put(ctx, newComposite(from, namespace, "a", "b").
			add("a", edge01, "same+ConfigMap", with("same", "1"), "changed+ConfigMap", with("changed", "1"), "removed+ConfigMap", with("removed", "1")).
			add("b", edge02, "gone+ConfigMap", with("gone", "1")).values)
		put(ctx, newComposite(to, namespace, "a").
			add("a", edge01, "same+ConfigMap", with("same", "1"), "changed+ConfigMap", with("changed", "2"), "added+ConfigMap", with("added", "2")).values)
		n := newNetwork()
		stop := start(n)
		instantiate(ctx, from)
		preview := func(from, to string) map[string]rsync.PreviewAction {
			GinkgoHelper()
			u, err := rsync.ReadUpdate(ctx, store, from, to)
			Expect(err).NotTo(HaveOccurred())
			previews := rsync.PreviewUpdate(ctx, u, n.Access)
			all := map[string]rsync.PreviewAction{}
			for _, p := range previews {
				all[p.App+" "+p.Resource] = p.Action
			}
			Expect(all).To(HaveLen(len(previews)))
			return all
		}
		before := stored(ctx, to)
		Expect(preview(from, to)).To(Equal(map[string]rsync.PreviewAction{
			"a same+ConfigMap": rsync.PreviewUnchanged, "a changed+ConfigMap": rsync.PreviewChange, "a added+ConfigMap": rsync.PreviewCreate,
			"a removed+ConfigMap": rsync.PreviewDelete, "b gone+ConfigMap": rsync.PreviewDelete,
		}))
		Expect(stored(ctx, to)).To(Equal(before))
		Expect(dataOf(ctx, namespace, "changed")).To(Equal("v1"))

		By("doing what the preview says, and previewing the way back")
		update(ctx, from, to)
		becomes(ctx, from, "Updated")
		stop()
		Expect(preview(to, from)).To(Equal(map[string]rsync.PreviewAction{
			"a same+ConfigMap": rsync.PreviewUnchanged, "a changed+ConfigMap": rsync.PreviewChange, "a removed+ConfigMap": rsync.PreviewCreate,
			"b gone+ConfigMap": rsync.PreviewCreate, "a added+ConfigMap": rsync.PreviewDelete,
		}))
		_, err := rsync.ReadUpdate(ctx, store, to, to)
		Expect(err).To(MatchError(ContainSubstring("a context cannot be updated to itself")))
		enqueue(ctx, to, deploy.EventTerminate)
		start(n)
		becomes(ctx, to, "Terminated")
		_, err = rsync.ReadUpdate(ctx, store, from, to)
		Expect(err).To(MatchError(ContainSubstring(`event "Update" is not possible in state "Terminated"`)))
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
