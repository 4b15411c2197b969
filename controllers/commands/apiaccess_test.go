package commands_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// newCaller creates a ServiceAccount with rights, as rules of a Role in its namespace and of a ClusterRole, and returns a token
// of it.
func newCaller(ctx context.Context, namespace string, local, everywhere []rbacv1.PolicyRule) string {
	GinkgoHelper()
	k8s, err := kubernetes.NewForConfig(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	account, err := k8s.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "caller-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	meta := metav1.ObjectMeta{Name: account.Name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}}
	_, err = k8s.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: local}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}}
	_, err = k8s.RbacV1().RoleBindings(namespace).Create(ctx, binding, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = k8s.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: everywhere}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	clusterBinding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}}
	_, err = k8s.RbacV1().ClusterRoleBindings().Create(ctx, clusterBinding, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	request, err := k8s.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return request.Status.Token
}

// statusCode returns a function that gets a URL with a token and returns the status code, or 0 if there is no response.
func statusCode(ctx context.Context, client *http.Client, url, token string) func() int {
	return func() int {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return 0
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			return 0
		}
		defer func() { _ = response.Body.Close() }()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode
	}
}

// newStore starts an etcd and opens the AppContexts in it, until the spec ends.
func newStore(ctx context.Context) (*controlplane.Etcd, *appcontext.Store) {
	GinkgoHelper()
	etcd, err := controlplane.StartEtcd(ctx, controlplane.EtcdOptions{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(etcd.Stop)
	store, err := appcontext.Open(appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(store.Close)
	return etcd, store
}

// newGroup creates a deployment intent group with an instance in etcd, and returns the ID of its context.
func newGroup(ctx context.Context, store *appcontext.Store, project string) (id string) {
	GinkgoHelper()
	ac := appcontext.NewAppContext(store)
	id = ac.InitAppContext()
	root, err := ac.CreateCompositeApp(ctx)
	Expect(err).NotTo(HaveOccurred())
	created := appcontext.Record{Subject: appcontext.GroupRef(project, "shop", "v1", "autumn"), Action: appcontext.Action{State: appcontext.ActionCreated, Time: time.Now()}}
	Expect(store.RecordAction(ctx, created)).To(Succeed())
	Expect(ac.AddCompositeAppMeta(ctx, appcontext.CompositeAppMeta{Project: project, CompositeApp: "shop", Version: "v1", DeploymentIntentGroup: "autumn"})).To(Succeed())
	app, err := ac.AddApp(ctx, root, "web")
	Expect(err).NotTo(HaveOccurred())
	cluster, err := ac.AddCluster(ctx, app, "local+local")
	Expect(err).NotTo(HaveOccurred())
	_, err = ac.AddResource(ctx, cluster, "web+Deployment", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n")
	Expect(err).NotTo(HaveOccurred())
	return id
}

// statusOf returns the path of the status of a group.
func statusOf(project string) string {
	return "/v2/projects/" + project + "/composite-apps/shop/v1/deployment-intent-groups/autumn/status"
}

// document gets a path as JSON, and returns the content.
func document(ctx context.Context, address, path string) string {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	Expect(response.StatusCode).To(Equal(http.StatusOK), string(body))
	return string(body)
}

// newCertificates returns the files of a certificate and its key. renew writes new ones, and returns a client that trusts only
// them.
func newCertificates() (certFile, keyFile string, renew func() *http.Client) {
	dir := GinkgoT().TempDir()
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	return certFile, keyFile, func() *http.Client {
		GinkgoHelper()
		certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(keyFile, key, 0o600)).To(Succeed())
		Expect(os.WriteFile(certFile, certificate, 0o600)).To(Succeed())
		trusted := x509.NewCertPool()
		Expect(trusted.AppendCertsFromPEM(certificate)).To(BeTrue())
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}}
	}
}

// newBundle creates a bundle with a Deployment as another monitor fills it.
func newBundle(ctx context.Context, namespace, name, instance string) {
	GinkgoHelper()
	b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: name, status.InstanceLabel: instance},
	}}
	Expect(api.Create(ctx, b)).To(Succeed())
	Expect(json.Unmarshal([]byte(`{"resourceCount": 1, "deploymentStatuses": [{"metadata": {"name": "web", "namespace": "`+namespace+`"}, "spec": {"replicas": 1},
		"status": {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1}}]}`), &b.Status)).To(Succeed())
	Expect(api.Status().Update(ctx, b)).To(Succeed())
}

