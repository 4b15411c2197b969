package rsync_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// twoReplicas is a Deployment.
const twoReplicas = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 2\n  selector:\n    matchLabels: {app: web}\n  template:\n    metadata:\n      labels: {app: web}\n    spec:\n      containers:\n      - {name: web, image: example.org/web}\n"

var _ = Describe("rsync and objects that others have applied", func() {
	It("takes over what kubectl applied, with one request for what is ours already", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		applied := func(name string, data map[string]string) *corev1.ConfigMap {
			o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}}, Data: data}
			Expect(api.Create(ctx, o, client.FieldOwner("kubectl-client-side-apply"))).To(Succeed())
			return o
		}
		differs := applied("differs", map[string]string{"k": "old", "gone": "x"})
		applied("same", map[string]string{"k": "v", "gone": "x"})
		differs.Data["others"] = "stays"
		Expect(api.Update(ctx, differs, client.FieldOwner("another"))).To(Succeed())

		put(ctx, newComposite("1130", namespace, "a").add("a", edge01, "differs+ConfigMap", configMap("differs"), "same+ConfigMap", configMap("same"), "new+ConfigMap", configMap("new")).values)
		n := newNetwork()
		sent := n.count(func(*http.Request) bool { return true })
		start(n)
		instantiate(ctx, "1130")
		cm := &corev1.ConfigMap{}
		Expect(exists(ctx, cm, namespace, "differs")).To(BeTrue())
		Expect(cm.Data).To(Equal(map[string]string{"k": "v", "others": "stays"}))
		Expect(cm.ManagedFields).To(ConsistOf(HaveField("Manager", "another"), And(HaveField("Manager", "healthscope-rsync"), HaveField("Operation", metav1.ManagedFieldsOperationApply))))
		Expect(exists(ctx, cm, namespace, "same")).To(BeTrue())
		Expect(cm.Data).To(Equal(map[string]string{"k": "v"}))

		before := sent.Load()
		instantiate(ctx, "1130")
		Expect(sent.Load()-before).To(BeEquivalentTo(4), "one for each resource and one for the bundle")
	})

	It("sets back what another manager has set, where the context says so, and takes no object of others for that", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		c := newComposite("1134", namespace, "a").add("a", edge01, "cm+ConfigMap", configMap("cm"), "web+Deployment", twoReplicas)
		c.values["/context/1134/meta/"] = `{"Namespace":"` + namespace + `","Level":"1","CorrectDrift":true}`
		put(ctx, c.values)
		n := newNetwork()
		start(n)
		instantiate(ctx, "1134")
		cm, d := &corev1.ConfigMap{}, &appsv1.Deployment{}
		Expect(exists(ctx, cm, namespace, "cm")).To(BeTrue())
		cm.Data = map[string]string{"k": "by hand", "more": "theirs"}
		Expect(api.Update(ctx, cm, client.FieldOwner("kubectl-edit"))).To(Succeed())
		Expect(exists(ctx, d, namespace, "web")).To(BeTrue())
		Expect(api.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(&autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}))).To(Succeed())
		Expect(exists(ctx, d, namespace, "web")).To(BeTrue())
		d.Spec.Template.Spec.Containers[0].Image = "example.org/other"
		Expect(api.Update(ctx, d, client.FieldOwner("kubectl-edit"))).To(Succeed())
		Expect(rsync.PreviewInstantiation(ctx, planOf(ctx, "1134"), n.Access)).To(ConsistOf(
			And(HaveField("Action", rsync.PreviewChange), HaveField("Fields", Equal([]string{"data.k"}))),
			And(HaveField("Action", rsync.PreviewChange), HaveField("Fields", Equal([]string{"spec.template.spec.containers[0].image"})))))

		instantiate(ctx, "1134")
		Expect(exists(ctx, cm, namespace, "cm")).To(BeTrue())
		Expect(cm.Data).To(Equal(map[string]string{"k": "v", "more": "theirs"}))
		Expect(exists(ctx, d, namespace, "web")).To(BeTrue())
		Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("example.org/web"))
		Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(5)))

		By("refusing an object that is not of its app")
		cm.Labels, cm.Data = nil, map[string]string{"k": "theirs"}
		Expect(api.Update(ctx, cm, client.FieldOwner("another"))).To(Succeed())
		ends(ctx, "1134", deploy.EventInstantiate, "InstantiateFailed")
		Expect(dataOf(ctx, namespace, "cm")).To(Equal("theirs"))
	})

	It("leaves replicas alone that were scaled, as autoscalers do", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite("1132", namespace, "a").add("a", edge01, "web+Deployment", twoReplicas).values)
		start(newNetwork())
		instantiate(ctx, "1132")
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace}}
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
		Expect(api.SubResource("scale").Update(ctx, d, client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager"))).To(Succeed())
		for range 2 {
			instantiate(ctx, "1132")
			Expect(exists(ctx, d, namespace, "web")).To(BeTrue())
			Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(5)))
		}
	})

	It("approves a CertificateSigningRequest that the context approves, once", func(ctx SpecContext) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		Expect(err).NotTo(HaveOccurred())
		request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
		Expect(err).NotTo(HaveOccurred())
		encoded := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
		csr := "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: user}\nspec: {signerName: example.org/user, usages: [client auth], request: " + encoded + "}\n"
		c := newComposite("1133", newNamespace(ctx), "a").add("a", edge01, "user+CertificateSigningRequest", csr)
		c.values["/context/1133/app/a/cluster/p1+edge01/resource/user+CertificateSigningRequest/subresource/approval/"] =
			fmt.Sprintf("%q", `{"lastUpdateTime":null,"message":"Approved for Logical Cloud","reason":"LogicalCloud","type":"Approved","status":"True"}`)
		put(ctx, c.values)
		start(newNetwork())
		for range 2 {
			instantiate(ctx, "1133")
			got := &certificatesv1.CertificateSigningRequest{}
			Expect(exists(ctx, got, "", "user")).To(BeTrue())
			Expect(got.Status.Conditions).To(ConsistOf(And(HaveField("Type", certificatesv1.CertificateApproved), HaveField("Reason", "LogicalCloud"))))
		}
	})

	It("fails with what cannot be read as its kind, which the API server calls a fault of its own", func(ctx SpecContext) {
		put(ctx, newComposite("1138", newNamespace(ctx), "a").add("a", edge01, "cm+ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {k: 1}\n").values)
		start(newNetwork())
		ends(ctx, "1138", deploy.EventInstantiate, "InstantiateFailed")
		Expect(wordsOf(ctx, "1138", "a", "cm+ConfigMap")).To(ContainSubstring(".data.k: expected string"))
	})

	DescribeTable("says nothing of what a Secret holds when it is refused", func(ctx SpecContext, id, fields, want string) {
		secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n" + fields
		put(ctx, newComposite(id, newNamespace(ctx), "a").add("a", edge01, "s+Secret", secret).values)
		start(newNetwork())
		ends(ctx, id, deploy.EventInstantiate, "InstantiateFailed")
		words := wordsOf(ctx, id, "a", "s+Secret")
		Expect(words).To(And(ContainSubstring(want), Not(ContainSubstring("4711")), Not(ContainSubstring("hunter"))))
	},
		Entry("a number", "1139", "stringData: {password: 4711}\n", "is not shown"),
		Entry("no base64", "1135", "data: {password: 'hunter-4711'}\n", "is not shown"),
		Entry("no document", "1136", "type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: 'hunter 4711'}\n", "dockerconfigjson"),
		Entry("a map", "1137", "stringData: {password: {hunter: 4711}}\n", "is not shown"),
	)
})
