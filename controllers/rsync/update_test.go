package rsync_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// update adds an update of a context to another one, or a rollback.
func update(ctx context.Context, from, to string) {
	GinkgoHelper()
	Expect(rsync.Enqueue(ctx, store, to, deploy.EventUpdate, from, time.Now())).To(Succeed())
}

// recordedUpdate reads a recording of the values that EMCO's rsync leaves of a context and of the one that it was updated to, and
// replaces their ids.
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

// both returns the keys and values of two contexts that EMCO knows.
func both(ctx context.Context, from, to string) values {
	GinkgoHelper()
	all := stored(ctx, from)
	maps.Copy(all, stored(ctx, to))
	return all
}

// dataOf returns the value in a ConfigMap; "absent" when the ConfigMap does not exist.
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
		begin := now(ctx)
		instantiate(ctx, from)

		// EMCO's rsync leaves the resources of the second context Pending. This rsync keeps the states of resources in the status
		// context only.
		want := func(name string) values {
			all := recordedUpdate(name, from, to)
			maps.DeleteFunc(all, func(key, value string) bool {
				return strings.HasPrefix(key, "/context/"+to+"/app/") && value == state("Pending")
			})
			return all
		}
		update(ctx, from, to)
		becomes(ctx, from, "Updated")
		Expect(both(ctx, from, to)).To(Equal(want("update.updated.tsv")))
		Expect(dataOf(ctx, "default", "u-changed")).To(Equal("new"))
		Expect(dataOf(ctx, "default", "u-added")).To(Equal("v"))
		Expect(dataOf(ctx, "default", "u-removed")).To(Equal("absent"))

		terminate(ctx, to)
		Expect(both(ctx, from, to)).To(Equal(want("update.terminated.tsv")))
		for _, name := range []string{"u-same", "u-changed", "u-added"} {
			Expect(dataOf(ctx, "default", name)).To(Equal("absent"))
		}
		Expect(exists(ctx, &k8spluginv1alpha1.ResourceBundleState{}, "default", from+"-web")).To(BeFalse())

		// EMCO's rsync updates and deletes at the same time, so that the reference of a cluster goes back and forth (R16). This
		// rsync deletes after everything is applied (R6), and writes Pending before it deletes.
		ours, theirs := changesSince(ctx, begin, from, to), sequences(recordedChanges("update.events.tsv", from, to))
		for key, sequence := range theirs {
			switch i := slices.Index(sequence, state("Deleted")); {
			case strings.HasPrefix(key, "/context/"+to+"/app/") && strings.HasSuffix(key, "/status/"):
				delete(theirs, key)
			case i > 0:
				theirs[key] = slices.Insert(sequence, i, state("Pending"))
			case strings.HasSuffix(key, edge01+"/reference/"), strings.HasSuffix(key, edge02+"/reference/"):
				theirs[key] = []string{strconv.Quote(from), strconv.Quote(to)}
			}
		}
		Expect(sequences(ours)).To(Equal(theirs))
		Expect(first(ours, "/context/"+from+"/", "UpdateDelete")).To(BeNumerically(">", last(ours, "Applied")))
		Expect(first(ours, "u-removed", "Deleted")).To(BeNumerically(">", first(ours, "/context/"+to+"/", `"Update"`, "Done")))
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
		instantiate(ctx, from)
		data := func() map[string]string {
			all := map[string]string{}
			for _, name := range []string{"same", "changed", "removed", "gone", "added"} {
				all[name] = dataOf(ctx, namespace, name)
			}
			return all
		}

		update(ctx, from, to)
		becomes(ctx, to, "InstantiateFailed")
		Expect(stateOf(ctx, from)).To(Equal(state("Instantiated")))
		Expect(data()).To(Equal(map[string]string{"same": "v1", "changed": "v2", "removed": "v1", "gone": "v1", "added": "v2"}))
		Expect(wordsOf(ctx, from, "a", "bad+Service")).To(ContainSubstring("spec.ports[0].port"))

		update(ctx, to, from)
		becomes(ctx, to, "Updated")
		Expect(stateOf(ctx, from)).To(Equal(state("Instantiated")))
		Expect(data()).To(Equal(map[string]string{"same": "v1", "changed": "v1", "removed": "v1", "gone": "v1", "added": "absent"}))

		By("updating to one without an app: its bundle goes")
		const last = "1205"
		c := newComposite(last, namespace, "a", "b").add("a", edge01, "same+ConfigMap", with("same", "1")).add("b", edge01, "b+ConfigMap", with("b", "3"))
		c.values["/context/"+last+"/app/b/instruction/dependency/"] = `"[{\"app\":\"a\",\"opstatus\":\"Ready\"}]"`
		put(ctx, c.values)
		bundle := &k8spluginv1alpha1.ResourceBundleState{}
		Expect(exists(ctx, bundle, namespace, from+"-gone")).To(BeTrue())
		update(ctx, from, last)
		becomes(ctx, from, "Updated")
		Expect(stateOf(ctx, last)).To(Equal(state("Instantiated")))
		Expect(data()).To(Equal(map[string]string{"same": "v1", "changed": "absent", "removed": "absent", "gone": "absent", "added": "absent"}))
		Expect(exists(ctx, bundle, namespace, from+"-gone")).To(BeFalse())
		Expect(exists(ctx, bundle, namespace, from+"-a")).To(BeTrue())
		Expect(stored(ctx, from)).To(HaveKeyWithValue("/context/"+from+"/app/b/cluster/p1+edge01/resource/b+ConfigMap/", `"nil"`))
	})

	It("begins after an update with an app when what it depends on has become Ready since, and not before (R4)", func(ctx SpecContext) {
		const from, to = "1217", "1218"
		namespace := newNamespace(ctx)
		for id, value := range map[string]string{from: "1", to: "2"} {
			d := "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\nspec:\n  selector:\n    matchLabels: {app: a}\n  template:\n    metadata:\n      labels: {app: a}\n    spec:\n      containers:\n      - {name: a, image: 'example.org/a:" + value + "'}\n"
			c := newComposite(id, namespace, "a", "b").add("a", edge01, "a+Deployment", d).add("b", edge01, "b+ConfigMap", with("b", value))
			c.values["/context/"+id+"/app/b/instruction/dependency/"] = `"[{\"app\":\"a\",\"opstatus\":\"Ready\"}]"`
			put(ctx, c.values)
		}
		n := newNetwork()
		n.intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) { // The member may not grant the right to watch a kind.
			if r.URL.Query().Has("watch") {
				return refusal(r, metav1.Status{Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}), nil
			}
			return next.RoundTrip(r)
		})
		start(n)
		applied := func(by string) {
			GinkgoHelper()
			Eventually(stored).WithContext(ctx).WithArguments(from).Should(And(
				HaveKeyWithValue("/context/"+from+"/app/a/cluster/"+edge01+"/resource/a+Deployment/reference/", strconv.Quote(by)),
				HaveKeyWithValue("/context/"+from+"/app/a/cluster/"+edge01+"/resource/a+Deployment/status/", state("Applied"))))
		}
		enqueue(ctx, from, deploy.EventInstantiate)
		applied(from)
		becomeReady(ctx, namespace, "a")
		becomes(ctx, from, "Instantiated")

		update(ctx, from, to)
		applied(to)
		Consistently(dataOf).WithContext(ctx).WithArguments(namespace, "b").Should(Equal("v1"))
		becomeReady(ctx, namespace, "a")
		becomes(ctx, to, "Instantiated")
		Expect(dataOf(ctx, namespace, "b")).To(Equal("v2"))
	})

	It("deletes nothing that an update after the next one brings back, whichever comes when", func(ctx SpecContext) {
		const first, second, third = "1206", "1207", "1208"
		namespace := newNamespace(ctx)
		put(ctx, newComposite(first, namespace, "a").add("a", edge01, "back+ConfigMap", with("back", "1"), "same+ConfigMap", with("same", "1")).values)
		put(ctx, newComposite(second, namespace, "a").add("a", edge01, "same+ConfigMap", with("same", "1"), "only+ConfigMap", with("only", "2")).values)
		put(ctx, newComposite(third, namespace, "a").add("a", edge01, "same+ConfigMap", with("same", "1"), "back+ConfigMap", with("back", "1")).values)
		stop := start(newNetwork())
		instantiate(ctx, first)
		stop()
		update(ctx, first, second)
		update(ctx, second, third)
		start(newNetwork())
		for id, word := range map[string]string{first: "Updated", second: "Updated", third: "Instantiated"} {
			becomes(ctx, id, word)
		}
		for name, want := range map[string]string{"back": "v1", "same": "v1", "only": "absent"} {
			Expect(dataOf(ctx, namespace, name)).To(Equal(want), name)
		}
		Expect(statuses(ctx, first)).To(Equal(map[string]string{
			"a/p1+edge01/back+ConfigMap": "Applied", "a/p1+edge01/same+ConfigMap": "Applied", "a/p1+edge01/only+ConfigMap": "Deleted",
		}))
	})

	// failing makes an update that fails and leaves resources of both contexts.
	failing := func(ctx context.Context, from, to string) (namespace string) {
		GinkgoHelper()
		namespace = newNamespace(ctx)
		bad := "apiVersion: v1\nkind: Service\nmetadata:\n  name: bad\nspec:\n  ports:\n  - port: 0\n"
		put(ctx, newComposite(from, namespace, "a").add("a", edge01, "old+ConfigMap", with("old", "1"), "same+ConfigMap", with("same", "1")).values)
		put(ctx, newComposite(to, namespace, "a").add("a", edge01, "added+ConfigMap", with("added", "2"), "same+ConfigMap", with("same", "1"), "bad+Service", bad).values)
		start(newNetwork())
		instantiate(ctx, from)
		update(ctx, from, to)
		becomes(ctx, to, "InstantiateFailed")
		return namespace
	}

	It("begins with the event that comes first, whichever it finds first when it is started", func(ctx SpecContext) {
		const from, to = "1219", "1220"
		namespace := newNamespace(ctx)
		put(ctx, newComposite(from, namespace, "a").add("a", edge01, "one+ConfigMap", with("one", "1"), "two+ConfigMap", with("two", "1"), "three+ConfigMap", with("three", "1")).values)
		put(ctx, newComposite(to, namespace, "a").add("a", edge01, "one+ConfigMap", with("one", "2")).values)
		stop := start(newNetwork())
		update(ctx, from, to)
		becomes(ctx, to, "Instantiated")
		stop()
		enqueue(ctx, to, deploy.EventTerminate)
		enqueue(ctx, from, deploy.EventInstantiate)
		start(newNetwork())
		becomes(ctx, to, "Terminated")
		Eventually(stateOf).WithContext(ctx).WithArguments(from).ShouldNot(HaveSuffix("active"))
		Expect(stateOf(ctx, from)).To(Equal(state("Instantiated")))
	})

	It("terminates what an update was to replace with the context that was to replace it", func(ctx SpecContext) {
		const from, to = "1209", "1210"
		namespace := failing(ctx, from, to)
		enqueue(ctx, to, deploy.EventTerminate)
		for _, id := range []string{from, to} {
			becomes(ctx, id, "Terminated")
		}
		for _, name := range []string{"old", "same", "added"} {
			Expect(dataOf(ctx, namespace, name)).To(Equal("absent"), name)
		}
	})

	It("deletes what an update that failed has left with the next one that succeeds", func(ctx SpecContext) {
		const from, to, last = "1211", "1212", "1213"
		namespace := failing(ctx, from, to)
		put(ctx, newComposite(last, namespace, "a").add("a", edge01, "same+ConfigMap", with("same", "1")).values)
		update(ctx, from, last)
		for id, word := range map[string]string{from: "Updated", to: "Updated", last: "Instantiated"} {
			becomes(ctx, id, word)
		}
		for name, want := range map[string]string{"old": "absent", "same": "v1", "added": "absent"} {
			Expect(dataOf(ctx, namespace, name)).To(Equal(want), name)
		}
	})

	It("lets a stop and a termination wait for no other context of the deployment", func(ctx SpecContext) {
		const from, to, last = "1214", "1215", "1216"
		namespace := newNamespace(ctx)
		put(ctx, newComposite(from, namespace, "a").add("a", edge01, "old+ConfigMap", with("old", "1")).add("a", edge02, "gone+ConfigMap", with("gone", "1")).values)
		put(ctx, newComposite(to, namespace, "a").add("a", edge01, "new+ConfigMap", with("new", "2")).values)
		put(ctx, newComposite(last, namespace, "a").add("a", edge01, "new+ConfigMap", with("new", "3")).values)
		n, clock := newNetwork(), clocktesting.NewFakeClock(time.Now())
		start(n, func(o *rsync.Options) { o.Clock = clock })
		instantiate(ctx, from)
		n.set(true) // The update has nothing to do in edge02 but to delete.
		update(ctx, from, to)
		becomes(ctx, to, "Instantiated")
		Eventually(stateOf).WithContext(ctx).WithArguments(from).Should(Equal(state("Updating") + " active"))

		update(ctx, to, last)
		Expect(stateOf(ctx, last)).To(Equal(state("Created") + " active"))
		Expect(rsync.Stop(ctx, store, last, time.Now())).To(Succeed())
		Expect(stateOf(ctx, last)).To(Equal(state("InstantiateFailed")))
		Expect(stateOf(ctx, from)).To(Equal(state("Updating") + " active"))

		enqueue(ctx, to, deploy.EventTerminate)
		Eventually(stateOf, "2s").WithContext(ctx).WithArguments(to).Should(ContainSubstring("Terminat"))
		becomes(ctx, to, "Terminated")
		Expect(stateOf(ctx, from)).To(Equal(state("UpdatedFailed")))
		Expect(statuses(ctx, from)).To(HaveKeyWithValue("a/p1+edge02/gone+ConfigMap", Or(Equal("Pending"), Equal("Retrying"))))

		By("deleting later what the update had left to delete")
		n.set(false)
		Eventually(func() string {
			clock.Step(time.Minute)
			return stateOf(ctx, from)
		}).Should(Equal(state("Updated")))
		Expect(dataOf(ctx, namespace, "gone")).To(Equal("absent"))
	})
})
