package commands_test

import (
	"bytes"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/commands"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

var _ = Describe("the recorder of healthscope controller", func() {
	It("saves bundles where healthscope status shows them after the cluster has gone", func(ctx SpecContext) {
		etcd, store := newStore(ctx)
		newGroup(ctx, store, "retail")
		view, err := store.View(ctx, appcontext.GroupRef("retail", "shop", "v1", "autumn"), "")
		Expect(err).NotTo(HaveOccurred())

		namespace := suite.NewNamespace(ctx, api)
		name := view.ContextID + "-web"
		b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: name},
		}}
		Expect(api.Create(ctx, b)).To(Succeed())
		status := `{"status":{"deploymentStatuses":[{"metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":1},"status":{"replicas":1,"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1}}]}}`
		Expect(api.Status().Patch(ctx, b.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(status)))).To(Succeed())

		r := start(namespace, "controller")
		ask := func() string {
			var out, errOut bytes.Buffer
			commands.Main([]string{"status", "--server", "http://" + r.api, "retail/shop/v1/autumn"}, nil, &out, &errOut)
			return out.String() + errOut.String()
		}
		r.configureWithf("clusterName: local+local\napi: {bindAddress: '0', anonymousBindAddress: %q}\nappContext: {endpoints: [%q]}\nrecorder: {}\n", r.api, etcd.Endpoint())
		place := appcontext.AppInCluster{ContextID: view.ContextID, App: "web", Cluster: "local+local"}
		stored := func(g Gomega) appcontext.StoredBundle {
			at, err := store.ReadBundle(ctx, place)
			g.Expect(err).NotTo(HaveOccurred())
			return at
		}
		Eventually(stored, "60s").Should(HaveField("IsOurs()", BeTrue()))
		Eventually(ask).Should(MatchRegexp(`web\s+local\+local\s+Deployment/web\s+shop\s+Ready`))

		By("looking at it from a hub that does not know the cluster")
		r.configureWithf("clusterName: another\napi: {bindAddress: '0', anonymousBindAddress: %q}\nappContext: {endpoints: [%q]}\n", r.api, etcd.Endpoint())
		Eventually(ask, "60s").Should(MatchRegexp(`! web in local\+local: from the context, where it was saved \d+m?\d*s ago`))
	}, SpecTimeout(3*time.Minute))
})
