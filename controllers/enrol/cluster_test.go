package enrol_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/e2e/suite"
)

// asHub returns a client with the kubeconfig of the hub's Secret, parsed as in the controller.
func asHub(ctx context.Context) client.Client {
	GinkgoHelper()
	config, err := kubeconfig.Parse(secret(ctx).Data[corev1alpha2.KubeconfigKey])
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: suite.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// rightsIn returns the rights that a client has in a namespace beyond those of any account, one line for each verb and resource.
func rightsIn(ctx context.Context, c client.Client, namespace string) []string {
	GinkgoHelper()
	var own []string
	everyone := rules(ctx, anyAccount(ctx), namespace)
	for _, line := range rules(ctx, c, namespace) {
		if !slices.Contains(everyone, line) {
			own = append(own, line)
		}
	}
	return own
}

func rules(ctx context.Context, c client.Client, namespace string) []string {
	GinkgoHelper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	Expect(c.Create(ctx, review)).To(Succeed())
	var lines []string
	for _, r := range review.Status.ResourceRules {
		for _, verb := range r.Verbs {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					lines = append(lines, strings.TrimSpace(verb+" "+resource+"."+group+" "+strings.Join(r.ResourceNames, ",")))
				}
			}
		}
	}
	for _, r := range review.Status.NonResourceRules {
		lines = append(lines, strings.Join(r.Verbs, ",")+" "+strings.Join(r.NonResourceURLs, ","))
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// expectRights waits until a client has exactly the given rights in a namespace: changes of roles take effect with a delay.
func expectRights(ctx context.Context, c client.Client, namespace string, want ...string) {
	GinkgoHelper()
	Eventually(ctx, func() []string { return rightsIn(ctx, c, namespace) }).Should(ConsistOf(want))
}

// listBundles returns a function that lists bundles with a client.
func listBundles(ctx context.Context, c client.Client, options ...client.ListOption) func() error {
	return func() error { return c.List(ctx, &k8spluginv1alpha1.ResourceBundleStateList{}, options...) }
}

// anyAccount returns a client of an account without rights of its own.
func anyAccount(ctx context.Context) client.Client {
	GinkgoHelper()
	path := GinkgoT().TempDir() + "/kubeconfig"
	Expect(memberPlane.ServiceAccountKubeconfig(ctx, "default", "default", path)).To(Succeed())
	return clientFor(path)
}

var _ = Describe("A cluster that is added", func() {
	BeforeEach(func(ctx SpecContext) { removeAll(ctx) })
	AfterEach(func(ctx SpecContext) { removeAll(ctx) })

	leaseAndToken := []string{
		"create serviceaccounts/token. healthscope-hub",
		"list leases.coordination.k8s.io healthscope-monitor", "watch leases.coordination.k8s.io healthscope-monitor",
	}
	bundles := []string{"list resourcebundlestates.k8splugin.io", "watch resourcebundlestates.k8splugin.io"}

	It("can be read by the hub as far as it needs to be, and no further", func(ctx SpecContext) {
		Expect(add(ctx, enrolment(), time.Now())).To(Equal([]string{
			"member: namespace/healthscope-system created",
			"member: serviceaccount/healthscope-hub -n healthscope-system created",
			"member: role.rbac.authorization.k8s.io/healthscope-hub -n healthscope-system created",
			"member: rolebinding.rbac.authorization.k8s.io/healthscope-hub -n healthscope-system created",
			"member: clusterrole.rbac.authorization.k8s.io/healthscope-hub-kinds created",
			"member: clusterrole.rbac.authorization.k8s.io/healthscope-hub-bundles created",
			"member: clusterrolebinding.rbac.authorization.k8s.io/healthscope-hub-bundles created",
			"member: clusterrolebinding.rbac.authorization.k8s.io/healthscope-hub-kinds created",
			"hub: secret/provider-edge01 -n healthscope-clusters created",
		}))
		c := asHub(ctx)
		expectRights(ctx, c, enrol.MemberNamespace, append(slices.Clone(bundles), leaseAndToken...)...)
		expectRights(ctx, c, "default", bundles...)
		Eventually(ctx, listBundles(ctx, c)).Should(Succeed())
		Expect(c.List(ctx, &corev1.SecretList{})).To(MatchError(ContainSubstring("forbidden")))

		By("labelling a role for what scopes refer to directly")
		Expect(memberPlane.InstallManifests(ctx, suite.Manifest(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: workloads, labels: {healthscope.core.oam.dev/aggregate-to-controller: "true"}}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [list, watch]}
`))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(member.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "workloads"}})).To(Succeed())
		})
		expectRights(ctx, c, "default", append(slices.Clone(bundles), "list deployments.apps", "watch deployments.apps")...)

		By("adding it again")
		before := secret(ctx)
		Expect(add(ctx, enrolment(), time.Now().Add(10*time.Hour))).To(HaveEach(HaveSuffix(" unchanged")))
		Expect(secret(ctx)).To(Equal(before))

		By("adding it again when the token is old")
		Expect(add(ctx, enrolment(), time.Now().Add(20*time.Hour))).To(ContainElement("hub: secret/provider-edge01 -n healthscope-clusters configured"))
		Expect(secret(ctx).Data).NotTo(Equal(before.Data))
		Eventually(ctx, listBundles(ctx, asHub(ctx))).Should(Succeed())
	}, SpecTimeout(3*time.Minute))

	It("has its monitor in the namespace that is given", func(ctx SpecContext) {
		e := enrolment()
		e.MonitorNamespace = "watchers"
		c, _ := clusters()
		Expect(enrol.Add(ctx, c, e, time.Now())).To(MatchError(ContainSubstring(`"watchers" not found`)))
		Expect(member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "watchers"}})).To(Succeed())
		Expect(add(ctx, e, time.Now())).To(ContainElement("member: rolebinding.rbac.authorization.k8s.io/healthscope-hub -n watchers created"))
		asHub := asHub(ctx)
		lease := leaseAndToken[1:]
		expectRights(ctx, asHub, "watchers", append(slices.Clone(bundles), lease...)...)
		expectRights(ctx, asHub, enrol.MemberNamespace, append(slices.Clone(bundles), leaseAndToken[0])...)
		Expect(add(ctx, e, time.Now())).To(HaveEach(HaveSuffix(" unchanged")))

		By("moving the monitor")
		Expect(add(ctx, enrolment(), time.Now())).To(ContainElements(
			"member: role.rbac.authorization.k8s.io/healthscope-hub -n healthscope-system configured",
			"member: role.rbac.authorization.k8s.io/healthscope-hub -n watchers deleted",
			"member: rolebinding.rbac.authorization.k8s.io/healthscope-hub -n watchers deleted",
		))
		expectRights(ctx, asHub, "watchers", bundles...)
	}, SpecTimeout(2*time.Minute))

	It("can be read in some namespaces only, and in others once that is changed", func(ctx SpecContext) {
		add(ctx, enrolment(), time.Now())
		Expect(add(ctx, enrolment("default"), time.Now())).To(ContainElements(
			"member: role.rbac.authorization.k8s.io/healthscope-hub-bundles -n default created",
			"member: clusterrolebinding.rbac.authorization.k8s.io/healthscope-hub-bundles deleted",
			"member: clusterrole.rbac.authorization.k8s.io/healthscope-hub-bundles deleted",
		))
		Expect(secret(ctx).Annotations).To(HaveKeyWithValue(corev1alpha2.AnnotationNamespaces, "default"))
		c := asHub(ctx)
		expectRights(ctx, c, "default", bundles...)
		expectRights(ctx, c, "kube-system")
		Eventually(ctx, listBundles(ctx, c)).Should(MatchError(ContainSubstring("forbidden")))
		Eventually(ctx, listBundles(ctx, c, client.InNamespace("default"))).Should(Succeed())

		add(ctx, enrolment("kube-system"), time.Now())
		expectRights(ctx, c, "default")
		expectRights(ctx, c, "kube-system", bundles...)
		add(ctx, enrolment(), time.Now())
		Expect(secret(ctx).Annotations).NotTo(HaveKey(corev1alpha2.AnnotationNamespaces))
		Eventually(ctx, listBundles(ctx, c)).Should(Succeed())
	}, SpecTimeout(3*time.Minute))

	It("can have its Services probed in some namespaces, until that is changed", func(ctx SpecContext) {
		with := enrolment()
		with.ProbeNamespaces = []string{"default"}
		Expect(add(ctx, with, time.Now())).To(ContainElements(
			"member: role.rbac.authorization.k8s.io/healthscope-hub-probes -n default created",
			"member: rolebinding.rbac.authorization.k8s.io/healthscope-hub-probes -n default created",
		))
		c := asHub(ctx)
		probing := append([]string{"get services/proxy.", "list services.", "watch services."}, bundles...)
		expectRights(ctx, c, "default", probing...)
		expectRights(ctx, c, "kube-system", bundles...)
		Expect(add(ctx, enrolment(), time.Now())).To(ContainElements(
			"member: role.rbac.authorization.k8s.io/healthscope-hub-probes -n default deleted",
			"member: rolebinding.rbac.authorization.k8s.io/healthscope-hub-probes -n default deleted",
		))
		expectRights(ctx, c, "default", bundles...)

		elsewhere := enrolment("kube-system")
		elsewhere.ProbeNamespaces = []string{"default"}
		Expect(elsewhere.Validate()).To(MatchError(ContainSubstring(`cannot probe in namespace "default"`)))
	}, SpecTimeout(time.Minute))

	It("can have its workloads read, in the namespaces in which bundles are, until that is changed", func(ctx SpecContext) {
		with := enrolment("default")
		with.Workloads = true
		Expect(add(ctx, with, time.Now())).To(ContainElement("member: clusterrole.rbac.authorization.k8s.io/healthscope-hub-workloads created"))
		c := asHub(ctx)
		workloads := append([]string{
			"list cronjobs.batch", "list daemonsets.apps", "list deployments.apps", "list jobs.batch", "list pods.", "list replicasets.apps", "list statefulsets.apps",
			"watch cronjobs.batch", "watch daemonsets.apps", "watch deployments.apps", "watch jobs.batch", "watch replicasets.apps", "watch statefulsets.apps",
		}, bundles...)
		expectRights(ctx, c, "default", workloads...)
		expectRights(ctx, c, "kube-system")

		By("reading those of OAM, too")
		with.Workloads, with.OAM = false, true
		Expect(add(ctx, with, time.Now())).To(ContainElements(
			"member: clusterrole.rbac.authorization.k8s.io/healthscope-hub-oam created",
			"member: clusterrole.rbac.authorization.k8s.io/healthscope-hub-workloads deleted",
		))
		expectRights(ctx, c, "default", append([]string{
			"list applications.core.oam.dev", "list containerizedworkloads.core.oam.dev", "list podspecworkloads.standard.oam.dev", "list services.",
			"watch applications.core.oam.dev", "watch containerizedworkloads.core.oam.dev", "watch podspecworkloads.standard.oam.dev", "watch services.",
		}, workloads...)...)
		expectRights(ctx, c, "kube-system")

		By("reading bundles only")
		Expect(add(ctx, enrolment("default"), time.Now())).To(ContainElement("member: clusterrole.rbac.authorization.k8s.io/healthscope-hub-oam deleted"))
		expectRights(ctx, c, "default", bundles...)
	}, SpecTimeout(time.Minute))

	It("can have AppContexts applied in some namespaces, or in all that are read, until that is changed", func(ctx SpecContext) {
		applying := slices.Clone(bundles)
		for _, kind := range []string{
			"configmaps.", "cronjobs.batch", "daemonsets.apps", "deployments.apps", "horizontalpodautoscalers.autoscaling", "ingresses.networking.k8s.io", "jobs.batch",
			"networkpolicies.networking.k8s.io", "persistentvolumeclaims.", "poddisruptionbudgets.policy", "pods.", "resourcebundlestates.k8splugin.io", "secrets.",
			"serviceaccounts.", "services.", "statefulsets.apps",
		} {
			for _, verb := range []string{"create", "delete", "get", "patch"} {
				applying = append(applying, verb+" "+kind)
			}
		}
		for _, kind := range []string{"daemonsets.apps", "deployments.apps", "jobs.batch", "pods.", "statefulsets.apps"} {
			applying = append(applying, "watch "+kind)
		}
		with := enrolment()
		with.DeployNamespaces = []string{"default"}
		Expect(add(ctx, with, time.Now())).To(ContainElement("member: rolebinding.rbac.authorization.k8s.io/healthscope-hub-deploy-kinds -n default created"))
		c := asHub(ctx)
		expectRights(ctx, c, "default", applying...)
		expectRights(ctx, c, "kube-system", bundles...)

		with.DeployNamespaces = []string{enrol.AllNamespaces}
		Expect(add(ctx, with, time.Now())).To(ContainElements(
			"member: clusterrolebinding.rbac.authorization.k8s.io/healthscope-hub-deploy-kinds created",
			"member: rolebinding.rbac.authorization.k8s.io/healthscope-hub-deploy-kinds -n default deleted",
		))
		expectRights(ctx, c, "kube-system", applying...)
		with.Namespaces = []string{"default"}
		add(ctx, with, time.Now())
		expectRights(ctx, c, "default", applying...)
		expectRights(ctx, c, "kube-system")

		Expect(add(ctx, enrolment(), time.Now())).To(ContainElements(
			"member: clusterrole.rbac.authorization.k8s.io/healthscope-hub-deploy deleted",
			"member: clusterrole.rbac.authorization.k8s.io/healthscope-hub-deploy-kinds deleted",
		))
		expectRights(ctx, c, "default", bundles...)
		with.DeployNamespaces = []string{"kube-system"}
		Expect(with.Validate()).To(MatchError(ContainSubstring(`cannot deploy into namespace "kube-system"`)))
		with.DeployNamespaces = []string{enrol.AllNamespaces, "default"}
		Expect(with.Validate()).To(MatchError(ContainSubstring(`invalid namespace "*"`)))
	}, SpecTimeout(2*time.Minute))

	It("gets a new token when its account was recreated", func(ctx SpecContext) {
		add(ctx, enrolment(), time.Now())
		before := secret(ctx)
		Expect(member.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: enrol.MemberNamespace, Name: enrol.AccountName}})).To(Succeed())
		Expect(add(ctx, enrolment(), time.Now())).To(ContainElement("hub: secret/provider-edge01 -n healthscope-clusters configured"))
		Expect(secret(ctx).Data).NotTo(Equal(before.Data))
		Eventually(ctx, listBundles(ctx, asHub(ctx))).Should(Succeed(), "the API server notices the account a moment later")
	}, SpecTimeout(time.Minute))

	It("leaves nothing but the namespace behind when it is removed", func(ctx SpecContext) {
		add(ctx, enrolment("default"), time.Now())
		c, lines := clusters()
		Expect(enrol.Remove(ctx, c, removal())).To(Succeed())
		Expect(lines()[0]).To(Equal("hub: secret/provider-edge01 -n healthscope-clusters deleted"), "the hub comes first")
		Expect(lines()).To(ConsistOf(
			"hub: secret/provider-edge01 -n healthscope-clusters deleted",
			"member: rolebinding.rbac.authorization.k8s.io/healthscope-hub-bundles -n default deleted",
			"member: rolebinding.rbac.authorization.k8s.io/healthscope-hub-kinds -n default deleted",
			"member: rolebinding.rbac.authorization.k8s.io/healthscope-hub -n healthscope-system deleted",
			"member: clusterrole.rbac.authorization.k8s.io/healthscope-hub-kinds deleted",
			"member: role.rbac.authorization.k8s.io/healthscope-hub-bundles -n default deleted",
			"member: role.rbac.authorization.k8s.io/healthscope-hub -n healthscope-system deleted",
			"member: serviceaccount/healthscope-hub -n healthscope-system deleted",
			"member: namespace/healthscope-system kept",
		))
		for _, want := range enrolment("default").MemberObjects()[1:] {
			Eventually(ctx, func() error { return member.Get(ctx, client.ObjectKeyFromObject(want), want) }).Should(MatchError(ContainSubstring("not found")), "%T %s", want, want.GetName())
		}

		By("removing it again")
		Expect(enrol.Remove(ctx, c, removal())).To(MatchError(ContainSubstring(`there is no Secret of cluster "provider+edge01"`)))
		forced := removal()
		forced.Force = true
		Expect(enrol.Remove(ctx, c, forced)).To(Succeed())
		c.Member = nil
		Expect(enrol.Remove(ctx, c, removal())).To(MatchError(ContainSubstring(`there is no Secret of cluster "provider+edge01"`)))
	}, SpecTimeout(time.Minute))

	It("keeps what is not the hub's when it is removed", func(ctx SpecContext) {
		add(ctx, enrolment(), time.Now())
		monitor := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: enrol.MemberNamespace, Name: "healthscope-monitor"}}
		Expect(member.Create(ctx, monitor)).To(Succeed())
		others := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "others", Labels: map[string]string{enrol.LabelManagedBy: enrol.ManagedBy}}}
		Expect(member.Create(ctx, others)).To(Succeed())
		c, _ := clusters()
		Expect(enrol.Remove(ctx, c, removal())).To(Succeed())
		namespace := &corev1.Namespace{}
		Expect(member.Get(ctx, client.ObjectKey{Name: enrol.MemberNamespace}, namespace)).To(Succeed())
		Expect(namespace.DeletionTimestamp).To(BeNil())
		Expect(member.Delete(ctx, monitor)).To(Succeed())
		Expect(member.Delete(ctx, others)).To(Succeed())
	}, SpecTimeout(time.Minute))

	It("is removed from the hub though it cannot be reached", func(ctx SpecContext) {
		add(ctx, enrolment(), time.Now())
		c, lines := clusters()
		nowhere := memberPlane.Config()
		nowhere.Host = "https://127.0.0.1:1"
		var err error
		c.Member, err = client.New(nowhere, client.Options{Scheme: suite.Scheme(), Mapper: member.RESTMapper()})
		Expect(err).NotTo(HaveOccurred())
		Expect(enrol.Remove(ctx, c, removal())).To(MatchError(And(
			HavePrefix(`cluster "provider+edge01" was removed from the hub, but not everything was deleted in the cluster: `), HaveSuffix("; when the cluster can be reached, run the command again with --force"))))
		Expect(lines()).To(Equal([]string{"hub: secret/provider-edge01 -n healthscope-clusters deleted"}))
	}, SpecTimeout(time.Minute))

	It("is not mistaken for another", func(ctx SpecContext) {
		add(ctx, enrolment(), time.Now())
		By("removing it by the context of another cluster, where such an account is too")
		elsewhere := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: enrol.MemberNamespace}}
		Expect(hub.Create(ctx, elsewhere)).To(Succeed())
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: enrol.MemberNamespace, Name: enrol.AccountName}}
		Expect(hub.Create(ctx, account)).To(Succeed())
		c, lines := clusters()
		c.Member = hub
		Expect(enrol.Remove(ctx, c, removal())).To(MatchError(ContainSubstring("the context is of another cluster than Secret")))
		Expect(lines()).To(BeEmpty())
		By("doing so while its first answer is an error")
		watching, err := client.NewWithWatch(hubPlane.Config(), client.Options{Scheme: suite.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		asked := 0
		c.Member = interceptor.NewClient(watching, interceptor.Funcs{Get: func(ctx context.Context, k8s client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if asked++; asked == 1 {
				return apierrors.NewInternalError(errors.New("out of memory"))
			}
			return k8s.Get(ctx, key, o, options...)
		}})
		Expect(enrol.Remove(ctx, c, removal())).To(MatchError(ContainSubstring("the context is of another cluster than Secret")))
		Expect(lines()).To(BeEmpty())
		Expect(hub.Delete(ctx, account)).To(Succeed())

		By("adding another by a name that leads to the same Secret")
		e := enrolment()
		e.Name = "provider_edge01"
		c, _ = clusters()
		Expect(enrol.Add(ctx, c, e, time.Now())).To(MatchError(ContainSubstring(`is of cluster "provider+edge01": choose another name`)))

		By("adding it where a Secret of another name has it")
		s := secret(ctx)
		s.ObjectMeta = metav1.ObjectMeta{Namespace: s.Namespace, Name: "by-hand", Labels: s.Labels, Annotations: s.Annotations}
		Expect(hub.Create(ctx, s)).To(Succeed())
		Expect(enrol.Add(ctx, c, enrolment(), time.Now())).To(MatchError(ContainSubstring(`Secret "healthscope-clusters/by-hand" is of cluster "provider+edge01" already`)))
	}, SpecTimeout(time.Minute))

	It("gets no rights through a role of others", func(ctx SpecContext) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "healthscope-hub-bundles"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}}
		Expect(member.Create(ctx, role)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(member.Delete(ctx, role)).To(Succeed()) })
		c, _ := clusters()
		Expect(enrol.Add(ctx, c, enrolment(), time.Now())).To(MatchError(ContainSubstring("cannot use clusterrole.rbac.authorization.k8s.io/healthscope-hub-bundles: it was not created by this command")))
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: corev1alpha2.DefaultClustersNamespace, Name: "provider-edge01"}, &corev1.Secret{})).To(MatchError(ContainSubstring("not found")))
	}, SpecTimeout(time.Minute))
})
