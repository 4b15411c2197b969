package rights

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

var _ = Describe("The rights of monitor and controller", func() {
	It("are, in the default configuration, those that they use, and no others", func(ctx context.Context) {
		Expect(k8s.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(home))).To(Succeed(), "so that they have to be made")
		Expect(k8s.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(corev1alpha2.DefaultClustersNamespace))).To(Succeed(), "so that it has to be made")
		defineOAM(ctx)
		since := time.Now()
		hs := startRelease(ctx, streaming)
		// There are two namespaces because a right that is used in only one namespace need not be granted in all.
		shop, store := deploy(ctx, "shop"), deploy(ctx, "store")
		for _, a := range []application{shop, store} {
			a.hasKinds(ctx, all, defaultKinds...)
			a.is(ctx, "direct", corev1alpha2.Healthy, "4/4")
			a.is(ctx, "single", corev1alpha2.Healthy, "1/1")
			a.deployOAM(ctx)
			a.is(ctx, "oam", corev1alpha2.Healthy, "4/4")
			// A repeated event is not created again: its count is increased.
			for range 2 {
				a.crash(ctx, true)
				a.is(ctx, "single", corev1alpha2.Unhealthy, "0/1")
				a.crash(ctx, false)
				a.is(ctx, "single", corev1alpha2.Healthy, "1/1")
			}
		}

		By("asking for a status and for metrics with a token")
		asks(ctx, hs, shop)

		By("restarting both where lists cannot be streamed, with changes in between")
		Expect(hs.Stop()).To(Succeed())
		shop.crash(ctx, true)
		hs = startRelease(ctx, listing)
		shop.is(ctx, "single", corev1alpha2.Unhealthy, "0/1")
		store.is(ctx, "direct", corev1alpha2.Healthy, "4/4")
		store.is(ctx, "oam", corev1alpha2.Healthy, "4/4")

		By("having a member")
		member, connected := hasAMember(ctx, hs)

		By("letting another monitor write the same bundles")
		for _, a := range []application{shop, store} {
			a.overwrite(ctx, all)
			Eventually(ctx, a.events).Should(ContainElement(all))
		}

		By("changing what that one does not write down")
		shop.crash(ctx, true)
		Eventually(ctx, func() map[string]string {
			b := shop.bundle(all)
			_ = k8s.Get(ctx, client.ObjectKeyFromObject(b), b) // If the request fails, the bundle has no annotations, and Eventually retries.
			return b.Annotations
		}).WithTimeout(2 * time.Minute).Should(HaveKey(k8spluginv1alpha1.AnnotationOutOfDate))

		By("deleting everything")
		Expect(k8s.Delete(ctx, shop.scope("single"))).To(Succeed())
		Expect(k8s.Delete(ctx, shop.bundle(all))).To(Succeed())
		kubectl(ctx, "delete", "namespace", string(shop), string(store))

		By("comparing")
		grants := append(granted(ctx), member...)
		Eventually(func() []string { return Compare(audit(since).Uses, grants) }).Should(BeEmpty())
		Expect(hs.Stop()).To(Succeed())
		// The API server may notice the hub's roles in the member a moment after the hub begins to use its token.
		early := func(u Use) bool { return u.Account == home+"/"+hubAccount }
		Expect(slices.DeleteFunc(audit(since).Refused, early)).To(BeEmpty())
		Expect(audit(connected).Refused).To(BeEmpty())
	}, SpecTimeout(10*time.Minute))
})
