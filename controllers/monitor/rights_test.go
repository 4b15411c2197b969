package monitor_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/healthscope/healthscope/controllers/monitor"
	"github.com/healthscope/healthscope/e2e/suite"
)

// marker matches a line that declares rights of the monitor.
var marker = regexp.MustCompile(`\+kubebuilder:rbac:groups=([^,]+),resources=([^,]+),verbs=(\S+)`)

// markedRules returns the rights in the markers of the package, from which its role is generated.
func markedRules() []rbacv1.PolicyRule {
	GinkgoHelper()
	source, err := os.ReadFile("setup.go")
	Expect(err).NotTo(HaveOccurred())
	var rules []rbacv1.PolicyRule
	for _, match := range marker.FindAllStringSubmatch(string(source), -1) {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{strings.Trim(match[1], `"`)},
			Resources: strings.Split(match[2], ";"),
			Verbs:     strings.Split(match[3], ";"),
		})
	}
	Expect(rules).NotTo(BeEmpty())
	return rules
}

// may polls whether the service account of a namespace has a right. The API server applies new roles after a moment.
func may(ctx context.Context, namespace string, right authorizationv1.ResourceAttributes) func() bool {
	return func() bool {
		GinkgoHelper()
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + namespace + ":monitor", ResourceAttributes: &right,
		}}
		Expect(api.Create(ctx, review)).To(Succeed())
		return review.Status.Allowed
	}
}

// account creates a service account with the rules and with the rights for its Lease in the namespace. It waits until the rights
// are in force, and returns the configuration and the role.
func account(ctx context.Context, namespace string, rules []rbacv1.PolicyRule) (*rest.Config, *rbacv1.ClusterRole) {
	GinkgoHelper()
	name := metav1.ObjectMeta{Name: "monitor", Namespace: namespace}
	cluster := metav1.ObjectMeta{Name: "monitor-" + namespace}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name.Name, Namespace: namespace}}
	role := &rbacv1.ClusterRole{ObjectMeta: cluster, Rules: rules}
	create(ctx,
		&corev1.ServiceAccount{ObjectMeta: name},
		role,
		&rbacv1.ClusterRoleBinding{ObjectMeta: cluster, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.Name}},
		&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
			{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name}},
	)
	Eventually(may(ctx, namespace, authorizationv1.ResourceAttributes{Group: "k8splugin.io", Resource: "resourcebundlestates", Verb: "list"})).Should(BeTrue())
	Eventually(may(ctx, namespace, authorizationv1.ResourceAttributes{Namespace: namespace, Group: coordinationv1.GroupName, Resource: "leases", Verb: "get"})).Should(BeTrue())
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(plane.ServiceAccountKubeconfig(ctx, namespace, name.Name, path)).To(Succeed())
	config, err := clientcmd.BuildConfigFromFlags("", path)
	Expect(err).NotTo(HaveOccurred())
	return config, role
}

// series returns the series of a metric, as text.
func series(registry *prometheus.Registry, name string) []string {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				found = append(found, m.String())
			}
		}
	}
	return found
}

// journal stores log lines.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) logger() logr.Logger {
	return funcr.New(func(prefix, line string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, prefix+" "+line)
	}, funcr.Options{})
}

