package rsync_test

import (
	"context"
	"maps"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// update adds an update of a context to another one, or a rollback.
func update(ctx context.Context, from, to string) {
	GinkgoHelper()
	Expect(rsync.Enqueue(ctx, store, to, deploy.EventUpdate, from, time.Now())).To(Succeed())
}

// recordedUpdate reads what EMCO's rsync left behind of a context and the one that it was updated to, under other ids.
func recordedUpdate(name, from, to string) values {
	GinkgoHelper()
	all := values{}
	for key, value := range recorded(name, from) {
		all[strings.ReplaceAll(key, "/43/", "/"+to+"/")] = strings.ReplaceAll(value, `"43"`, `"`+to+`"`)
	}
	return all
}

// isOfRsync reports whether rsync writes a key.
func isOfRsync(key, _ string) bool {
	for _, part := range []string{"/rsync/", "/status/", "/reference/", "/readystatus/", "/stopflag/"} {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

// both returns what EMCO would see of two contexts.
func both(ctx context.Context, from, to string) values {
	GinkgoHelper()
	all := stored(ctx, from)
	maps.Copy(all, stored(ctx, to))
	return all
}

// dataOf returns what is in a ConfigMap, or that it is not there.
func dataOf(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	c := &corev1.ConfigMap{}
	if !exists(ctx, c, namespace, name) {
		return "absent"
	}
	return c.Data["k"]
}

// with is a ConfigMap with a value: "1" becomes v1.
func with(name, value string) string {
	return strings.Replace(configMap(name), "k: v", "k: v"+value, 1)
}

var _ = Describe("rsync and updates", func() {
	It("leaves what EMCO's rsync leaves, but for resources that stay Pending (R16)", func(ctx SpecContext) {
		const from, to = "1201", "1202"
		created := recordedUpdate("update.created.tsv", from, to)
		maps.DeleteFunc(created, isOfRsync)
		put(ctx, created)
		start(newNetwork())
		enqueue(ctx, from, deploy.EventInstantiate)
		Eventually(stateOf).WithContext(ctx).WithArguments(from).Should(Equal(state("Instantiated")))

		// EMCO's leaves them Pending. Ours keeps the states of resources in one place.
		want := func(name string) values {
			all := recordedUpdate(name, from, to)
			maps.DeleteFunc(all, func(key, value string) bool {
				return strings.HasPrefix(key, "/context/"+to+"/app/") && value == state("Pending")
			})
			return all
		}
		update(ctx, from, to)
		Eventually(stateOf).WithContext(ctx).WithArguments(from).Should(Equal(state("Updated")))
		Expect(both(ctx, from, to)).To(Equal(want("update.updated.tsv")))
		Expect(dataOf(ctx, "default", "u-changed")).To(Equal("new"))
		Expect(dataOf(ctx, "default", "u-added")).To(Equal("v"))
		Expect(dataOf(ctx, "default", "u-removed")).To(Equal("absent"))

		enqueue(ctx, to, deploy.EventTerminate)
		Eventually(stateOf).WithContext(ctx).WithArguments(to).Should(Equal(state("Terminated")))
		Expect(both(ctx, from, to)).To(Equal(want("update.terminated.tsv")))
		for _, name := range []string{"u-same", "u-changed", "u-added"} {
			Expect(dataOf(ctx, "default", name)).To(Equal("absent"))
		}
		Expect(exists(ctx, &k8spluginv1alpha1.ResourceBundleState{}, "default", from+"-web")).To(BeFalse())
	})

	It("deletes nothing of an update that fails (R6), and rolls it back", func(ctx SpecContext) {
		const from, to = "1203", "1204"
		namespace := newNamespace(ctx)
		bad := "apiVersion: v1\nkind: Service\nmetadata:\n  name: bad\nspec:\n  ports:\n  - port: 0\n"
		put(ctx, newComposite(from, namespace, "a", "gone").
			add("a", edge01, "same+ConfigMap", with("same", "1"), "changed+ConfigMap", with("changed", "1"), "removed+ConfigMap", with("removed", "1")).
			add("gone", edge02, "gone+ConfigMap", with("gone", "1")).values)
		put(ctx, newComposite(to, namespace, "a").
			add("a", edge01, "same+ConfigMap", with("same", "1"), "changed+ConfigMap", with("changed", "2"), "added+ConfigMap", with("added", "2"), "bad+Service", bad).values)
		start(newNetwork())
		enqueue(ctx, from, deploy.EventInstantiate)
		Eventually(stateOf).WithContext(ctx).WithArguments(from).Should(Equal(state("Instantiated")))
		data := func() map[string]string {
			all := map[string]string{}
			for _, name := range []string{"same", "changed", "removed", "gone", "added"} {
				all[name] = dataOf(ctx, namespace, name)
			}
			return all
		}

		update(ctx, from, to)
		Eventually(stateOf).WithContext(ctx).WithArguments(to).Should(Equal(state("InstantiateFailed")))
		Expect(stateOf(ctx, from)).To(Equal(state("Instantiated")))
		Expect(data()).To(Equal(map[string]string{"same": "v1", "changed": "v2", "removed": "v1", "gone": "v1", "added": "v2"}))
		Expect(wordsOf(ctx, from, "a", "bad+Service")).To(ContainSubstring("spec.ports[0].port"))

		update(ctx, to, from)
		Eventually(stateOf).WithContext(ctx).WithArguments(to).Should(Equal(state("Updated")))
		Expect(stateOf(ctx, from)).To(Equal(state("Instantiated")))
		Expect(data()).To(Equal(map[string]string{"same": "v1", "changed": "v1", "removed": "v1", "gone": "v1", "added": "absent"}))

		By("updating to one without an app: its bundle goes, and an app that depends on another does not hang (R4)")
		const last = "1205"
		c := newComposite(last, namespace, "a", "b").add("a", edge01, "same+ConfigMap", with("same", "1")).add("b", edge01, "b+ConfigMap", with("b", "3"))
		c.values["/context/"+last+"/app/b/instruction/dependency/"] = `"[{\"app\":\"a\",\"opstatus\":\"Ready\"}]"`
		put(ctx, c.values)
		bundle := &k8spluginv1alpha1.ResourceBundleState{}
		Expect(exists(ctx, bundle, namespace, from+"-gone")).To(BeTrue())
		update(ctx, from, last)
		Eventually(stateOf).WithContext(ctx).WithArguments(from).Should(Equal(state("Updated")))
		Expect(stateOf(ctx, last)).To(Equal(state("Instantiated")))
		Expect(data()).To(Equal(map[string]string{"same": "v1", "changed": "absent", "removed": "absent", "gone": "absent", "added": "absent"}))
		Expect(exists(ctx, bundle, namespace, from+"-gone")).To(BeFalse())
		Expect(exists(ctx, bundle, namespace, from+"-a")).To(BeTrue())
		Expect(stored(ctx, from)).To(HaveKeyWithValue("/context/"+from+"/app/b/cluster/p1+edge01/resource/b+ConfigMap/", `"nil"`))
	})
})
