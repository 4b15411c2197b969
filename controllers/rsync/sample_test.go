package rsync_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/rsync/rpc"
	"github.com/healthscope/healthscope/controllers/rsync/server"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// documentOf returns the status document of a deployment intent group.
func documentOf(ctx context.Context, group appcontext.DeploymentRef) status.Document {
	GinkgoHelper()
	view, err := store.View(ctx, group, "")
	Expect(err).NotTo(HaveOccurred())
	q, err := status.ParseQuery(nil)
	Expect(err).NotTo(HaveOccurred())
	return status.New(status.Input{Subject: group, View: view, Contents: status.Decode(view, nil)}, q)
}

// The spec does what the controllers of EMCO's design do with the AppContext library before rsync is called.
var _ = Describe("a context of EMCO's controllers", func() {
	// create creates a composite app of one app, with two resources in each cluster, as the orchestrator does. EMCO's design has no
	// order of apps.
	create := func(ctx context.Context, namespace, app string, meta *appcontext.CompositeAppMeta, groups map[string][]string) *appcontext.AppContext {
		GinkgoHelper()
		ac := appcontext.NewAppContext(store)
		ac.InitAppContext()
		root, err := ac.CreateCompositeApp(ctx)
		Expect(err).NotTo(HaveOccurred())
		if meta != nil {
			Expect(ac.AddCompositeAppMeta(ctx, *meta)).To(Succeed())
		}
		h, err := ac.AddApp(ctx, root, app)
		Expect(err).NotTo(HaveOccurred())
		placed := func(object string) string {
			return strings.Replace(object, "metadata:\n", "metadata:\n  namespace: "+namespace+"\n", 1)
		}
		for group, clusters := range groups {
			for _, name := range clusters {
				at, err := ac.AddCluster(ctx, h, name)
				Expect(err).NotTo(HaveOccurred())
				Expect(ac.AddClusterMetaGrp(ctx, at, group)).To(Succeed())
				for name, object := range map[string]string{"res1+ConfigMap": configMap("res1"), "web+Deployment": twoReplicas} {
					_, err = ac.AddResource(ctx, at, name, placed(object))
					Expect(err).NotTo(HaveOccurred())
				}
				_, err = ac.AddInstruction(ctx, at, "resource", "order", map[string][]string{"resorder": {"res1+ConfigMap", "web+Deployment"}})
				Expect(err).NotTo(HaveOccurred())
			}
		}
		return ac
	}
	// place deletes all clusters of a group except the first, as a placement controller does.
	place := func(ctx context.Context, id, app string) {
		GinkgoHelper()
		ac := appcontext.NewAppContext(store)
		_, err := ac.LoadAppContext(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		groups, err := ac.GetClusterGroupMap(ctx, app)
		Expect(err).NotTo(HaveOccurred())
		for _, clusters := range groups {
			for _, name := range clusters[1:] {
				h, err := ac.GetClusterHandle(ctx, app, name)
				Expect(err).NotTo(HaveOccurred())
				Expect(ac.DeleteCluster(ctx, h)).To(Succeed())
			}
		}
	}
	// act changes a resource in all clusters, as an action controller does.
	act := func(ctx context.Context, id, app string) {
		GinkgoHelper()
		ac := appcontext.NewAppContext(store)
		_, err := ac.LoadAppContext(ctx, id)
		Expect(err).NotTo(HaveOccurred())
		clusters, err := ac.GetClusterNames(ctx, app)
		Expect(err).NotTo(HaveOccurred())
		for _, name := range clusters {
			h, err := ac.GetResourceHandle(ctx, app, name, "web+Deployment")
			Expect(err).NotTo(HaveOccurred())
			object, err := ac.GetValue(ctx, h)
			Expect(err).NotTo(HaveOccurred())
			Expect(ac.UpdateResourceValue(ctx, h, strings.ReplaceAll(fmt.Sprint(object), "replicas: 2", "replicas: 3"))).To(Succeed())
		}
	}

	It("is deployed to the clusters that are left, with what was changed, as its status document says", func(ctx SpecContext) {
		const app = "testApp"
		namespace := newNamespace(ctx)
		meta := appcontext.CompositeAppMeta{Project: "testvfw", CompositeApp: "compositevfw", Version: "v1", Release: namespace}
		ac := create(ctx, namespace, app, &meta, map[string][]string{
			"1": {"cluster_provider1+clusterName3", "cluster_provider1+clusterName5"},
			"2": {"cluster_provider2+clusterName4", "cluster_provider2+clusterName6"},
		})
		place(ctx, ac.ID(), app)
		act(ctx, ac.ID(), app)
		plain := create(ctx, newNamespace(ctx), "app1", nil, map[string][]string{"1": {edge01}}) // The metadata are optional.

		address, _ := serve(ctx, server.Options{})
		caller := rpc.NewInstallappClient(dial(address, nil))
		start(newNetwork())
		for _, id := range []string{ac.ID(), plain.ID()} {
			installed, err := caller.InstallApp(ctx, &rpc.InstallAppRequest{AppContext: id})
			Expect(err).NotTo(HaveOccurred())
			Expect(installed.GetAppContextInstalled()).To(BeTrue(), installed.GetAppContextInstallMessage())
			becomes(ctx, id, "Instantiated")
		}
		Expect(statuses(ctx, plain.ID())).To(Equal(map[string]string{"app1/p1+edge01/res1+ConfigMap": "Applied", "app1/p1+edge01/web+Deployment": "Applied"}))

		web := &appsv1.Deployment{}
		Expect(exists(ctx, web, namespace, "web")).To(BeTrue())
		Expect(web.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
		Expect(web.Labels).To(HaveKeyWithValue("emco/deployment-id", ac.ID()+"-"+app))
		bundles := &k8spluginv1alpha1.ResourceBundleStateList{}
		Expect(api.List(ctx, bundles, client.MatchingLabels{"emco/deployment-id": ac.ID() + "-" + app})).To(Succeed())
		Expect(bundles.Items).To(HaveLen(1), "the name of the app has a capital, which the name of an object may not have")
		d := documentOf(ctx, appcontext.GroupRef("testvfw", "compositevfw", "v1", namespace))
		Expect(d.Status).To(BeEquivalentTo("Instantiated"))
		Expect(d.RsyncStatus).To(Equal(map[string]int{"Applied": 4}))
		Expect(d.Apps).To(ConsistOf(And(HaveField("Name", app), HaveField("Clusters", ConsistOf(
			And(HaveField("Provider", "cluster_provider1"), HaveField("Name", "clusterName3")),
			And(HaveField("Provider", "cluster_provider2"), HaveField("Name", "clusterName4")))))))
		for _, id := range []string{ac.ID(), plain.ID()} {
			uninstalled, err := caller.UninstallApp(ctx, &rpc.UninstallAppRequest{AppContext: id})
			Expect(err).NotTo(HaveOccurred())
			Expect(uninstalled.GetAppContextUninstalled()).To(BeTrue(), uninstalled.GetAppContextUninstallMessage())
			becomes(ctx, id, "Terminated")
		}
		Expect(documentOf(ctx, appcontext.GroupRef("testvfw", "compositevfw", "v1", namespace)).RsyncStatus).To(Equal(map[string]int{"Deleted": 4}))
	})
})
