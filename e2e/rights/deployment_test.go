package rights

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	deployment "github.com/healthscope/healthscope/healthscope/deploy"
)

// deployed are the objects of the context, one of each kind to which the rights apply. The first five are hooks.
var deployed = []struct{ kind, object string }{
	{"Pod", "{apiVersion: v1, spec: {containers: [{name: c, image: example.org/c}]}}"},
	{"Job", "{apiVersion: batch/v1, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: example.org/c}]}}}}"},
	{"Deployment", "{apiVersion: apps/v1, spec: {paused: true, selector: {matchLabels: {a: d}}, template: {metadata: {labels: {a: d}}, spec: {containers: [{name: c, image: example.org/c}]}}}}"},
	{"DaemonSet", "{apiVersion: apps/v1, spec: {selector: {matchLabels: {a: ds}}, template: {metadata: {labels: {a: ds}}, spec: {containers: [{name: c, image: example.org/c}]}}}}"},
	{"StatefulSet", "{apiVersion: apps/v1, spec: {serviceName: s, selector: {matchLabels: {a: s}}, template: {metadata: {labels: {a: s}}, spec: {containers: [{name: c, image: example.org/c}]}}}}"},
	{"ConfigMap", "{apiVersion: v1}"},
	{"Secret", "{apiVersion: v1}"},
	{"ServiceAccount", "{apiVersion: v1}"},
	{"Service", "{apiVersion: v1, spec: {ports: [{port: 80}]}}"},
	{"PersistentVolumeClaim", "{apiVersion: v1, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"},
	{"CronJob", "{apiVersion: batch/v1, spec: {schedule: '0 0 1 1 *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: example.org/c}]}}}}}}"},
	{"HorizontalPodAutoscaler", "{apiVersion: autoscaling/v2, spec: {maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: none, apiVersion: apps/v1}}}"},
	{"Ingress", "{apiVersion: networking.k8s.io/v1, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}}"},
	{"NetworkPolicy", "{apiVersion: networking.k8s.io/v1, spec: {podSelector: {}}}"},
	{"PodDisruptionBudget", "{apiVersion: policy/v1, spec: {minAvailable: 1, selector: {matchLabels: {a: d}}}}"},
}

// hooks is the number of hooks in deployed.
const hooks = 5

// contextOf returns the keys of a context that deploys all of these objects to the controller's own cluster. Each hook is in an
// app of its own, for which no other app waits.
func contextOf(id, namespace string) map[string]string {
	root := "/context/" + id + "/"
	keys := map[string]string{root: fmt.Sprintf("%q", id), root + "meta/": fmt.Sprintf(`{"Project":"retail","CompositeApp":"shop","Version":"v1","DeploymentIntentGroup":"autumn","Namespace":%q,"Level":"1"}`, namespace)}
	apps := map[string][]string{}
	for i, d := range deployed {
		app := "rest"
		if i < hooks {
			app = "hook" + fmt.Sprint(i)
		}
		name := "x" + fmt.Sprint(i) + "+" + d.kind
		at := root + "app/" + app + "/cluster/local/resource/"
		keys[at+name+"/"] = fmt.Sprintf("%q", fmt.Sprintf("{kind: %s, metadata: {name: x%d}, %s", d.kind, i, strings.TrimPrefix(d.object, "{")))
		if i < hooks {
			keys[at+"instruction/dependency/"] = fmt.Sprintf("%q", fmt.Sprintf(`{"resdependency":{"pre-install":[%q]}}`, name))
			name = ""
		}
		apps[app] = append(apps[app], name)
	}
	var order []string
	for app, names := range apps {
		order = append(order, app)
		keys[root+"app/"+app+"/"], keys[root+"app/"+app+"/cluster/local/"] = fmt.Sprintf("%q", app), `"local"`
		names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
		keys[root+"app/"+app+"/cluster/local/resource/instruction/order/"] = fmt.Sprintf("%q", fmt.Sprintf(`{"resorder":[%s]}`, quoted(names)))
	}
	keys[root+"app/instruction/order/"] = fmt.Sprintf("%q", fmt.Sprintf(`{"apporder":[%s]}`, quoted(order)))
	return keys
}

