package recorder_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

const (
	// one and two are statuses of a bundle, as EMCO's monitor writes them and as they are saved.
	one = `{"ready":false,"resourceCount":0,"serviceStatuses":[{"metadata":{"name":"sink"},"spec":{"clusterIP":"10.0.0.1"}}]}`
	two = `{"ready":false,"resourceCount":0,"serviceStatuses":[{"metadata":{"name":"sink"},"spec":{"clusterIP":"10.0.0.2"}}]}`
	// nothing is the text that is saved for a bundle without a status.
	nothing = `{"ready":false,"resourceCount":0}`
)

var _ = Describe("The recorder", func() {
	var namespace string
	var s *site
	var options hubOptions
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		s = newSite(ctx, home, edge)
		options = hubOptions{namespace: newHome(ctx)}
	})

	It("saves what rsync saves, as rsync saves it, and removes it with the bundle", func(ctx SpecContext) {
		h := run(ctx, options)
		b := newBundle(ctx, namespace, s.bundle(), s.bundle(), "")
		Eventually(s.saved(ctx, home)).Should(Equal(nothing))
		fill(ctx, b, one)
		Eventually(s.saved(ctx, home)).Should(Equal(one))

		By("changing what makes no difference to anybody's state")
		fill(ctx, b, two)
		Eventually(s.saved(ctx, home)).Should(Equal(two))
		csr := `{"ready":false,"resourceCount":0,"csrStatuses":[{"metadata":{"name":"lc"},"status":{"certificate":"LS0tLS1C","conditions":[{"type":"Approved"}]}}]}`
		fill(ctx, b, `{"serviceStatuses":null,"csrStatuses":[{"metadata":{"name":"lc"},"status":{"certificate":"LS0tLS1C","conditions":[{"type":"Approved"}]}}]}`)
		Eventually(s.saved(ctx, home)).Should(MatchJSON(csr))
		Expect(s.saved(ctx, home)()).To(ContainSubstring(`certificate":"LS0t`), "EMCO looks for this in the text")

		By("looking when it was seen")
		store, err := appcontext.Open(appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(store.Close)
		at, err := store.ReadBundle(ctx, appcontext.AppInCluster{ContextID: s.id, App: "sink", Cluster: home})
		Expect(err).NotTo(HaveOccurred())
		Expect(at.IsOurs()).To(BeTrue())
		Expect(at.Saved.Seen).To(BeTemporally("~", h.clock.Now(), time.Millisecond))
		Expect(h.metric("healthscope_recorder_bundles", "saved")()).To(BeNumerically("==", 1))
		Expect(h.lint()).To(BeEmpty())

		By("removing the bundle")
		Expect(api.Delete(ctx, b)).To(Succeed())
		Eventually(s.saved(ctx, home)).Should(BeEmpty())
		Eventually(h.metric("healthscope_recorder_bundles", "saved")).Should(BeZero())
		all, err := store.SavedBundles(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).NotTo(HaveKey(at.Place))
		Expect(s.saved(ctx, edge)()).To(BeEmpty(), "the other cluster has no such bundle")
	}, SpecTimeout(2*time.Minute))

	It("saves the certificate of a logical cloud where EMCO's dcm looks for it", func(ctx SpecContext) {
		s.addApp(ctx, "logical-cloud", home)
		id := s.id + "-logical-cloud"
		run(ctx, options)
		// The monitor writes this status in a trusted namespace. The API server of the cluster stores it as it is.
		b := newBundle(ctx, namespace, id, id, `{"ready":true,"resourceCount":3,"csrStatuses":[`+
			`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"lc1-user-csr"},`+
			`"spec":{"request":"cmVx","signerName":"kubernetes.io/kube-apiserver-client"},"status":{}}]}`)
		dcm := func() (certificatesv1.CertificateSigningRequestStatus, string) {
			text := s.savedFor(ctx, "logical-cloud", home)()
			var read struct {
				CsrStatuses []certificatesv1.CertificateSigningRequest
			}
			if text != "" {
				Expect(json.Unmarshal([]byte(text), &read)).To(Succeed())
			}
			if len(read.CsrStatuses) == 0 {
				return certificatesv1.CertificateSigningRequestStatus{}, text
			}
			return read.CsrStatuses[0].Status, text
		}
		Eventually(func() string { _, text := dcm(); return text }).Should(ContainSubstring("lc1-user-csr"))
		waiting, text := dcm()
		Expect(waiting).To(BeZero())
		Expect(text).NotTo(ContainSubstring(`certificate":"LS0t`), "dcm takes this text for the certificate")

		By("approving the request")
		fill(ctx, b, `{"csrStatuses":[{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"lc1-user-csr"},`+
			`"spec":{"request":"cmVx","signerName":"kubernetes.io/kube-apiserver-client"},`+
			`"status":{"conditions":[{"type":"Approved","status":"True","reason":"LC","message":"approved"}],"certificate":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"}}],`+
			`"ingressStatuses":[{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"lc"}}]}`)
		Eventually(func() string { _, text := dcm(); return text }).Should(ContainSubstring(`certificate":"LS0t`))
		issued, _ := dcm()
		Expect(issued.Conditions).To(HaveLen(1))
		Expect(issued.Conditions[0].Type).To(Equal(certificatesv1.CertificateApproved))
		Expect(string(issued.Certificate)).To(Equal("-----BEGIN CERTIFICATE-----"))
	}, SpecTimeout(time.Minute))

	It("writes nothing when nothing has changed, after a restart too, and reads nothing whole", func(ctx SpecContext) {
		h := run(ctx, options)
		b := newBundle(ctx, namespace, s.bundle(), s.bundle(), one)
		Eventually(s.saved(ctx, home)).Should(Equal(one))
		before := s.revision(ctx)()
		reads := h.reads.Load()
		annotate(ctx, b, "b")
		Eventually(h.reads.Load).Should(BeNumerically(">", reads))
		Consistently(s.revision(ctx)).Should(Equal(before))
		fill(ctx, b, two)
		Eventually(s.saved(ctx, home)).Should(Equal(two))
		before = s.revision(ctx)()
		h.stop()

		h = run(ctx, options)
		Eventually(h.metric("healthscope_recorder_bundles", "saved")).Should(BeNumerically("==", 1))
		Expect(s.revision(ctx)()).To(Equal(before))
		Expect(h.reads.Load()).To(BeZero(), "the version says that nothing has changed")
		h.stop()

		By("changing it while no recorder runs")
		fill(ctx, b, one)
		h = run(ctx, options)
		Eventually(s.saved(ctx, home)).Should(Equal(one))
		h.stop()

		By("removing it while no recorder runs")
		Expect(api.Delete(ctx, b)).To(Succeed())
		run(ctx, options)
		Eventually(s.saved(ctx, home)).Should(BeEmpty())
	}, SpecTimeout(2*time.Minute))

	It("leaves alone what is not in etcd", func(ctx SpecContext) {
		h := run(ctx, options)
		newBundle(ctx, namespace, "4711-sink", "4711-sink", one)
		newBundle(ctx, namespace, "other", s.id+"-other", one)
		newBundle(ctx, namespace, "odd", s.id+"-instruction", one)
		newBundle(ctx, namespace, "none", "none", one)
		Eventually(h.metric("healthscope_recorder_bundles", "absent")).Should(BeNumerically("==", 2))
		for _, prefix := range []string{"/context/4711/", "/context/" + s.id + "/app/other/", "/context/" + s.id + "/app/instruction/", "/healthscope/context/4711/", "/healthscope/context/" + s.id} {
			Expect(rawKeys(ctx, prefix)).To(BeEmpty())
		}
	}, SpecTimeout(time.Minute))

	It("yields where another writer saves the bundle", func(ctx SpecContext) {
		h := run(ctx, options)
		s.rsync(ctx, home, `{"by":"rsync"}`)
		b := newBundle(ctx, namespace, s.bundle(), s.bundle(), one)
		Eventually(h.metric("healthscope_recorder_bundles", "yielded")).Should(BeNumerically("==", 1))
		fill(ctx, b, two)
		Consistently(s.saved(ctx, home)).Should(Equal(`{"by":"rsync"}`))
		Expect(h.reads.Load()).To(BeZero())

		By("deleting what they have saved")
		_, err := raw.Delete(ctx, s.key(home))
		Expect(err).NotTo(HaveOccurred())
		fill(ctx, b, one)
		Eventually(s.saved(ctx, home)).Should(Equal(one))
		Eventually(h.metric("healthscope_recorder_bundles", "yielded")).Should(BeZero())

		By("their coming back")
		s.rsync(ctx, home, one)
		fill(ctx, b, two)
		Eventually(h.metric("healthscope_recorder_bundles", "yielded")).Should(BeNumerically("==", 1))
		Consistently(s.saved(ctx, home)).Should(Equal(one))

		By("their falling silent while the bundle changes")
		h.clock.SetTime(h.clock.Now().Add(time.Hour))
		fill(ctx, b, `{"ready":true}`)
		Consistently(s.saved(ctx, home)).Should(Equal(one), "the other writer may be about to write")
		fill(ctx, b, two)
		Eventually(func() string {
			// takeoverAfter counts from when the hub has noticed the change. That may be after the clock was first set.
			h.clock.SetTime(h.clock.Now().Add(6 * time.Minute))
			annotate(ctx, b, h.clock.Now().String())
			return s.saved(ctx, home)()
		}).WithPolling(500 * time.Millisecond).Should(Equal(two))
		Eventually(h.metric("healthscope_recorder_bundles", "yielded")).Should(BeZero())

		By("removing the bundle of which they have saved something")
		s.rsync(ctx, home, one)
		Expect(api.Delete(ctx, b)).To(Succeed())
		Eventually(func() []string { return rawKeys(ctx, "/healthscope/context/"+s.id) }).Should(BeEmpty())
		Expect(s.saved(ctx, home)()).To(Equal(one))
	}, SpecTimeout(2*time.Minute))

	It("saves one of several bundles, and stays with it", func(ctx SpecContext) {
		run(ctx, options)
		another := newBundle(ctx, namespace, "another", s.bundle(), one)
		Eventually(s.saved(ctx, home)).Should(Equal(one))
		b := newBundle(ctx, namespace, s.bundle(), s.bundle(), two)
		Consistently(s.saved(ctx, home)).Should(Equal(one), "the one that was there first")
		Expect(api.Delete(ctx, another)).To(Succeed())
		Eventually(s.saved(ctx, home)).Should(Equal(two))

		By("giving the bundle to another app")
		Expect(api.Patch(ctx, b, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"emco/deployment-id":"1-x"}}}`)))).To(Succeed())
		Eventually(s.saved(ctx, home)).Should(BeEmpty())
	}, SpecTimeout(time.Minute))

	It("cuts what is too large for etcd", func(ctx SpecContext) {
		small := options
		small.store.MaxRequestBytes = 4096
		run(ctx, small)
		status := fmt.Sprintf(`{"ready":false,"resourceCount":2,"podStatuses":[{"metadata":{"name":%q}}],"serviceStatuses":[{"metadata":{"name":"sink"}}]}`, strings.Repeat("p", 4000))
		newBundle(ctx, namespace, s.bundle(), s.bundle(), status)
		Eventually(s.saved(ctx, home)).Should(MatchJSON(`{"ready":false,"resourceCount":2,"serviceStatuses":[{"metadata":{"name":"sink"}}],"truncated":true}`))
	}, SpecTimeout(time.Minute))

	It("tries again what has failed", func(ctx SpecContext) {
		options.refuse = new(atomic.Bool)
		options.refuse.Store(true)
		h := run(ctx, options)
		newBundle(ctx, namespace, s.bundle(), s.bundle(), one)
		Eventually(h.metric("healthscope_recorder_errors_total", "cluster")).Should(BeNumerically(">=", 2))
		Eventually(h.metric("healthscope_recorder_bundles", "pending")).Should(BeNumerically("==", 1))
		options.refuse.Store(false)
		Eventually(s.saved(ctx, home)).Should(Equal(one))
	}, SpecTimeout(time.Minute))

	It("resumes when etcd is back", func(ctx SpecContext) {
		own, err := controlplane.StartEtcd(ctx, controlplane.EtcdOptions{Log: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(own.Stop)
		shared, client := etcd, raw
		etcd, raw = own, newRaw(own.Endpoint())
		DeferCleanup(func() { etcd, raw = shared, client })
		s = newSite(ctx, home)
		options.store.Timeout = time.Second
		h := run(ctx, options)
		b := newBundle(ctx, namespace, s.bundle(), s.bundle(), one)
		Eventually(s.saved(ctx, home)).Should(Equal(one))
		Expect(own.Kill()).To(Succeed())
		fill(ctx, b, two)
		Eventually(h.metric("healthscope_recorder_errors_total", "etcd")).Should(BeNumerically(">=", 1))
		Expect(own.Start(ctx)).To(Succeed())
		Eventually(s.saved(ctx, home)).Should(Equal(two))
	}, SpecTimeout(2*time.Minute))

	It("saves again what a restored etcd does not have, and removes what it has no more", func(ctx SpecContext) {
		data := filepath.Join(GinkgoT().TempDir(), "data")
		own, err := controlplane.StartEtcd(ctx, controlplane.EtcdOptions{Log: GinkgoWriter, Arguments: []string{"--data-dir=" + data}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(own.Stop)
		shared, client := etcd, raw
		etcd, raw = own, newRaw(own.Endpoint())
		DeferCleanup(func() { etcd, raw = shared, client })
		still, gone, busy := newSite(ctx, home), newSite(ctx, home), newSite(ctx, home)
		options.store.Timeout = time.Second
		run(ctx, options)
		removed := newBundle(ctx, namespace, gone.bundle(), gone.bundle(), one)
		Eventually(gone.saved(ctx, home)).Should(Equal(one))
		backup, err := raw.Get(ctx, "/", clientv3.WithPrefix())
		Expect(err).NotTo(HaveOccurred())
		newBundle(ctx, namespace, still.bundle(), still.bundle(), one)
		b := newBundle(ctx, namespace, busy.bundle(), busy.bundle(), one)
		Eventually(still.saved(ctx, home)).Should(Equal(one))
		Eventually(busy.saved(ctx, home)).Should(Equal(one))
		Expect(api.Delete(ctx, removed)).To(Succeed())
		Eventually(gone.saved(ctx, home)).Should(BeEmpty())

		Expect(own.Kill()).To(Succeed())
		Expect(os.RemoveAll(data)).To(Succeed())
		Expect(own.Start(ctx)).To(Succeed())
		var puts []clientv3.Op
		for _, kv := range backup.Kvs {
			puts = append(puts, clientv3.OpPut(string(kv.Key), string(kv.Value)))
		}
		_, err = raw.Txn(ctx).Then(puts...).Commit() // The keys of a saved bundle have the same revision.
		Expect(err).NotTo(HaveOccurred())
		Expect(gone.saved(ctx, home)()).To(Equal(one))
		fill(ctx, b, two)
		Eventually(busy.saved(ctx, home)).Should(Equal(two))
		Eventually(still.saved(ctx, home)).Should(Equal(one), "nothing has changed in the cluster")
		Eventually(gone.saved(ctx, home)).Should(BeEmpty())
	}, SpecTimeout(2*time.Minute))

	Context("with a member", func() {
		var secret *corev1.Secret
		var h *hub
		BeforeEach(func(ctx SpecContext) {
			address, err := url.Parse(plane.Config().Host)
			Expect(err).NotTo(HaveOccurred())
			options.wire, err = faults.NewWire(address.Host)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(options.wire.Close)
			secret = newMember(ctx, options.namespace, namespace)
			h = run(ctx, options)
		})
		state := func() fleet.Reachability {
			now, _ := h.State(edge)
			return now.Reachability
		}

		It("keeps what it has saved of a cluster that cannot be seen", func(ctx SpecContext) {
			b := newBundle(ctx, namespace, s.bundle(), s.bundle(), one)
			Eventually(s.saved(ctx, edge)).Should(Equal(one))
			Eventually(s.saved(ctx, home)).Should(Equal(one))
			options.wire.Refuse(true)
			options.wire.Reset()
			Eventually(state).Should(Equal(fleet.Unreachable))
			before := s.saved(ctx, edge)()
			Expect(api.Delete(ctx, b)).To(Succeed())
			Eventually(s.saved(ctx, home)).Should(BeEmpty())
			Consistently(s.saved(ctx, edge)).Should(Equal(before))

			By("a restart")
			h.stop()
			h = run(ctx, options)
			Consistently(s.saved(ctx, edge), "2s").Should(Equal(before))

			By("its return")
			options.wire.Refuse(false)
			options.wire.Mend()
			Eventually(s.saved(ctx, edge), "60s").Should(BeEmpty(), "the bundle has gone meanwhile")
		}, SpecTimeout(3*time.Minute))

		It("keeps what it has saved of a namespace that is not read any more", func(ctx SpecContext) {
			b := newBundle(ctx, namespace, s.bundle(), s.bundle(), one)
			Eventually(s.saved(ctx, edge)).Should(Equal(one))
			read := func(namespace string) {
				annotation := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, corev1alpha2.AnnotationNamespaces, namespace)
				Expect(api.Patch(ctx, secret.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(annotation)))).To(Succeed())
			}
			read(options.namespace)
			Eventually(func() *fleet.Bundle {
				return h.Bundle(fleet.BundleKey{Cluster: edge, Namespace: namespace, Name: b.Name})
			}).Should(BeNil())
			Consistently(s.saved(ctx, edge)).Should(Equal(one), "it is still there")

			By("reading it again after it has gone")
			Expect(api.Delete(ctx, b)).To(Succeed())
			Eventually(s.saved(ctx, home)).Should(BeEmpty())
			Consistently(s.saved(ctx, edge)).Should(Equal(one), "it is not known")
			read(namespace)
			Eventually(s.saved(ctx, edge)).Should(BeEmpty())
		}, SpecTimeout(3*time.Minute))

		It("removes what it has saved of a cluster that is removed, and nothing of another hub's", func(ctx SpecContext) {
			newBundle(ctx, namespace, s.bundle(), s.bundle(), one)
			Eventually(s.saved(ctx, edge)).Should(Equal(one))
			h.stop()

			By("another hub, which does not know the cluster")
			other := options
			other.namespace = newHome(ctx)
			h = run(ctx, other)
			Eventually(h.metric("healthscope_recorder_bundles", "saved")).Should(BeNumerically(">=", 1))
			Consistently(s.saved(ctx, edge)).Should(Equal(one))
			h.stop()

			By("the hub itself")
			h = run(ctx, options)
			Eventually(state).Should(Equal(fleet.Connected))
			Expect(api.Delete(ctx, secret)).To(Succeed())
			Eventually(s.saved(ctx, edge)).Should(BeEmpty())
			Expect(s.saved(ctx, home)()).To(Equal(one))
			h.stop()

			By("removing it while no recorder runs")
			secret = newMember(ctx, options.namespace, namespace)
			h = run(ctx, options)
			Eventually(s.saved(ctx, edge)).Should(Equal(one))
			h.stop()
			Expect(api.Delete(ctx, secret)).To(Succeed())
			run(ctx, options)
			Eventually(s.saved(ctx, edge)).Should(BeEmpty())
		}, SpecTimeout(3*time.Minute))
	})
})
