package rsync_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

const (
	edge01 = "p1+edge01"
	edge02 = "p1+edge02"
)

func enqueue(ctx context.Context, id string, event deploy.Event) {
	GinkgoHelper()
	Expect(rsync.Enqueue(ctx, store, id, event, "", time.Now())).To(Succeed())
}

// wordsOf returns the reason why a resource failed in edge01.
func wordsOf(ctx context.Context, id, app, resource string) string {
	GinkgoHelper()
	h := appcontext.AppInCluster{ContextID: id, App: app, Cluster: edge01}.Handle().Level("resource/" + resource).Level("status")
	words, err := store.Sidecar(ctx, h)
	Expect(err).NotTo(HaveOccurred())
	return words
}

func exists(ctx context.Context, o client.Object, namespace, name string) bool {
	GinkgoHelper()
	err := api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, o)
	if !apierrors.IsNotFound(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	return err == nil
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	return suite.NewNamespace(ctx, api)
}

// listOf returns an empty list of a kind.
func listOf(version, kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(version)
	list.SetKind(kind + "List")
	return list
}

// The faults of EMCO's rsync, and the titles of the specs that show that this rsync does not have them:
//
//	R1  a refused patch is called Applied                 calls nothing applied that was refused
//	R2  an existing CRD fails the instantiation           uses a CRD that exists, and keeps it
//	R3  Deployed holds before anything is applied         begins with an app when all of what it depends on is applied
//	R4  a Ready dependency hangs after an update          begins after an update with an app when what it depends on has become Ready
//	R5  one failure cancels the waits of all others       calls nothing applied that was refused
//	R6  an update deletes before and without applying     deletes nothing of an update that fails, and rolls it back
//	R7  a terminated context can fail to terminate        leaves in etcd what EMCO's rsync leaves there
//	R8  the deletion of an absent object fails            calls nothing applied that was refused
//	    a refused termination succeeds                    does not take an object for deleted whose deletion is refused
//	R9  two workers write one queue                       writes nothing once the lock is lost
//	    an event that is added meanwhile is lost          loses no event of those that are added at the same time
//	R10 a stop leaves wrong states                        ends what it does when it is stopped
//	R11 a failed hook succeeds, or is awaited endlessly   fails with a hook that has failed, or that takes too long
//	R12 the deletion of a bundle is lost at a restart     deletes a bundle after a restart too
//	R13 Ready holds before everything is there            begins with an app when all of what it depends on is there
//	R14 a failure loses the results of others             calls nothing applied that was refused
//	R15 a termination deletes CRDs                        uses a CRD that exists, and keeps it
//	R16 an update leaves resources Pending                leaves what EMCO's rsync leaves, but for resources that stay Pending
var _ = Describe("rsync", func() {
	It("leaves in etcd what EMCO's rsync leaves there, and in the cluster what the context says", func(ctx SpecContext) {
		put(ctx, recorded("created.tsv", "1001"))
		start(newNetwork())
		begin := now(ctx)
		instantiate(ctx, "1001")
		Expect(stored(ctx, "1001")).To(Equal(recorded("instantiated.tsv", "1001")))
		Expect(sequences(changesSince(ctx, begin, "1001"))).To(Equal(sequences(recordedChanges("install.events.tsv", "1001"))), "each key has the values of EMCO's, one after the other")

		web, bundle := &appsv1.Deployment{}, &k8spluginv1alpha1.ResourceBundleState{}
		Expect(exists(ctx, web, "default", "web")).To(BeTrue())
		Expect(web.Labels).To(HaveKeyWithValue("emco/deployment-id", "1001-web"))
		Expect(web.Spec.Template.Labels).To(HaveKeyWithValue("emco/deployment-id", "1001-web"))
		Expect(exists(ctx, bundle, "default", "1001-web")).To(BeTrue())
		Expect(bundle.Spec.Selector.MatchLabels).To(Equal(map[string]string{"emco/deployment-id": "1001-web"}))

		terminate(ctx, "1001")
		Expect(stored(ctx, "1001")).To(Equal(recorded("terminated.tsv", "1001")))
		Expect(exists(ctx, web, "default", "web")).To(BeFalse())
		Expect(exists(ctx, bundle, "default", "1001-web")).To(BeFalse())

		By("terminating a terminated context (R7)")
		Expect(rsync.Enqueue(ctx, store, "1001", deploy.EventTerminate, "", time.Now())).To(MatchError(ContainSubstring(`is not possible in state "Terminated"`)))
		Expect(stateOf(ctx, "1001")).To(Equal(state("Terminated")))
	})

	It("leaves in etcd what EMCO's rsync leaves there when a cluster refuses, and after the termination", func(ctx SpecContext) {
		put(ctx, recorded("refused.created.tsv", "1030"))
		start(newNetwork())
		ends(ctx, "1030", deploy.EventInstantiate, "InstantiateFailed")
		// EMCO's rsync leaves an applied resource Pending (R14), and writes Pending for a resource when its turn comes. This rsync
		// writes Pending for all resources when it begins.
		const app, after = "/context/1030/app/", "/resource/bad-after+ConfigMap/"
		want := recorded("refused.failed.tsv", "1030")
		want[app+"good/cluster/p1+edge01/resource/good-svc+Service/status/"] = state("Applied")
		for _, cluster := range []string{edge01, edge02} {
			want[app+"bad/cluster/"+cluster+after+"status/"], want[app+"bad/cluster/"+cluster+after+"reference/"] = state("Pending"), `"1030"`
		}
		Expect(stored(ctx, "1030")).To(Equal(want))
		terminate(ctx, "1030")
		want = recorded("refused.terminated.tsv", "1030")
		for key, value := range want { // R8: an absent object counts as deleted.
			if value == state("Failed") {
				want[key] = state("Deleted")
			}
		}
		Expect(stored(ctx, "1030")).To(Equal(want))
	})

	It("calls nothing applied that was refused, and finishes everything else (R1, R5, R14)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		bad := "apiVersion: v1\nkind: Service\nmetadata:\n  name: bad\nspec:\n  ports:\n  - port: 0\n"
		c := newComposite("1002", namespace, "bad", "changed", "good", "waits").
			add("bad", edge01, "cm+ConfigMap", configMap("cm"), "bad+Service", bad, "after+ConfigMap", configMap("after")).
			add("changed", edge01, "there+Service", strings.Replace(bad, "name: bad", "name: there", 1)).
			add("good", edge02, "good+ConfigMap", configMap("good")).
			add("waits", edge02, "waits+ConfigMap", configMap("waits"))
		c.values["/context/1002/app/waits/instruction/dependency/"] = `"[{\"app\":\"good\",\"opstatus\":\"Deployed\",\"wait\":1}]"`
		put(ctx, c.values)
		there := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		Expect(api.Create(ctx, there)).To(Succeed())
		start(newNetwork())
		ends(ctx, "1002", deploy.EventInstantiate, "InstantiateFailed")
		Expect(statuses(ctx, "1002")).To(Equal(map[string]string{
			"bad/p1+edge01/cm+ConfigMap": "Applied", "bad/p1+edge01/bad+Service": "Failed", "bad/p1+edge01/after+ConfigMap": "Pending", "changed/p1+edge01/there+Service": "Failed",
			"good/p1+edge02/good+ConfigMap": "Applied", "waits/p1+edge02/waits+ConfigMap": "Applied",
		}))
		Expect(wordsOf(ctx, "1002", "bad", "bad+Service")).To(ContainSubstring("spec.ports[0].port"))
		Expect(wordsOf(ctx, "1002", "changed", "there+Service")).To(ContainSubstring("port"), "the change of an object that is there is refused too")
		Expect(exists(ctx, &corev1.Service{}, namespace, "bad")).To(BeFalse())

		By("terminating it: what is absent is deleted (R8)")
		terminate(ctx, "1002")
		Expect(statuses(ctx, "1002")).To(HaveEach("Deleted"))
	})

	It("goes on in other clusters while one gives no answer, and there when it does", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite("1003", namespace, "web").add("web", edge01, "one+ConfigMap", configMap("one")).add("web", edge02, "two+ConfigMap", configMap("two")).values)
		n := newNetwork()
		n.set(true)
		start(n)
		enqueue(ctx, "1003", deploy.EventInstantiate)
		Eventually(stored).WithContext(ctx).WithArguments("1003").Should(And(
			HaveKeyWithValue("/context/1003/app/web/cluster/p1+edge01/resource/one+ConfigMap/status/", state("Applied")),
			HaveKeyWithValue("/context/1003/app/web/cluster/p1+edge02/readystatus/", `"Retrying"`),
			HaveKeyWithValue("/context/1003/status/", state("Instantiating"))))
		Expect(statuses(ctx, "1003")).NotTo(HaveKeyWithValue("web/p1+edge02/two+ConfigMap", "Applied"))
		n.set(false)
		becomes(ctx, "1003", "Instantiated")
		Expect(stored(ctx, "1003")).To(HaveKeyWithValue("/context/1003/app/web/cluster/p1+edge02/readystatus/", `"Available"`))
	})

	It("ends what it does when it is stopped or a termination comes, and does not begin with it again (R10)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		for _, id := range []string{"1004", "1019"} {
			put(ctx, newComposite(id, namespace, "web").add("web", edge02, "two+ConfigMap", configMap("two")).values)
		}
		n := newNetwork()
		sent := n.countPatches(namespace)
		n.set(true)
		start(n)
		enqueue(ctx, "1004", deploy.EventInstantiate)
		Eventually(stateOf).WithContext(ctx).WithArguments("1004").Should(Equal(state("Instantiating") + " active"))
		Expect(rsync.Stop(ctx, store, "1004", time.Now())).To(Succeed())
		becomes(ctx, "1004", "InstantiateFailed")

		enqueue(ctx, "1004", deploy.EventInstantiate)
		Eventually(stateOf).WithContext(ctx).WithArguments("1004").Should(Equal(state("Instantiating") + " active"))
		enqueue(ctx, "1004", deploy.EventTerminate)
		Eventually(stateOf).WithContext(ctx).WithArguments("1004").Should(Equal(state("Terminating") + " active"))
		n.set(false)
		becomes(ctx, "1004", "Terminated")
		Expect(stored(ctx, "1004")).To(HaveKeyWithValue("/context/1004/rsync/AppContextEventQueue/",
			`{"AcQueue":[{"event":"Instantiate","status":"Error"},{"event":"Instantiate","status":"Error"},{"event":"Terminate","status":"Done"}]}`))

		By("terminating a context that was stopped")
		n.set(true)
		enqueue(ctx, "1019", deploy.EventInstantiate)
		Eventually(stateOf).WithContext(ctx).WithArguments("1019").Should(Equal(state("Instantiating") + " active"))
		Expect(rsync.Stop(ctx, store, "1019", time.Now())).To(Succeed())
		enqueue(ctx, "1019", deploy.EventTerminate)
		n.set(false)
		becomes(ctx, "1019", "Terminated")
		Expect(stored(ctx, "1019")).To(HaveKeyWithValue("/context/1019/rsync/AppContextEventQueue/",
			`{"AcQueue":[{"event":"Instantiate","status":"Error"},{"event":"Terminate","status":"Done"}]}`))
		Expect(sent.Load()).To(BeZero(), "nothing is applied when the cluster answers again")
	})

	It("begins with an app when all of what it depends on is there and Ready, and not before (R13)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		service := "apiVersion: v1\nkind: Service\nmetadata:\n  name: db\nspec:\n  ports:\n  - port: 80\n"
		db := "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: db\nspec:\n  selector:\n    matchLabels: {app: db}\n  template:\n    metadata:\n      labels: {app: db}\n    spec:\n      containers:\n      - {name: db, image: example.org/db}\n"
		c := newComposite("1005", namespace, "web", "db").add("db", edge01, "db+Service", service, "db+Deployment", db).
			add("db", edge02, "far+Deployment", strings.Replace(db, "name: db\n", "name: far\n", 1)).add("web", edge01, "web+ConfigMap", configMap("web"))
		c.values["/context/1005/app/web/instruction/dependency/"] = `"[{\"app\":\"db\",\"opStatus\":\"Ready\"}]"`
		put(ctx, c.values)
		n := newNetwork()
		reads := n.count(func(r *http.Request) bool { return r.Method == http.MethodGet && !r.URL.Query().Has("watch") })
		start(n, func(o *rsync.Options) { o.Clock = clocktesting.NewFakeClock(time.Now()) }) // No timer fires: the objects are watched.
		enqueue(ctx, "1005", deploy.EventInstantiate)
		Eventually(statuses).WithContext(ctx).WithArguments("1005").Should(And(
			HaveKeyWithValue("db/p1+edge01/db+Deployment", "Applied"), HaveKeyWithValue("db/p1+edge02/far+Deployment", "Applied")))
		waits := func() (map[string]string, error) {
			return store.ListSidecars(ctx, rsync.WaitReasonHandle("1005", "web"))
		}
		Eventually(waits).Should(HaveKeyWithValue("db", ContainSubstring("cluster p1+edge01: Deployment/db is ")))
		before := reads.Load()
		d := &appsv1.Deployment{}
		Expect(exists(ctx, d, namespace, "db")).To(BeTrue())
		d.Annotations = map[string]string{"note": "another"}
		Expect(api.Update(ctx, d)).To(Succeed())
		Consistently(statuses).WithContext(ctx).WithArguments("1005").Should(HaveKeyWithValue("web/p1+edge01/web+ConfigMap", ""))
		Expect(reads.Load()).To(Equal(before), "the Deployment is as it was")
		becomeReady(ctx, namespace, "db")
		Eventually(waits).Should(HaveKeyWithValue("db", ContainSubstring("cluster p1+edge02: Deployment/far is ")))
		Expect(statuses(ctx, "1005")).To(HaveKeyWithValue("web/p1+edge01/web+ConfigMap", ""))
		becomeReady(ctx, namespace, "far")
		becomes(ctx, "1005", "Instantiated")
		Expect(waits()).To(BeEmpty())
	})

	It("reads each object of what an app depends on with a timeout of its own, as there may be many and the link may be slow", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		c := newComposite("1024", namespace, "web", "db").add("db", edge01, "one+ConfigMap", configMap("one"), "two+ConfigMap", configMap("two")).
			add("web", edge01, "web+ConfigMap", configMap("web"))
		c.values["/context/1024/app/web/instruction/dependency/"] = `"[{\"app\":\"db\",\"opStatus\":\"Ready\"}]"`
		put(ctx, c.values)
		n, deadlines := newNetwork(), make(chan time.Time, 10)
		n.intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if deadline, ok := r.Context().Deadline(); ok && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/configmaps/") {
				deadlines <- deadline
			}
			return next.RoundTrip(r)
		})
		start(n)
		instantiate(ctx, "1024")
		Expect(deadlines).To(HaveLen(2))
		Expect(<-deadlines).To(BeTemporally("<", <-deadlines))
	})

	It("begins with an app when all of what it depends on is applied everywhere, and not before (R3)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		c := newComposite("1017", namespace, "web", "db").add("db", edge01, "one+ConfigMap", configMap("one")).
			add("db", edge02, "two+ConfigMap", configMap("two"), "held+ConfigMap", configMap("held")).add("web", edge01, "web+ConfigMap", configMap("web"))
		c.values["/context/1017/app/web/instruction/dependency/"] = `"[{\"app\":\"db\",\"opStatus\":\"Deployed\"}]"`
		put(ctx, c.values)
		n := newNetwork()
		reached, released := n.hold(http.MethodPatch, "held")
		start(n)
		enqueue(ctx, "1017", deploy.EventInstantiate)
		Eventually(reached).Should(Receive())
		Eventually(statuses).WithContext(ctx).WithArguments("1017").Should(And(
			HaveKeyWithValue("db/p1+edge01/one+ConfigMap", "Applied"), HaveKeyWithValue("db/p1+edge02/two+ConfigMap", "Applied")))
		Consistently(func() bool { return exists(ctx, &corev1.ConfigMap{}, namespace, "web") }).Should(BeFalse())
		close(released)
		becomes(ctx, "1017", "Instantiated")
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "web")).To(BeTrue())
	})

	It("deletes a bundle after a restart too (R12)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite("1018", namespace, "a").add("a", edge01, "cm+ConfigMap", configMap("cm")).values)
		n, bundle := newNetwork(), &k8spluginv1alpha1.ResourceBundleState{}
		reached, _ := n.hold(http.MethodDelete, "1018-a")
		stop := start(n)
		instantiate(ctx, "1018")
		enqueue(ctx, "1018", deploy.EventTerminate)
		Eventually(reached).Should(Receive())
		stop()
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "cm")).To(BeFalse())
		Expect(exists(ctx, bundle, namespace, "1018-a")).To(BeTrue())
		Expect(stateOf(ctx, "1018")).To(Equal(state("Terminating") + " active"))

		start(newNetwork())
		becomes(ctx, "1018", "Terminated")
		Expect(exists(ctx, bundle, namespace, "1018-a")).To(BeFalse())
	})

	It("comes to the same end wherever it is killed", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		made := newComposite("1006", namespace, "a", "b").
			add("a", edge01, "a1+ConfigMap", configMap("a1"), "a2+ConfigMap", configMap("a2")).
			add("b", edge01, "b1+ConfigMap", configMap("b1")).add("b", edge02, "b2+ConfigMap", configMap("b2"))
		made.values["/context/1006/app/b/instruction/dependency/"] = `"[{\"app\":\"a\",\"opstatus\":\"Deployed\"}]"`
		put(ctx, made.values)
		var end values
		for kill := range int64(12) {
			// killed runs a runner that is killed at a step in a cluster, and after it another one.
			killed := func(word string) {
				n, asked, stop := newNetwork(), atomic.Int64{}, make(chan struct{})
				n.asked = func() {
					if asked.Add(1) == kill+1 {
						close(stop)
					}
				}
				end := start(n)
				Eventually(func() bool {
					select {
					case <-stop:
						return true
					default:
						return stateOf(ctx, "1006") == state(word)
					}
				}).Should(BeTrue())
				end()
				end = start(newNetwork())
				becomes(ctx, "1006", word)
				end()
			}
			enqueue(ctx, "1006", deploy.EventInstantiate)
			killed("Instantiated")
			got := stored(ctx, "1006")
			if end == nil {
				end = got
			}
			Expect(got).To(Equal(end), "killed at step %d", kill)
			enqueue(ctx, "1006", deploy.EventTerminate)
			killed("Terminated")
			Expect(statuses(ctx, "1006")).To(HaveEach("Deleted"), "killed at step %d", kill)
			_, err := raw.Delete(ctx, "/context/1006/rsync/AppContextEventQueue/")
			Expect(err).NotTo(HaveOccurred())
			put(ctx, values{"/context/1006/rsync/state/CurrentState/": state("Created")})
		}
	})

	It("writes nothing once the lock is lost (R9)", func(ctx SpecContext) {
		put(ctx, newComposite("1007", "default", "a").values)
		lock, err := store.Lock(ctx, "rsync")
		Expect(err).NotTo(HaveOccurred())
		write := []appcontext.Write{{Handle: appcontext.ContextHandle("1007").Level("status"), Value: "x"}}
		Expect(store.WriteLevels(ctx, "1007", write, appcontext.Condition{Lock: lock})).To(Succeed())
		Expect(lock.Release()).To(Succeed())
		write[0].Value = "y"
		Expect(store.WriteLevels(ctx, "1007", write, appcontext.Condition{Lock: lock})).To(MatchError(appcontext.ErrConflict))
		Expect(stored(ctx, "1007")).To(HaveKeyWithValue("/context/1007/status/", `"x"`))
	})

	It("learns at once that the lock is lost, and whether the holder before has released it", func(ctx SpecContext) {
		first, err := store.Lock(ctx, "lost")
		Expect(err).NotTo(HaveOccurred())
		Expect(first.Abandoned).To(BeFalse())
		locks, err := raw.Get(ctx, "/healthscope/lock/lost/", clientv3.WithPrefix())
		Expect(err).NotTo(HaveOccurred())
		Expect(locks.Kvs).To(HaveLen(1))
		_, err = raw.Revoke(ctx, clientv3.LeaseID(locks.Kvs[0].Lease))
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, first.Lost()).WithTimeout(time.Second).Should(BeClosed(), "long before its next renewal")
		for _, abandoned := range []bool{true, false} {
			next, err := store.Lock(ctx, "lost")
			Expect(err).NotTo(HaveOccurred())
			Expect(next.Abandoned).To(Equal(abandoned))
			Expect(next.Release()).To(Succeed())
			Eventually(ctx, next.Lost()).Should(BeClosed())
		}
		_ = first.Release() // It has nothing to release.
	})

	It("uses a CRD that exists, and keeps it (R2, R15)", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		crd := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.org"},"spec":{"group":"example.org","scope":"Namespaced","names":{"kind":"Thing","plural":"things"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
		thing := `{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"thing"}}`
		start(newNetwork())
		theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Thing"}}
		theirs.SetNamespace(namespace)
		theirs.SetName("theirs")
		for _, id := range []string{"1008", "1009"} {
			put(ctx, newComposite(id, namespace, "a").add("a", edge01, "thing+Thing", thing, "things.example.org+CustomResourceDefinition", crd).values)
			instantiate(ctx, id)
			if id == "1008" {
				Expect(api.Create(ctx, theirs)).To(Succeed())
			}
			terminate(ctx, id)
			Expect(statuses(ctx, id)).To(Equal(map[string]string{"a/p1+edge01/things.example.org+CustomResourceDefinition": "Applied", "a/p1+edge01/thing+Thing": "Deleted"}))
			have := theirs.DeepCopy()
			Expect(exists(ctx, have, namespace, "theirs")).To(BeTrue(), "the custom resources of others stay")
			Expect(have.GetUID()).To(Equal(theirs.GetUID()))
		}
	})

	It("takes objects for deleted whose CRD was deleted, but not those of a version that is not served any more", func(ctx SpecContext) {
		define := func(plural string) *unstructured.Unstructured {
			crd := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"`+plural+`.gone.example.org"},"spec":{"group":"gone.example.org","scope":"Namespaced","names":{"kind":"`+plural+`","plural":"`+plural+`"},"versions":[
				{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`), &crd.Object)).To(Succeed())
			return crd
		}
		namespace := newNamespace(ctx)
		n := newNetwork()
		stop := start(n)
		for id, plural := range map[string]string{"1013": "firsts", "1014": "seconds", "1015": "thirds"} {
			Expect(api.Create(ctx, define(plural))).To(Succeed())
			Eventually(func() error { return api.List(ctx, listOf("gone.example.org/v1", plural)) }).WithContext(ctx).Should(Succeed())
			object := `{"apiVersion":"gone.example.org/v1","kind":"` + plural + `","metadata":{"name":"o"}}`
			put(ctx, newComposite(id, namespace, "a").add("a", edge01, "o+"+plural, object).values)
			instantiate(ctx, id)
		}
		Expect(api.Patch(ctx, define("thirds"), client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)))).To(Succeed())
		for _, plural := range []string{"firsts", "seconds"} {
			Expect(api.Delete(ctx, define(plural))).To(Succeed())
		}
		Eventually(func() error { return api.List(ctx, listOf("gone.example.org/v1", "thirds")) }).WithContext(ctx).ShouldNot(Succeed())
		Eventually(func() error { return api.List(ctx, listOf("gone.example.org/v2", "seconds")) }).WithContext(ctx).ShouldNot(Succeed())

		By("terminating with the program that knows the kind")
		terminate(ctx, "1013")
		By("terminating with one that does not")
		stop()
		Expect(rsync.PreviewTermination(ctx, planOf(ctx, "1014"), n.Access)).To(ConsistOf(HaveField("Action", rsync.PreviewUnchanged)))
		start(n)
		terminate(ctx, "1014")
		Expect(statuses(ctx, "1014")).To(HaveEach("Deleted"))
		ends(ctx, "1015", deploy.EventTerminate, "TerminateFailed")
		Expect(statuses(ctx, "1015")).To(HaveEach("Failed"))
	})

	It("has nothing to delete of a kind that the core group does not have, but only when the API server says so", func(ctx SpecContext) {
		put(ctx, newComposite("1025", newNamespace(ctx), "a").add("a", edge01, "d+Deployment", "apiVersion: v1\nkind: Deployment\nmetadata: {name: d}\n").values)
		n, isServer := newNetwork(), atomic.Bool{}
		isServer.Store(true)
		n.intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.URL.Path == "/api/v1" && !isServer.Load() {
				return refusal(r, metav1.Status{Code: http.StatusNotFound}), nil
			}
			return next.RoundTrip(r)
		})
		start(n)
		ends(ctx, "1025", deploy.EventInstantiate, "InstantiateFailed")
		isServer.Store(false)
		enqueue(ctx, "1025", deploy.EventTerminate)
		Eventually(wordsOf).WithContext(ctx).WithArguments("1025", "a", "d+Deployment").Should(ContainSubstring("it is not that of an API server"))
		isServer.Store(true)
		becomes(ctx, "1025", "Terminated")
	})

	It("refuses what a context may not have, and then has nothing of it to delete", func(ctx SpecContext) {
		namespace, far := newNamespace(ctx), newNamespace(ctx)
		theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: far, Name: "theirs", Labels: map[string]string{"emco/deployment-id": "1016-elsewhere"}}}
		Expect(api.Create(ctx, theirs)).To(Succeed())
		refused := map[string][2]string{
			"elsewhere": {"theirs+ConfigMap", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: " + far + "}\n"},
			"nowhere":   {"r+ClusterRole", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n"},
			"broken":    {"broken+ConfigMap", "{"},
			"nameless":  {"nameless+ConfigMap", "apiVersion: v1\nkind: ConfigMap\n"},
			"slashed":   {"slashed+ConfigMap", configMap("a/b")},
		}
		apps := slices.Sorted(maps.Keys(refused))
		c := newComposite("1016", namespace, append(apps, "good")...).add("good", edge01, "good+ConfigMap", configMap("good"))
		want := map[string]string{"good/p1+edge01/good+ConfigMap": "Applied"}
		for _, app := range apps {
			c.add(app, edge01, refused[app][0], refused[app][1])
			want[app+"/p1+edge01/"+refused[app][0]] = "Failed"
		}
		c.values["/context/1016/meta/"] = `{"Namespace":"` + namespace + `","Level":"1"}`
		put(ctx, c.values)
		n := newNetwork()
		start(n)
		ends(ctx, "1016", deploy.EventInstantiate, "InstantiateFailed")
		Expect(statuses(ctx, "1016")).To(Equal(want))
		Expect(wordsOf(ctx, "1016", "slashed", "slashed+ConfigMap")).To(ContainSubstring(`metadata.name "a/b"`))

		Expect(rsync.PreviewTermination(ctx, planOf(ctx, "1016"), n.Access)).To(HaveEach(HaveField("Action", BeElementOf(rsync.PreviewUnchanged, rsync.PreviewDelete))))
		terminate(ctx, "1016")
		Expect(statuses(ctx, "1016")).To(HaveEach("Deleted"))
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "good")).To(BeFalse())
		Expect(exists(ctx, theirs, far, "theirs")).To(BeTrue())
	})

	DescribeTable("does not take an object for deleted whose deletion is refused (R8)", func(ctx SpecContext, id string, answer metav1.Status) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite(id, namespace, "a").add("a", edge01, "there+ConfigMap", configMap("there")).values)
		n := newNetwork()
		stop := start(n)
		instantiate(ctx, id)
		stop()
		n.answer(answer)
		start(n)
		ends(ctx, id, deploy.EventTerminate, "TerminateFailed")
		Expect(statuses(ctx, id)).To(HaveEach("Failed"))
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "there")).To(BeTrue())
	},
		Entry("because its path is not served", "1011", metav1.Status{Code: http.StatusNotFound}),
		Entry("because it is forbidden", "1022", metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no"}),
	)

	It("waits for a cluster that does not know who it is, as when a token is renewed", func(ctx SpecContext) {
		put(ctx, newComposite("1012", newNamespace(ctx), "a").add("a", edge01, "cm+ConfigMap", configMap("cm")).values)
		n := newNetwork()
		healed := n.answer(metav1.Status{Code: http.StatusUnauthorized, Reason: metav1.StatusReasonUnauthorized})
		start(n)
		enqueue(ctx, "1012", deploy.EventInstantiate)
		Eventually(statuses).WithContext(ctx).WithArguments("1012").Should(HaveEach("Retrying"))
		healed.Store(true)
		becomes(ctx, "1012", "Instantiated")
	})

	It("deletes nothing that has taken the place of its object meanwhile", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite("1023", namespace, "a").add("a", edge01, "cm+ConfigMap", configMap("cm")).values)
		n := newNetwork()
		reached, released := n.hold(http.MethodDelete, "cm")
		start(n)
		instantiate(ctx, "1023")
		enqueue(ctx, "1023", deploy.EventTerminate)
		Eventually(reached).Should(Receive(), "it was read")
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cm"}}
		Expect(api.Delete(ctx, other)).To(Succeed())
		Expect(api.Create(ctx, other)).To(Succeed())
		close(released)
		becomes(ctx, "1023", "Terminated")
		have := &corev1.ConfigMap{}
		Expect(exists(ctx, have, namespace, "cm")).To(BeTrue())
		Expect(have.UID).To(Equal(other.UID))
	})

	It("deletes nothing that is not of its app", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite("1010", namespace, "a").add("a", edge01, "mine+ConfigMap", configMap("mine"), "taken+ConfigMap", configMap("taken")).values)
		start(newNetwork())
		instantiate(ctx, "1010")
		taken := &corev1.ConfigMap{}
		Expect(exists(ctx, taken, namespace, "taken")).To(BeTrue())
		taken.Labels = map[string]string{"emco/deployment-id": "7-other"}
		Expect(api.Update(ctx, taken)).To(Succeed())
		terminate(ctx, "1010")
		Expect(exists(ctx, taken, namespace, "mine")).To(BeFalse())
		Expect(exists(ctx, taken, namespace, "taken")).To(BeTrue())
	})

	It("removes a context that is gone from the active ones", func(ctx SpecContext) {
		active := values{"/activecontext/1098/": `"1098"`, "/healthscope/activecontext/1098/": `""`}
		put(ctx, active)
		start(newNetwork())
		for key := range active {
			Eventually(func() (int64, error) {
				response, err := raw.Get(ctx, key, clientv3.WithCountOnly())
				return response.Count, err
			}).Should(BeZero(), key)
		}
	})
})
