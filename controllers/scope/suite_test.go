package scope_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
)

// crds is the folder of the CRDs, relative to this one.
const crds = "../../config/crd"

const (
	// home is the controller's own namespace.
	home = "healthscope-system"
	// account is the name of the controller's ServiceAccount and of its roles.
	account = "healthscope-controller"
)

var (
	// plane is an API server without controllers: the specs write status themselves.
	plane *controlplane.ControlPlane
	// api is the administrator's client, without a cache.
	api client.Client
	// token is the path of the kubeconfig of the controller's ServiceAccount, which has only the rights in the markers.
	token string
)

func TestSuite(t *testing.T) {
	suite.Run(t, "Scope")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	suite.Defaults()
	plane, api = suite.Start(ctx, controlplane.Options{Name: "scope"}, crds, "testdata/workloads.yaml")
	makeAccount(ctx)
	token = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(plane.ServiceAccountKubeconfig(ctx, home, account, token)).To(Succeed())
}, NodeTimeout(5*time.Minute))

// newNamespace creates a namespace for a spec.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	return suite.NewNamespace(ctx, api, &corev1alpha2.HealthScope{})
}

// accountConfig returns the configuration of the controller's ServiceAccount.
func accountConfig() *rest.Config {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", token)
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	return config
}

// marker matches a line that declares rights of the controller.
var marker = regexp.MustCompile(`\+kubebuilder:rbac:groups=([^,]+),(?:namespace=([^,]+),)?resources=([^,]+),verbs=([^,\s]+)(?:,resourceNames=(\S+))?`)

// markedRules returns the rights in the markers, by namespace. Rights for the whole cluster have the empty namespace.
func markedRules(files ...string) map[string][]rbacv1.PolicyRule {
	GinkgoHelper()
	rules := map[string][]rbacv1.PolicyRule{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		found := marker.FindAllStringSubmatch(string(source), -1)
		Expect(found).To(HaveLen(strings.Count(string(source), "+kubebuilder:rbac")), "every marker of %s is understood", file)
		for _, m := range found {
			rule := rbacv1.PolicyRule{APIGroups: []string{strings.Trim(m[1], `"`)}, Resources: strings.Split(m[3], ";"), Verbs: strings.Split(m[4], ";")}
			if m[5] != "" {
				rule.ResourceNames = strings.Split(m[5], ";")
			}
			rules[m[2]] = append(rules[m[2]], rule)
		}
	}
	return rules
}

// makeAccount creates the controller's ServiceAccount with exactly the rights in the markers.
func makeAccount(ctx context.Context) {
	GinkgoHelper()
	rules := markedRules("setup.go", "../fleet/setup.go")
	local := metav1.ObjectMeta{Namespace: home, Name: account}
	global := metav1.ObjectMeta{Name: account}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: account}}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}},
		&corev1.ServiceAccount{ObjectMeta: local},
		&rbacv1.ClusterRole{ObjectMeta: global, Rules: rules[""]},
		&rbacv1.ClusterRoleBinding{ObjectMeta: global, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account}},
		&rbacv1.Role{ObjectMeta: local, Rules: rules[home]},
		&rbacv1.RoleBinding{ObjectMeta: local, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}},
	} {
		Expect(api.Create(ctx, object)).To(Succeed())
	}
}

// grant gives the controller's ServiceAccount the right to read a resource of the core group, until the spec ends.
func grant(ctx context.Context, resource string) {
	GinkgoHelper()
	grantTo(ctx, "", resource, "list", "watch")
}

// grantTo gives the controller's ServiceAccount a right, until the spec ends.
func grantTo(ctx context.Context, group, resource string, verbs ...string) {
	GinkgoHelper()
	name := metav1.ObjectMeta{Name: "granted-" + strings.ReplaceAll(resource, "/", "-")}
	role := &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: account}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
	}
	for _, object := range []client.Object{role, binding} {
		Expect(api.Create(ctx, object)).To(Succeed())
		DeferCleanup(api.Delete, object)
	}
}

// kubectl runs the real kubectl as administrator and returns its output.
func kubectl(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, suite.Timeout)
	defer cancel()
	output, err := plane.KubectlCommand(ctx, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return string(output), err
}
