package rsync_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// named returns the reference to an object that a context has in place of the object if it is to be read.
func named(kind, name string) string {
	data, err := json.Marshal(map[string]any{"GVK": map[string]string{"Group": "", "Version": "v1", "Kind": kind}, "name": name})
	Expect(err).NotTo(HaveOccurred())
	return string(data)
}

var _ = Describe("rsync and contexts that are to be read", func() {
	It("stores in the context the objects that it names, and says which it cannot", func(ctx SpecContext) {
		const id = "1250"
		namespace := newNamespace(ctx)
		Expect(api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs"}, Data: map[string]string{"k": "v"}})).To(Succeed())
		put(ctx, newComposite(id, namespace, "a", "b").
			add("a", edge01, "theirs+ConfigMap", named("ConfigMap", "theirs")).
			add("b", edge01, "late+ConfigMap", named("ConfigMap", "late"), "theirs+ConfigMap", named("ConfigMap", "theirs")).values)
		definition := func(app, name string) map[string]any {
			GinkgoHelper()
			text, object := "", map[string]any{}
			value := stored(ctx, id)["/context/"+id+"/app/"+app+"/cluster/"+edge01+"/resource/"+name+"/definition/"]
			Expect(json.Unmarshal([]byte(value), &text)).To(Succeed(), value)
			Expect(json.Unmarshal([]byte(text), &object)).To(Succeed(), text)
			return object
		}
		start(newNetwork())
		ends(ctx, id, deploy.EventRead, "InstantiateFailed")
		for _, app := range []string{"a", "b"} {
			Expect(definition(app, "theirs+ConfigMap")).To(And(HaveKeyWithValue("kind", "ConfigMap"), HaveKeyWithValue("data", map[string]any{"k": "v"})))
		}
		Expect(store.Sidecar(ctx, rsync.ProblemHandle(id))).To(ContainSubstring(`configmaps "late" not found`))

		By("reading again what was not there")
		Expect(api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late"}})).To(Succeed())
		ends(ctx, id, deploy.EventRead, "Instantiated")
		Expect(definition("b", "late+ConfigMap")).To(HaveKeyWithValue("kind", "ConfigMap"))
		Expect(store.Sidecar(ctx, rsync.ProblemHandle(id))).To(BeEmpty())
		have := &corev1.ConfigMap{}
		Expect(exists(ctx, have, namespace, "theirs")).To(BeTrue())
		Expect(have.Labels).To(BeEmpty(), "an object that is read is not changed")

		By("terminating the context, of which nothing is in clusters")
		terminate(ctx, id)
		Expect(exists(ctx, have, namespace, "theirs")).To(BeTrue())
	})

	It("reads no Secret, and nothing where the context has no place", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		Expect(api.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "s"}, StringData: map[string]string{"password": "hunter2"}})).To(Succeed())
		for id, c := range map[string]struct{ resource, body, words string }{
			"1251": {"s+Secret", named("Secret", "s"), `Secret "s" is not read`},
			"1252": {"x+Namespace", named("Namespace", "default"), `only level "0" may touch it`},
			"1253": {"x+ConfigMap", configMap("x"), `GVK.Version ""`},
			"1254": {"x+ConfigMap", named("ConfigMap", "../x"), `metadata.name "../x"`},
		} {
			composite := newComposite(id, namespace, "a").add("a", edge01, c.resource, c.body)
			composite.values["/context/"+id+"/meta/"] = `{"Namespace":"` + namespace + `","Level":"1"}`
			put(ctx, composite.values)
			stop := start(newNetwork())
			ends(ctx, id, deploy.EventRead, "InstantiateFailed")
			Expect(store.Sidecar(ctx, rsync.ProblemHandle(id))).To(ContainSubstring(c.words))
			Expect(stored(ctx, id)).NotTo(HaveKey(HaveSuffix("/definition/")))
			stop()
		}
	})
})
