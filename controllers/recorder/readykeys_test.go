package recorder_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
)

var _ = Describe("The keys of readiness", func() {
	It("say that an app is ready when all that is applied is there and Ready, and are written when they change", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		s := newSite(ctx, home)
		at := "/context/" + s.id + "/app/sink/cluster/" + home + "/"
		put := func(key, value string) {
			GinkgoHelper()
			_, err := raw.Put(ctx, at+key, value)
			Expect(err).NotTo(HaveOccurred())
		}
		put("resource/instruction/order/", `"{\"resorder\":[\"sink+Service\",\"sink+Deployment\",\"cm+ConfigMap\",\"agent+DaemonSet\"]}"`)
		for _, name := range []string{"sink+Service", "sink+Deployment", "cm+ConfigMap", "agent+DaemonSet", "hook+Job"} {
			put("resource/"+name+"/", `"{}"`)
		}
		keys := func() map[string]string {
			all := map[string]string{}
			response, err := raw.Get(ctx, at, clientv3.WithPrefix())
			Expect(err).NotTo(HaveOccurred())
			for _, kv := range response.Kvs {
				if value := string(kv.Value); value == "true" || value == "false" {
					all[string(kv.Key)[len(at):]] = value
				}
			}
			return all
		}
		run(ctx, hubOptions{namespace: newHome(ctx), readyKeys: true})
		service := `"serviceStatuses":[{"metadata":{"name":"sink"},"spec":{"clusterIP":"10.0.0.1"}}]`
		deployment := func(ready string) string {
			return `"deploymentStatuses":[{"metadata":{"name":"sink","generation":1},"spec":{"replicas":1},"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"availableReplicas":` + ready + `,"readyReplicas":` + ready + `}}]`
		}
		daemonSet := `"daemonSetStatuses":[{"metadata":{"name":"agent","generation":1},"status":{"observedGeneration":1,"desiredNumberScheduled":1,"currentNumberScheduled":1,"updatedNumberScheduled":1,"numberAvailable":1,"numberReady":1}}]`
		b := newBundle(ctx, namespace, s.bundle(), s.bundle(), `{`+service+`}`)
		Eventually(keys).Should(Equal(map[string]string{"resourcesready/": "false", "resource/sink+Service/resready/": "true"}), "R13: the Deployment is not there yet")
		fill(ctx, b, `{`+service+`,`+deployment("0")+`,`+daemonSet+`}`)
		Eventually(keys).Should(Equal(map[string]string{
			"resourcesready/": "false", "resource/sink+Service/resready/": "true", "resource/sink+Deployment/resready/": "false", "resource/agent+DaemonSet/resready/": "true",
		}))
		job := `"jobStatuses":[{"metadata":{"name":"hook","annotations":{"helm.sh/hook":"post-install"}},"status":{"conditions":[{"type":"Complete","status":"True"}]}}]`
		fill(ctx, b, `{`+service+`,`+deployment("1")+`,`+daemonSet+`,`+job+`}`)
		ready := map[string]string{
			"resourcesready/": "true", "resource/sink+Service/resready/": "true", "resource/sink+Deployment/resready/": "true", "resource/agent+DaemonSet/resready/": "true", "resource/hook+Job/ressuccess/": "true",
		}
		Eventually(keys).Should(Equal(ready))

		By("writing none that says the same")
		before := revisionOf(ctx, at+"resourcesready/")
		fill(ctx, b, `{"serviceStatuses":[{"metadata":{"name":"sink"},"spec":{"clusterIP":"10.0.0.2"}}],`+deployment("1")+`,`+daemonSet+`,`+job+`}`)
		Eventually(s.saved(ctx, home)).Should(ContainSubstring("10.0.0.2"))
		Expect(revisionOf(ctx, at+"resourcesready/")).To(Equal(before))
		Expect(keys()).To(Equal(ready))
	})
})

func revisionOf(ctx context.Context, key string) int64 {
	GinkgoHelper()
	response, err := raw.Get(ctx, key)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Kvs).To(HaveLen(1))
	return response.Kvs[0].ModRevision
}
