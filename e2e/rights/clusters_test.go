package rights

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/installation"
)

// hasAMember makes the cluster a member of itself under another name, waits until the hub is connected and has renewed its
// token, removes the member's monitor and starts it again twice, and removes the member. It returns the rights that the hub had
// in the member, and the time when it was connected.
func hasAMember(ctx context.Context, hs *installation.Installation) (grants []Grant, connected time.Time) {
	GinkgoHelper()
	const name = "provider+itself"
	path := asAnotherCluster(ctx)
	_, err := hs.Clusters(ctx, "add", name, "--context", "rights", "--kubeconfig", path)
	Expect(err).NotTo(HaveOccurred())
	is := func(state string) {
		GinkgoHelper()
		Eventually(ctx, func() string {
			out, _ := hs.Clusters(ctx) // The command exits with 1 while a cluster is not connected.
			return out
		}).WithPolling(time.Second).Should(MatchRegexp(`(?m)^%s +%s `, regexp.QuoteMeta(name), state))
	}
	is("Connected")
	connected = time.Now()

	old := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	kubectl(ctx, "annotate", "secrets", "--namespace", corev1alpha2.DefaultClustersNamespace, "--all", "--overwrite", corev1alpha2.AnnotationTokenExpires+"="+old)
	Eventually(ctx, func(g Gomega) {
		var secrets corev1.SecretList
		g.Expect(k8s.List(ctx, &secrets, client.InNamespace(corev1alpha2.DefaultClustersNamespace), client.MatchingLabels{corev1alpha2.LabelClusterKubeconfig: "true"})).To(Succeed())
		g.Expect(secrets.Items).To(HaveLen(1))
		g.Expect(secrets.Items[0].Annotations[corev1alpha2.AnnotationTokenExpires]).NotTo(Equal(old))
	}).Should(Succeed())

	for range 2 {
		Expect(hs.StopMonitor()).To(Succeed())
		kubectl(ctx, "delete", "lease", "--namespace", home, monitor)
		is("MonitorMissing")
		Expect(hs.StartMonitor(ctx)).To(Succeed())
		is("Connected")
	}
	var told eventsv1.EventList
	Eventually(ctx, func(g Gomega) {
		g.Expect(k8s.List(ctx, &told, client.InNamespace(corev1alpha2.DefaultClustersNamespace))).To(Succeed())
		g.Expect(told.Items).To(ContainElement(And(HaveField("Reason", "MonitorMissing"), HaveField("Series.Count", BeNumerically("==", 2)))), "what repeats itself is counted")
	}).Should(Succeed())

	grants = granted(ctx, hubAccount)
	_, err = hs.Clusters(ctx, "remove", name, "--context", "rights", "--kubeconfig", path)
	Expect(err).NotTo(HaveOccurred())
	return grants, connected
}

// asAnotherCluster writes the kubeconfig file of a user who has the rights to add a member, but may not read the namespace whose
// UID identifies the cluster as the hub. A separate cluster would need an audit log of its own.
func asAnotherCluster(ctx context.Context) (path string) {
	GinkgoHelper()
	command := cp.KubectlCommand(ctx, "apply", "-f", "-")
	command.Stdin = strings.NewReader(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: enrols-members}
rules:
- {apiGroups: [rbac.authorization.k8s.io, k8splugin.io, core.oam.dev, coordination.k8s.io, events.k8s.io, apps, apiextensions.k8s.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [""], resources: [serviceaccounts, serviceaccounts/token, secrets, configmaps, events], verbs: ["*"]}
- {apiGroups: [""], resources: [namespaces], verbs: [create]}
- {apiGroups: [""], resources: [namespaces], resourceNames: [` + home + `], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: enrols-members}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: enrols-members}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: enrols-members}]
`)
	out, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	config, err := clientcmd.LoadFromFile(cp.KubeconfigPath())
	Expect(err).NotTo(HaveOccurred())
	for _, cluster := range config.Clusters {
		cluster.Server = strings.ReplaceAll(cluster.Server, "127.0.0.1", "localhost")
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "enrols-members"
	}
	path = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
	return path
}
