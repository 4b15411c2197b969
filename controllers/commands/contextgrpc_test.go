package commands_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/controllers/rsync/rpc"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// compose creates a context with one resource, as EMCO's orchestrator does, and returns it and the handle of its cluster.
func compose(ctx context.Context, store *appcontext.Store, namespace, name, object string) (ac *appcontext.AppContext, cluster appcontext.Handle) {
	GinkgoHelper()
	ac = appcontext.NewAppContext(store)
	ac.InitAppContext()
	root, err := ac.CreateCompositeApp(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(ac.AddCompositeAppMeta(ctx, appcontext.CompositeAppMeta{Project: "retail", CompositeApp: "shop", Version: "v1", DeploymentIntentGroup: "grpc", Namespace: namespace, Level: "1"})).To(Succeed())
	app, err := ac.AddApp(ctx, root, "web")
	Expect(err).NotTo(HaveOccurred())
	cluster, err = ac.AddCluster(ctx, app, "local+local")
	Expect(err).NotTo(HaveOccurred())
	_, err = ac.AddResource(ctx, cluster, name, object)
	Expect(err).NotTo(HaveOccurred())
	_, err = ac.AddInstruction(ctx, cluster, "resource", "order", map[string][]string{"resorder": {name}})
	Expect(err).NotTo(HaveOccurred())
	_, err = ac.AddInstruction(ctx, root, "app", "order", map[string][]string{"apporder": {"web"}})
	Expect(err).NotTo(HaveOccurred())
	return ac, cluster
}

var _ = Describe("the gRPC services of the controller", func() {
	It("have contexts deployed, updated, rolled back, read and deleted for EMCO's callers, and notify them", func(ctx SpecContext) {
		etcd, store := newStore(ctx)
		namespace := suite.NewNamespace(ctx, api)
		address := freeAddress()
		r := start(namespace, "controller")
		r.configureWithf("clusterName: local+local\nappContext: {endpoints: [%q]}\nrsync: {enabled: true, grpc: {bindAddress: %q}}\n", etcd.Endpoint(), address)
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1, MaxDelay: time.Second}}))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(connection.Close)
		install, update, notify := rpc.NewInstallappClient(connection), rpc.NewUpdateappClient(connection), rpc.NewReadyNotifyClient(connection)
		Eventually(func() error {
			_, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
			return err
		}, time.Minute).Should(Succeed())
		becomes := func(id string, want appcontext.State) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				s, err := store.Snapshot(ctx, id, "status")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(s.Status()).To(Equal(want))
			}, time.Minute).Should(Succeed())
		}
		shop := func(version string) string {
			return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shop\ndata:\n  version: '" + version + "'\n"
		}
		name := types.NamespacedName{Namespace: namespace, Name: "shop"}
		deployed := func() string {
			GinkgoHelper()
			have := &corev1.ConfigMap{}
			Expect(api.Get(ctx, name, have)).To(Succeed())
			return have.Data["version"]
		}
		one, cluster := compose(ctx, store, namespace, "shop+ConfigMap", shop("1"))
		two, _ := compose(ctx, store, namespace, "shop+ConfigMap", shop("2"))
		first, second := one.ID(), two.ID()

		installed, err := install.InstallApp(ctx, &rpc.InstallAppRequest{AppContext: first})
		Expect(err).NotTo(HaveOccurred())
		Expect(installed.GetAppContextInstalled()).To(BeTrue(), installed.GetAppContextInstallMessage())
		becomes(first, appcontext.StateInstantiated)
		Expect(deployed()).To(Equal("1"))

		updated, err := update.UpdateApp(ctx, &rpc.UpdateAppRequest{UpdateFromAppContext: first, UpdateToAppContext: second})
		Expect(err).NotTo(HaveOccurred())
		Expect(updated.GetAppContextUpdated()).To(BeTrue(), updated.GetAppContextUpdateMessage())
		becomes(second, appcontext.StateInstantiated)
		becomes(first, appcontext.StateUpdated)
		Expect(deployed()).To(Equal("2"))

		rolledBack, err := update.RollbackApp(ctx, &rpc.RollbackAppRequest{RollbackFromAppContext: second, RollbackToAppContext: first})
		Expect(err).NotTo(HaveOccurred())
		Expect(rolledBack.GetAppContextRolledback()).To(BeTrue(), rolledBack.GetAppContextRollbackMessage())
		becomes(first, appcontext.StateInstantiated)
		becomes(second, appcontext.StateUpdated)
		Expect(deployed()).To(Equal("1"))

		toRead, at := compose(ctx, store, namespace, "shop+ConfigMap", `{"GVK":{"Group":"","Version":"v1","Kind":"ConfigMap"},"name":"shop","namespace":"`+namespace+`"}`)
		read, err := install.ReadAppContext(ctx, &rpc.ReadAppContextRequest{AppContext: toRead.ID()})
		Expect(err).NotTo(HaveOccurred())
		Expect(read.GetAppContextReadSuccessful()).To(BeTrue(), read.GetAppContextReadMessage())
		becomes(toRead.ID(), appcontext.StateInstantiated)
		Expect(toRead.GetValue(ctx, at.Level("resource/shop+ConfigMap/definition"))).To(ContainSubstring(`"data":{"version":"1"}`))

		By("notifying of a bundle that a recorder has saved, until the client unsubscribes")
		_, err = one.AddLevelValue(ctx, cluster, "status", `{"ready":true}`)
		Expect(err).NotTo(HaveOccurred())
		stream, err := notify.Alert(ctx, &rpc.Topic{ClientName: "dcm", AppContext: first})
		Expect(err).NotTo(HaveOccurred())
		notification, err := stream.Recv()
		Expect(err).NotTo(HaveOccurred())
		Expect([]string{notification.GetAppContext(), notification.GetApp(), notification.GetCluster()}).To(Equal([]string{first, "web", "local+local"}))
		_, err = notify.Unsubscribe(ctx, &rpc.Topic{ClientName: "dcm", AppContext: first})
		Expect(err).NotTo(HaveOccurred())
		_, err = stream.Recv()
		Expect(err).To(MatchError("EOF"))

		uninstalled, err := install.UninstallApp(ctx, &rpc.UninstallAppRequest{AppContext: first})
		Expect(err).NotTo(HaveOccurred())
		Expect(uninstalled.GetAppContextUninstalled()).To(BeTrue(), uninstalled.GetAppContextUninstallMessage())
		becomes(first, appcontext.StateTerminated)
		Expect(apierrors.IsNotFound(api.Get(ctx, name, &corev1.ConfigMap{}))).To(BeTrue())
		_, err = install.InstallApp(ctx, &rpc.InstallAppRequest{AppContext: "1"})
		Expect(status.Code(err)).To(Equal(codes.NotFound))
	}, SpecTimeout(3*time.Minute))
})
