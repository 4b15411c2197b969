package rsync_test

import (
	"fmt"
	"io/fs"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
	"github.com/healthscope/healthscope/healthscope/status"
)

// manifests are files by name.
type manifests map[string]string

func (m manifests) read(name string) ([]byte, error) {
	text, ok := m[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

// shop is a composite app of two applications.
func shop(namespace string) rsync.CompositeApp {
	return rsync.CompositeApp{
		Project: "retail", Name: "shop", Version: "v1", DeploymentIntentGroup: namespace, Namespace: namespace,
		Apps: []rsync.CompositeAppMember{
			{Name: "db", Clusters: []string{edge01}, Manifests: []string{"db.yaml"}},
			{Name: "web", Clusters: []string{edge01, edge02}, Manifests: []string{"web.yaml"}, DependsOn: []rsync.CompositeAppDependency{{App: "db", State: deploy.CriterionDeployed}}},
		},
	}
}

var files = manifests{"db.yaml": "---\n" + configMap("db") + "---\n" + configMap("more"), "web.yaml": configMap("web"), "broken.yaml": "password: hunter2: x\n", "orphans.yaml": strings.Replace(foreground("web"), "Foreground", "Orphan", 1)}

var _ = Describe("A composite app", func() {
	It("becomes a context whose status documents follow what was done", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		id, err := rsync.CreateContext(ctx, store, shop(namespace), files.read, time.Now())
		Expect(err).NotTo(HaveOccurred())
		// document returns the content of the status document of an instance: the actions of users, the state, and the counts of
		// resources by status.
		document := func(instance string) string {
			GinkgoHelper()
			subject := appcontext.GroupRef("retail", "shop", "v1", namespace)
			view, err := store.View(ctx, subject, instance)
			Expect(err).NotTo(HaveOccurred())
			q, err := status.ParseQuery(nil)
			Expect(err).NotTo(HaveOccurred())
			d := status.New(status.Input{Subject: subject, View: view, Contents: status.Decode(view, nil)}, q)
			var actions []string
			for _, a := range d.State.Actions {
				actions = append(actions, a.State)
			}
			return fmt.Sprintf("%v %q %v", actions, d.Status, d.RsyncStatus)
		}
		Expect(document("")).To(Equal(`[Created] "" map[Pending:4]`), "there is no state before rsync has begun")

		By("instantiating and terminating it, while a cluster gives no answer at first")
		n := newNetwork()
		start(n)
		for _, tt := range []struct {
			event              deploy.Event
			end, during, after string
		}{
			{deploy.EventInstantiate, "Instantiated", `[Created Instantiated] "Instantiating" map[Applied:3 Retrying:1]`, `[Created Instantiated] "Instantiated" map[Applied:4]`},
			{deploy.EventTerminate, "Terminated", `[Created Instantiated Terminated] "Terminating" map[Deleted:3 Retrying:1]`, `[Created Instantiated Terminated] "Terminated" map[Deleted:4]`},
		} {
			n.set(true)
			enqueue(ctx, id, tt.event)
			Eventually(document).WithArguments("").Should(Equal(tt.during))
			n.set(false)
			becomes(ctx, id, tt.end)
			Expect(document("")).To(Equal(tt.after))
		}

		By("instantiating it again, as a new context")
		again, err := rsync.CreateContext(ctx, store, shop(namespace), files.read, time.Now())
		Expect(err).NotTo(HaveOccurred())
		instantiate(ctx, again)
		Expect(document("")).To(Equal(`[Created Instantiated Terminated Created Instantiated] "Instantiated" map[Applied:4]`))
		Expect(document(id)).To(HaveSuffix(`"Terminated" map[Deleted:4]`), "the instance before stays as it ended")
	})

	It("corrects what others change when it says so", func(ctx SpecContext) {
		for _, correct := range []bool{false, true} {
			c := shop(newNamespace(ctx))
			c.CorrectDrift = correct
			id, err := rsync.CreateContext(ctx, store, c, files.read, time.Now())
			Expect(err).NotTo(HaveOccurred())
			Expect(planOf(ctx, id).CorrectDrift).To(Equal(correct))
		}
	})

	It("touches its own namespace and those that it names, unless it is an administrator's", func(ctx SpecContext) {
		far := newNamespace(ctx)
		elsewhere := manifests{
			"elsewhere": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, namespace: " + far + "}\n",
			"nowhere":   "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + far + "}\n",
		}
		start(newNetwork())
		instantiated := func(administrator bool, want string, namespaces ...string) string {
			GinkgoHelper()
			c := shop(newNamespace(ctx))
			c.Administrator, c.Namespaces = administrator, namespaces
			c.Apps = []rsync.CompositeAppMember{
				{Name: "a", Clusters: []string{edge01}, Manifests: []string{"elsewhere"}}, {Name: "b", Clusters: []string{edge01}, Manifests: []string{"nowhere"}},
			}
			id, err := rsync.CreateContext(ctx, store, c, elsewhere.read, time.Now())
			Expect(err).NotTo(HaveOccurred())
			ends(ctx, id, deploy.EventInstantiate, want)
			return id
		}
		id := instantiated(false, "InstantiateFailed")
		Expect(wordsOf(ctx, id, "a", "cm+ConfigMap")).To(ContainSubstring(`is in namespace "` + far + `"`))
		Expect(wordsOf(ctx, id, "b", far+"+ClusterRole")).To(ContainSubstring("is of the whole cluster"))
		Expect(exists(ctx, &corev1.ConfigMap{}, far, "cm")).To(BeFalse())
		Expect(exists(ctx, &rbacv1.ClusterRole{}, "", far)).To(BeFalse())

		id = instantiated(false, "InstantiateFailed", far)
		Expect(statuses(ctx, id)).To(Equal(map[string]string{"a/p1+edge01/cm+ConfigMap": "Applied", "b/p1+edge01/" + far + "+ClusterRole": "Failed"}))
		Expect(exists(ctx, &corev1.ConfigMap{}, far, "cm")).To(BeTrue())
		enqueue(ctx, id, deploy.EventTerminate)
		Eventually(exists).WithContext(ctx).WithArguments(&corev1.ConfigMap{}, far, "cm").Should(BeFalse())

		id = instantiated(true, "Instantiated")
		Expect(exists(ctx, &corev1.ConfigMap{}, far, "cm")).To(BeTrue())
		Expect(exists(ctx, &rbacv1.ClusterRole{}, "", far)).To(BeTrue())
		terminate(ctx, id)
		Expect(exists(ctx, &rbacv1.ClusterRole{}, "", far)).To(BeFalse())
	})

	DescribeTable("that is wrong is refused with field and value, and leaves nothing in etcd",
		func(ctx SpecContext, change func(*rsync.CompositeApp), want string) {
			c := shop("wrong")
			change(&c)
			before, err := store.ContextIDs(ctx)
			Expect(err).NotTo(HaveOccurred())
			_, err = rsync.CreateContext(ctx, store, c, files.read, time.Now())
			Expect(err).To(MatchError(ContainSubstring(want)))
			Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
			Expect(store.ContextIDs(ctx)).To(Equal(before))
		},
		Entry("no project", func(c *rsync.CompositeApp) { c.Project = "" }, `project is ""`),
		Entry("a namespace", func(c *rsync.CompositeApp) { c.Namespaces = []string{"shop", "a/b"} }, `namespaces[1] is "a/b": `),
		Entry("no apps", func(c *rsync.CompositeApp) { c.Apps = nil }, `apps is empty`),
		Entry("an app twice", func(c *rsync.CompositeApp) { c.Apps[1].Name = "db" }, `apps[1].name is "db"`),
		Entry("a cluster's name", func(c *rsync.CompositeApp) { c.Apps[0].Clusters[0] = "edge" }, `apps[0].clusters[0] is "edge"`),
		Entry("a file that is not there", func(c *rsync.CompositeApp) { c.Apps[0].Manifests[0] = "x.yaml" }, `apps[0].manifests[0] is "x.yaml": file does not exist`),
		Entry("a file that is not YAML", func(c *rsync.CompositeApp) { c.Apps[0].Manifests[0] = "broken.yaml" }, `apps[0].manifests[0] is "broken.yaml": object 1 is not YAML`),
		Entry("a propagation", func(c *rsync.CompositeApp) { c.Apps[0].Manifests[0] = "orphans.yaml" },
			`apps[0].manifests[0] is "orphans.yaml": ConfigMap "web" has annotation healthscope.core.oam.dev/deletion-propagation "Orphan": it must be Foreground`),
		Entry("a state", func(c *rsync.CompositeApp) { c.Apps[1].DependsOn[0].State = "Up" }, `apps[1].dependsOn[0].state is "Up"`),
		Entry("a circle", func(c *rsync.CompositeApp) {
			c.Apps[0].DependsOn = []rsync.CompositeAppDependency{{App: "web", State: deploy.CriterionReady}}
		}, `apps wait for each other: db → web → db`),
	)
})