var _ = Describe("the status REST API", func() {
	It("shows what is expected beside what is there, and streams changes", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		scope := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		Expect(api.Create(ctx, scope)).To(Succeed())
		etcd, store := newStore(ctx)
		id := newGroup(ctx, store, "retail")
		newBundle(ctx, namespace, id+"-web", "gentle-fox")
		r := start(namespace, "controller")
		old := r.api
		r.api = freeAddress()
		r.configureWithf("clusterName: local+local\napi: {bindAddress: '0', anonymousBindAddress: %q}\nappContext: {endpoints: [%q]}\n", r.api, etcd.Endpoint())
		Eventually(getting(ctx, r.api, "/readyz")).Should(Equal("200 ok\n"))
		Expect(getting(ctx, old, "/readyz")()).To(ContainSubstring("connection refused"))

		var group status.Document
		Expect(json.Unmarshal([]byte(document(ctx, r.api, statusOf("retail")+"?output=full")), &group)).To(Succeed())
		web := group.Apps[0].Clusters[0].Resources[0]
		Expect(web.ClusterStatus).To(Equal(status.Present))
		Expect(web.Health.State).To(Equal("Ready"))
		Expect(string(web.Detail)).To(ContainSubstring(`"readyReplicas":1`))
		var instance status.InstanceDocument
		Expect(json.Unmarshal([]byte(document(ctx, r.api, "/v1/instance/gentle-fox/status")), &instance)).To(Succeed())
		Expect(instance.Ready).To(BeTrue())
		Expect(string(instance.Resources[0].Status)).To(ContainSubstring(`"readyReplicas":1`))

		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.api+"/scopes/"+namespace+"/web?watch=true", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		response, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = response.Body.Close() })
		events := bufio.NewScanner(response.Body)
		next := func(event string) string {
			for events.Scan() {
				if events.Text() == "event: "+event && events.Scan() {
					return events.Text()
				}
			}
			return fmt.Sprint("no event ", event, ": ", events.Err())
		}
		Expect(next("snapshot")).To(ContainSubstring(`"name":"web"`))
		absent := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"workloadRefs":[{"apiVersion":"apps/v1","kind":"Deployment","name":"absent"}]}}`))
		Expect(api.Patch(ctx, scope, absent)).To(Succeed())
		Eventually(func() string { return next("scope") }).Should(ContainSubstring(`"health":"unhealthy"`))
		Expect(api.Delete(ctx, scope)).To(Succeed())
		Expect(next("deleted")).To(ContainSubstring(`"namespace":"` + namespace + `"`))
		Expect(r.Stop(grace)).To(Succeed(), "an open stream does not hold it up")
	}, NodeTimeout(2*time.Minute))

	It("shows a scope that selects its workloads by label", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		var web appsv1.Deployment
		Expect(yaml.Unmarshal([]byte(`{metadata: {name: web, labels: {app: shop}}, spec: {replicas: 1, selector: {matchLabels: {app: shop}},
  template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: web, image: web}]}}}}`), &web)).To(Succeed())
		web.Namespace = namespace
		Expect(api.Create(ctx, &web)).To(Succeed())
		web.Status = appsv1.DeploymentStatus{ObservedGeneration: web.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
		Expect(api.Status().Update(ctx, &web)).To(Succeed())
		scope := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}, Spec: corev1alpha2.HealthScopeSpec{
			Apps: []corev1alpha2.ScopeApp{{Name: "shop", WorkloadSelector: &corev1alpha2.WorkloadSelector{LabelSelector: metav1.LabelSelector{MatchLabels: web.Labels}}}},
		}}
		Expect(api.Create(ctx, scope)).To(Succeed())
		r := start(namespace, "controller")
		Eventually(health(ctx, scope)).Should(Equal("healthy"))

		one := "/scopes/" + namespace + "/shop"
		Eventually(getting(ctx, r.api, one)).Should(HavePrefix("200 healthy"))
		for _, path := range []string{one, "/v1alpha1" + one} {
			Expect(document(ctx, r.api, path)).To(ContainSubstring(`"apps":[{"name":"shop","state":"Ready","total":1,"ready":1,`), path)
		}
		for _, path := range []string{"/scopes", "/v1alpha1/scopes"} {
			Expect(document(ctx, r.api, path+"?namespace="+namespace)).To(And(ContainSubstring(`"name":"shop"`), ContainSubstring(`"health":"healthy"`)), path)
		}
		code, out, _ := runStatus(namespace+"/shop", "--server", "http://"+r.api)
		Expect(code).To(BeZero(), out)
		Expect(out).To(ContainSubstring("1 of 1 resources are ready"))
		Expect(r.Stop(grace)).To(Succeed())
	}, NodeTimeout(2*time.Minute))

	It("shows callers what they have a right to, and nothing else; and lives without etcd", func(ctx SpecContext) {
		mine, other := suite.NewNamespace(ctx, api), suite.NewNamespace(ctx, api)
		for _, namespace := range []string{mine, other} {
			Expect(api.Create(ctx, &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}})).To(Succeed())
		}
		etcd, store := newStore(ctx)
		for _, project := range []string{"retail", "bank", "later"} {
			newGroup(ctx, store, project)
		}
		token := newCaller(ctx, mine,
			[]rbacv1.PolicyRule{{APIGroups: []string{corev1alpha2.GroupVersion.Group}, Resources: []string{"healthscopes"}, Verbs: []string{"get", "list"}}},
			[]rbacv1.PolicyRule{{NonResourceURLs: []string{"/v2/projects/retail/*", "/v2/projects/later/*"}, Verbs: []string{"get"}}})

		r := start(mine, "controller")
		guarded := freeAddress()
		r.configureWithf("api: {bindAddress: %q, anonymousBindAddress: %q}\nappContext: {endpoints: [%q], timeoutSeconds: 1}\n", guarded, r.api, etcd.Endpoint())
		code := func(path, token string) func() int {
			return statusCode(ctx, http.DefaultClient, "http://"+guarded+path, token)
		}
		Eventually(code("/scopes/"+mine+"/web", token)).Should(Equal(http.StatusOK))
		Eventually(getting(ctx, r.probes, "/readyz")).Should(Equal("200 ok"))
		Eventually(code(statusOf("retail"), token)).Should(Equal(http.StatusOK), "a busy etcd may need longer than the second that it has")
		for path, want := range map[string]int{
			"/scopes?namespace=" + mine:     http.StatusOK,
			"/scopes?namespace=" + other:    http.StatusForbidden,
			"/scopes":                       http.StatusForbidden,
			"/scopes/" + mine + "/absent":   http.StatusNotFound,
			"/scopes/" + other + "/web":     http.StatusForbidden,
			"/scopes/" + other + "/absent":  http.StatusForbidden,
			statusOf("retail"):              http.StatusOK,
			statusOf("bank"):                http.StatusForbidden,
			statusOf("absent"):              http.StatusForbidden,
			"/v1/instance/x/status":         http.StatusForbidden,
			"/openapi.json":                 http.StatusOK,
			statusOf("retail") + "?type=no": http.StatusBadRequest,
		} {
			Expect(code(path, token)()).To(Equal(want), path)
		}
		for _, nobody := range []string{"", "x", token + "x"} {
			Expect(code("/scopes/"+mine+"/web", nobody)()).To(Equal(http.StatusUnauthorized))
			Expect(code("/readyz", nobody)()).To(Equal(http.StatusOK))
		}
		Expect(getting(ctx, r.api, "/scopes/"+other+"/web")()).To(HavePrefix("200 "), "the other listener asks for no token")

		By("killing etcd")
		Expect(etcd.Kill()).To(Succeed())
		Eventually(code(statusOf("later"), token)).Should(Equal(http.StatusServiceUnavailable), "what has never been read")
		Expect(code(statusOf("retail"), token)()).To(Equal(http.StatusOK), "what is known already")
		Expect(code("/scopes/"+mine+"/web", token)()).To(Equal(http.StatusOK))
		Expect(etcd.Start(ctx)).To(Succeed())
		Eventually(code(statusOf("later"), token)).Should(Equal(http.StatusOK), "it resumes by itself")
		Expect(r.Stop(grace)).To(Succeed())
		Expect(r.LogTail()).NotTo(ContainSubstring(token), "no token is logged")
	})

	It("speaks https with a certificate that may change, as the metrics server does", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		Expect(api.Create(ctx, &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}})).To(Succeed())
		token := newCaller(ctx, namespace, []rbacv1.PolicyRule{{APIGroups: []string{corev1alpha2.GroupVersion.Group}, Resources: []string{"healthscopes"}, Verbs: []string{"get"}}}, nonResourceRules("/metrics"))
		certFile, keyFile, renew := newCertificates()
		first := renew()
		guarded, metrics := freeAddress(), freeAddress()
		r := start(namespace, "controller", "--config", configuration(GinkgoT().TempDir(),
			"api: {bindAddress: %[1]q, certFile: %[3]q, keyFile: %[4]q}\nmetrics: {bindAddress: %[2]q, certFile: %[3]q, keyFile: %[4]q}\n", guarded, metrics, certFile, keyFile))
		urls := []string{"https://" + guarded + "/scopes/" + namespace + "/web", "https://" + metrics + "/metrics"}
		for _, url := range urls {
			Eventually(statusCode(ctx, first, url, token)).Should(Equal(http.StatusOK), url)
		}
		second := renew()
		for _, url := range urls {
			Eventually(statusCode(ctx, second, url, token)).Should(Equal(http.StatusOK), url)
			Expect(statusCode(ctx, first, url, token)()).To(Equal(0), "the old certificate is not served any more at "+url)
		}
		Expect(r.Running()).To(BeTrue())
		Expect(r.Stop(grace)).To(Succeed())
	})
})