func quoted(names []string) string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(all, ",")
}

// terminate terminates the deployment intent group of the context over REST, as an account with the chart's role for deployers.
func terminate(ctx context.Context, hs *installation.Installation, namespace string) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deployer"}}
	Expect(k8s.Create(ctx, account)).To(Succeed())
	Expect(k8s.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-deployer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "healthscope-deployer"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account.Name}},
	})).To(Succeed())
	request := &authenticationv1.TokenRequest{}
	Expect(k8s.SubResource("token").Create(ctx, account, request)).To(Succeed())
	post := func(server, token string) (int, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server+"/v2/projects/retail/composite-apps/shop/v1/deployment-intent-groups/autumn/terminate", http.NoBody)
		if err != nil {
			return 0, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	code, err := post(hs.API, request.Status.Token)
	Expect(err).NotTo(HaveOccurred())
	Expect(code).To(Equal(http.StatusForbidden), "the address for callers without a token")
	Eventually(post).WithArguments(hs.GuardedAPI, request.Status.Token).Should(Equal(http.StatusAccepted))
}

var _ = Describe("The rights of the controller for deployment", func() {
	It("are, where the chart gives them, those that it uses", func(ctx context.Context) {
		const id, namespace = "7001", "deployed"
		Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		upgrade := func(ctx context.Context, value string) {
			_, err := helm.Run(ctx, cp.KubeconfigPath(), nil, "upgrade", chart.Release, helm.Chart(), "--namespace", home, "--set", "deployNamespaces="+value)
			Expect(err).NotTo(HaveOccurred())
		}
		upgrade(ctx, "{"+namespace+"}")
		DeferCleanup(upgrade, "null")
		etcd, err := controlplane.StartEtcd(ctx, controlplane.EtcdOptions{Log: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return etcd.Stop() })
		raw, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.Endpoint()}, Logger: zap.NewNop()})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return raw.Close() })
		for key, value := range contextOf(id, namespace) {
			_, err := raw.Put(ctx, key, value)
			Expect(err).NotTo(HaveOccurred())
		}
		store, err := appcontext.Open(appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return store.Close() })

		since := time.Now()
		hs := start(ctx, streaming, "appContext:\n  endpoints: ["+etcd.Endpoint()+"]\nrsync:\n  enabled: true\n")
		uses := func(verb string) (resources []string) {
			for _, u := range audit(since).Uses {
				if u.Verb == verb && u.Namespace == namespace && u.Account == home+"/"+controller {
					resources = append(resources, u.Resource)
				}
			}
			return resources
		}
		Expect(rsync.Enqueue(ctx, store, id, deployment.EventInstantiate, "", time.Now())).To(Succeed())
		Eventually(func() []string { return uses("watch") }).Should(ContainElements("pods", "jobs", "deployments", "daemonsets", "statefulsets"))
		Eventually(func() []string { return uses("patch") }).Should(ContainElement("poddisruptionbudgets"), "the last of the others")
		terminate(ctx, hs, namespace)
		Eventually(func(g Gomega) {
			s, err := store.Snapshot(ctx, id, "status")
			g.Expect(err).NotTo(HaveOccurred())
			state, err := s.Status()
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(state).To(Equal(appcontext.StateTerminated))
		}).Should(Succeed())

		// A patch that creates an object needs the rights to create and to patch, but the log has only the patch.
		grants := slices.DeleteFunc(of(granted(ctx), controller+"-deploy-kinds"), func(g Grant) bool { return g.Verb == "create" })
		Expect(grants).NotTo(BeEmpty())
		Eventually(func() []string { return Compare(audit(since).Uses, grants) }).Should(BeEmpty())
		Expect(hs.Stop()).To(Succeed())
		Expect(audit(since).Refused).To(BeEmpty())
	}, SpecTimeout(3*time.Minute))
})
