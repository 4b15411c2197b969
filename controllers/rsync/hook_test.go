package rsync_test

import (
	"context"
	"fmt"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// job is a hook in YAML.
func job(name string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: " + name + "\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - {name: hook, image: example.org/hook}\n"
}

// end ends a Job as the Job controller does.
func end(ctx context.Context, job *batchv1.Job, conditions ...batchv1.JobConditionType) error {
	now := metav1.Now()
	job.Status.StartTime = &now
	for _, c := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, Reason: "Test", Message: "the image has no migration", LastTransitionTime: now})
		if c == batchv1.JobComplete {
			job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		}
	}
	return api.Status().Update(ctx, job)
}

// withHook adds an object of a hook to an app in edge01.
func (c *composite) withHook(app string, hook deploy.Hook, name, object string) {
	at := "/context/" + c.id + "/app/" + app + "/cluster/" + edge01 + "/resource/"
	c.values[at+name+"/"] = fmt.Sprintf("%q", object)
	c.values[at+"instruction/dependency/"] = fmt.Sprintf("%q", fmt.Sprintf(`{"resdependency":{%q:[%q]}}`, hook, name))
}

var _ = Describe("rsync and hooks", func() {
	It("runs them when EMCO's rsync does, and leaves the same in etcd", func(ctx SpecContext) {
		put(ctx, recorded("hooks.created.tsv", "1020"))
		start(newNetwork())
		var order []string
		// completed completes Jobs while it waits for a state.
		completed := func(word string) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				jobs := &batchv1.JobList{}
				g.Expect(api.List(ctx, jobs, client.MatchingLabels{"emco/deployment-id": "1020-main"})).To(Succeed())
				for i := range jobs.Items {
					if j := &jobs.Items[i]; j.Status.CompletionTime == nil {
						order = append(order, j.Name)
						g.Expect(end(ctx, j, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)).To(Succeed())
					}
				}
				g.Expect(stateOf(ctx, "1020")).To(Equal(state(word)))
			}).Should(Succeed())
		}
		enqueue(ctx, "1020", deploy.EventInstantiate)
		completed("Instantiated")
		Expect(stored(ctx, "1020")).To(Equal(recorded("hooks.instantiated.tsv", "1020")))
		bundle := &k8spluginv1alpha1.ResourceBundleState{}
		Expect(exists(ctx, bundle, "default", "1020-main")).To(BeTrue())
		Expect(bundle.Labels).NotTo(HaveKey("emco/preinstallHook"))

		enqueue(ctx, "1020", deploy.EventTerminate)
		completed("Terminated")
		Expect(order).To(Equal([]string{"hook-pre-install", "hook-post-install", "hook-pre-delete", "hook-post-delete"}))
		want := recorded("hooks.terminated.tsv", "1020")
		maps.Copy(want, values{ // R15: the CRD stays.
			"/context/1020/app/main/cluster/p1+edge01/resource/widgets.example.invalid+CustomResourceDefinition/status/": state("Applied"),
		})
		Expect(stored(ctx, "1020")).To(Equal(want))
		for _, name := range order {
			Expect(exists(ctx, &batchv1.Job{}, "default", name)).To(BeFalse())
		}
	})

	It("fails with a hook that has failed, or that takes too long, and applies and deletes nothing after it (R11)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		c := newComposite("1021", namespace, "fails", "hangs", "good", "stuck")
		for _, app := range []string{"fails", "hangs"} {
			c.add(app, edge01, app+"+ConfigMap", configMap(app))
			c.withHook(app, deploy.HookPreInstall, app+"+Job", job(app))
		}
		for app, hook := range map[string]string{"good": "keeps", "stuck": "hinders"} {
			c.add(app, edge01, app+"+ConfigMap", configMap(app))
			c.withHook(app, deploy.HookPreDelete, hook+"+Job", job(hook))
		}
		put(ctx, c.values)
		start(newNetwork())
		enqueue(ctx, "1021", deploy.EventInstantiate)
		j := &batchv1.Job{}
		Eventually(func() bool { return exists(ctx, j, namespace, "fails") }).Should(BeTrue())
		Expect(end(ctx, j, batchv1.JobFailureTarget, batchv1.JobFailed)).To(Succeed())
		becomes(ctx, "1021", "InstantiateFailed")
		Expect(wordsOf(ctx, "1021", "fails", "fails+Job")).To(And(ContainSubstring(`hook Job "fails" has failed`), ContainSubstring("the image has no migration")))
		Expect(wordsOf(ctx, "1021", "hangs", "hangs+Job")).To(ContainSubstring("has not done its work within 3s"))
		Expect(statuses(ctx, "1021")).To(Equal(map[string]string{
			"fails/p1+edge01/fails+Job": "Failed", "fails/p1+edge01/fails+ConfigMap": "Pending",
			"hangs/p1+edge01/hangs+Job": "Failed", "hangs/p1+edge01/hangs+ConfigMap": "Pending",
			"good/p1+edge01/good+ConfigMap": "Applied", "good/p1+edge01/keeps+Job": "",
			"stuck/p1+edge01/stuck+ConfigMap": "Applied", "stuck/p1+edge01/hinders+Job": "",
		}))
		bundle := &k8spluginv1alpha1.ResourceBundleState{}
		Expect(exists(ctx, bundle, namespace, "1021-fails")).To(BeTrue())
		Expect(bundle.Labels).To(HaveKeyWithValue("emco/preinstallHook", "true"))

		enqueue(ctx, "1021", deploy.EventTerminate)
		for _, hook := range []string{"keeps", "hinders"} {
			Eventually(func() bool { return exists(ctx, j, namespace, hook) }).Should(BeTrue())
			Expect(end(ctx, j, batchv1.JobFailureTarget, batchv1.JobFailed)).To(Succeed())
		}
		becomes(ctx, "1021", "TerminateFailed")
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "good")).To(BeTrue())
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "stuck")).To(BeTrue())
		Expect(exists(ctx, j, namespace, "fails")).To(BeFalse())

		By("terminating it again after one failed Job was deleted, and the other hook taken out of the context")
		Expect(exists(ctx, j, namespace, "keeps")).To(BeTrue())
		Expect(api.Delete(ctx, j, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		_, err := raw.Delete(ctx, "/context/1021/app/stuck/cluster/"+edge01+"/resource/instruction/dependency/")
		Expect(err).NotTo(HaveOccurred())
		enqueue(ctx, "1021", deploy.EventTerminate)
		Eventually(func() bool { return exists(ctx, j, namespace, "keeps") }).Should(BeTrue())
		Expect(end(ctx, j, batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)).To(Succeed())
		becomes(ctx, "1021", "Terminated")
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "good")).To(BeFalse())
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "stuck")).To(BeFalse())
		Expect(exists(ctx, j, namespace, "hinders")).To(BeTrue())
	})
})