// about returns the lines with the text.
func (j *journal) about(text string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
	for _, line := range j.lines {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

var _ = Describe("A monitor's rights", func() {
	var namespace string
	var options monitor.Options

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		options = monitor.Options{LeaseNamespace: namespace}
	})

	It("are no more than its markers ask for", func(ctx SpecContext) {
		config, _ := account(ctx, namespace, markedRules())
		log := &journal{}
		startAs(ctx, config, log.logger(), options)
		create(ctx, oneOfEach(namespace, "1-sink")...)
		create(ctx, newBundle(namespace, "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(len(monitor.DefaultKinds())))
		Expect(log.about("Cannot read")).To(BeEmpty())
		Expect(log.about("orbidden")).To(BeEmpty())
	})

	It("may leave out a kind, which is reported once and holds nothing up", func(ctx SpecContext) {
		rules := markedRules()
		for i := range rules {
			rules[i].Resources = slices.DeleteFunc(rules[i].Resources, func(resource string) bool { return resource == "pods" })
		}
		config, role := account(ctx, namespace, rules)
		log := &journal{}
		startAs(ctx, config, log.logger(), options)
		objects := oneOfEach(namespace, "1-sink")
		create(ctx, objects...)
		create(ctx, newBundle(namespace, "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(And(HaveLen(len(objects)-1), Not(HaveKey("Pod/pod"))))

		By("granting it later, without a restart")
		update(ctx, role, func(r *rbacv1.ClusterRole) { r.Rules = markedRules() })
		Eventually(statesOf(ctx, namespace, "1-sink")).WithTimeout(time.Minute).Should(And(HaveLen(len(objects)), HaveKey("Pod/pod")))
		Expect(log.about("Cannot read kind")).To(HaveExactElements(And(ContainSubstring("Pod"), ContainSubstring("bundles are filled without it"))))
		Eventually(func() []string { return log.about("can be read again") }).Should(HaveLen(1))
	})

	It("may lack a kind at a restart, whose objects then stay as Unknown", func(ctx SpecContext) {
		objects := oneOfEach(namespace, "1-sink")
		create(ctx, objects...)
		create(ctx, newBundle(namespace, "1-sink"))
		config, role := account(ctx, namespace, markedRules())
		m := startAs(ctx, config, (&journal{}).logger(), options)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKeyWithValue("Pod/pod", "Pending"))
		m.stop()

		update(ctx, role, func(r *rbacv1.ClusterRole) {
			for i := range r.Rules {
				r.Rules[i].Resources = slices.DeleteFunc(r.Rules[i].Resources, func(resource string) bool { return resource == "pods" })
			}
		})
		Eventually(may(ctx, namespace, authorizationv1.ResourceAttributes{Resource: "pods", Verb: "list"})).Should(BeFalse())
		registry := prometheus.NewRegistry()
		options.Registerer = registry
		again := startAs(ctx, config, (&journal{}).logger(), options)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(And(HaveLen(len(objects)), HaveKeyWithValue("Pod/pod", "Unknown")))
		Expect(get(ctx, namespace, "1-sink").Status.ResourceCount).To(BeEquivalentTo(len(objects)))
		unreadable := func() []string { return series(registry, "healthscope_monitor_unreadable_kinds") }
		Eventually(unreadable).Should(ConsistOf(ContainSubstring(`value:"Pod"`)))

		By("granting it again")
		update(ctx, role, func(r *rbacv1.ClusterRole) { r.Rules = markedRules() })
		Eventually(statesOf(ctx, namespace, "1-sink")).WithTimeout(time.Minute).Should(HaveKeyWithValue("Pod/pod", "Pending"))
		Eventually(unreadable).Should(BeEmpty())
		again.stop()
	})
})

var _ = Describe("A monitor's kinds", func() {
	It("may be missing in the cluster and come later", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		widget := schema.GroupVersionKind{Group: "monitor.example.io", Version: "v1", Kind: "Widget"}
		log := &journal{}
		startAs(ctx, plane.Config(), log.logger(), monitor.Options{
			LeaseNamespace: namespace,
			Kinds:          append(monitor.DefaultKinds(), widget),
			WatchClock:     suite.NewFastClock(10), // A kind that is not served is confirmed after ten seconds.
		})
		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		Expect(log.about("Cannot read kind")).To(HaveExactElements(And(ContainSubstring("Widget"), ContainSubstring("does not serve"))))

		crd := newCRD(widget.Group, widget.Kind, "widgets", widget.Version)
		install(ctx, crd)
		createCustom(ctx, widget, namespace, "widget")
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKey("Widget/widget"))

		By("removing the kind")
		uninstall(ctx, crd)
		Eventually(statesOf(ctx, namespace, "1-sink")).ShouldNot(HaveKey("Widget/widget"))

		By("installing the kind again")
		install(ctx, newCRD(widget.Group, widget.Kind, "widgets", widget.Version))
		createCustom(ctx, widget, namespace, "again")
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKey("Widget/again"))
	})
})
