package fleet_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
)

var _ = Describe("Whole bundles", func() {
	It("are read from their clusters, byte for byte, one at a time", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		const status = `{"podStatuses":[{"metadata":{"name":"p"},"spec":{"nodeName":"n"},"status":{"phase":"Running"}}],"ready":true,"resourceCount":1}`
		b := newBundle(ctx, namespace, "1-sink")
		fillRaw(ctx, b, status)
		newBundle(ctx, namespace, "1-source")
		v := look(healthscope.DefaultPolicy()).sync(ctx)
		key := fleet.BundleKey{Cluster: "local", Namespace: namespace, Name: "1-sink"}

		whole, err := v.ReadBundle(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(whole.Status).To(Equal(json.RawMessage(status)))
		Expect(whole.UID).To(Equal(b.UID))
		Expect(whole.Labels).To(Equal(b.Labels))
		Eventually(func() string { return v.Bundle(key).ResourceVersion }).Should(Equal(whole.ResourceVersion))

		key.Name = "1-source"
		whole, err = v.ReadBundle(ctx, key)
		Expect(err).NotTo(HaveOccurred())
		Expect(whole.Status).To(BeEmpty(), "no monitor has reported")

		key.Name = "1-nothing"
		_, err = v.ReadBundle(ctx, key)
		Expect(err).To(MatchError(fleet.ErrGone))
		Expect(err).To(MatchError(ContainSubstring(`cannot read bundle "` + namespace + `/1-nothing" of cluster "local"`)))

		key.Cluster = "elsewhere"
		_, err = v.ReadBundle(ctx, key)
		Expect(err).To(MatchError(ContainSubstring("the cluster has not been read yet, or is not known")))
	})
})
