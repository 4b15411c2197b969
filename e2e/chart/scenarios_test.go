package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// expect compares the names of objects of some kinds.
func expect(t *testing.T, objects []*unstructured.Unstructured, kinds []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, having(objects, kinds...), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestAHubHasNoMonitor(t *testing.T) {
	objects := render(t, installations["hub"])
	expect(t, objects, []string{"Deployment", "ConfigMap", "Service", "ServiceAccount", "CustomResourceDefinition", "Namespace"},
		"ConfigMap/healthscope-system/healthscope-controller", "CustomResourceDefinition//healthscopes.core.oam.dev",
		"CustomResourceDefinition//resourcebundlestates.k8splugin.io", "Deployment/healthscope-system/healthscope-controller",
		"Namespace//healthscope-clusters", "Service/healthscope-system/healthscope-controller-metrics",
		"ServiceAccount/healthscope-system/healthscope-controller")
	for _, name := range having(objects, "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding") {
		if strings.Contains(name, "healthscope-monitor") {
			t.Errorf("a hub needs no %s", name)
		}
	}
}

func TestAMemberHasNoController(t *testing.T) {
	objects := render(t, installations["member"])
	expect(t, objects, []string{"Deployment", "ConfigMap", "Service", "ServiceAccount", "CustomResourceDefinition", "Namespace", "ClusterRole", "Role"},
		"ClusterRole//healthscope-bundle-viewer", "ClusterRole//healthscope-metrics-reader", "ClusterRole//healthscope-monitor", "ClusterRole//healthscope-monitor-kinds",
		"ClusterRole//healthscope-profiler",
		"ConfigMap/healthscope-system/healthscope-monitor", "CustomResourceDefinition//resourcebundlestates.k8splugin.io",
		"Deployment/healthscope-system/healthscope-monitor", "Role/healthscope-system/healthscope-monitor",
		"Service/healthscope-system/healthscope-monitor-metrics", "ServiceAccount/healthscope-system/healthscope-monitor")

	c := configuration(t, objects, "healthscope-monitor")
	if c.ClusterName != "provider+edge01" || *c.Policy.PendingTimeoutSeconds != 600 {
		t.Errorf("the monitor has cluster name %q and pendingTimeoutSeconds %d; want its cluster's and nothing of the controller's", c.ClusterName, *c.Policy.PendingTimeoutSeconds)
	}
}

// TestAMemberHasNoAlertsForAController checks that a member lacks these alerts, which would always fire.
func TestAMemberHasNoAlertsForAController(t *testing.T) {
	groups := func(title string) []string {
		var all []string
		found := named(render(t, installations[title]), "PrometheusRule", "healthscope")
		if len(found) != 1 {
			t.Fatalf("%s: %d PrometheusRules", title, len(found))
		}
		list, _, _ := unstructured.NestedSlice(found[0].Object, "spec", "groups")
		for _, g := range list {
			group, _ := g.(map[string]any)
			all = append(all, fmt.Sprint(group["name"]))
		}
		return all
	}
	if diff := cmp.Diff([]string{"healthscope-programs"}, groups("member")); diff != "" {
		t.Errorf("alerts of a member (-want +got):\n%s", diff)
	}
	if all := groups("observed"); len(all) < 2 || !slices.Contains(all, "healthscope-programs") {
		t.Errorf("alerts of a hub are %q", all)
	}
}

func TestHighAvailability(t *testing.T) {
	objects := render(t, installations["highly available"])
	expect(t, objects, []string{"PodDisruptionBudget"}, "PodDisruptionBudget/healthscope-system/healthscope-controller", "PodDisruptionBudget/healthscope-system/healthscope-monitor")
	expect(t, render(t, `controller: {replicas: 1}`), []string{"PodDisruptionBudget"})
	expect(t, render(t, `controller: {replicas: 2, podDisruptionBudget: {enabled: false}}`), []string{"PodDisruptionBudget"})

	budget := one[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget", "healthscope-controller")
	d := one[appsv1.Deployment](t, objects, "Deployment", "healthscope-controller")
	if diff := cmp.Diff(d.Spec.Selector, budget.Spec.Selector); diff != "" {
		t.Errorf("the budget is for other pods (-deployment +budget):\n%s", diff)
	}
	if got := budget.Spec.MaxUnavailable.String(); got != "50%" {
		t.Errorf("maxUnavailable is %q", got)
	}
	if p := budget.Spec.UnhealthyPodEvictionPolicy; p == nil || *p != policyv1.AlwaysAllow {
		t.Errorf("a node with a pod that is not ready cannot be drained: %v", p)
	}
	pod := d.Spec.Template
	if diff := cmp.Diff(d.Spec.Selector, pod.Spec.TopologySpreadConstraints[0].LabelSelector); diff != "" {
		t.Errorf("pods are spread among others (-deployment +constraint):\n%s", diff)
	}
	if got := pod.Spec.TopologySpreadConstraints[1].LabelSelector.MatchLabels; !cmp.Equal(got, map[string]string{"my": "own"}) {
		t.Errorf("the selector of a constraint has become %v", got)
	}
	c := pod.Spec.Containers[0]
	got := []any{
		*d.Spec.Replicas, pod.Labels["a/b"], pod.Labels["team"], pod.Annotations["a/b"], pod.Spec.PriorityClassName, pod.Spec.NodeSelector, len(pod.Spec.Tolerations),
		pod.Spec.Affinity.PodAntiAffinity != nil, c.Args[len(c.Args)-1], c.Env[len(c.Env)-1].Name, c.Image[:43], pod.Spec.ImagePullSecrets[0].Name,
	}
	want := []any{
		int32(2), "c", "edge", "c", "system-cluster-critical", map[string]string{"zone": "a", "kubernetes.io/os": "linux"}, 1,
		true, "--verbosity=1", "GOMAXPROCS", "ghcr.io/healthscope/healthscope@sha256:0123", "registry",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings of the pod (-want +got):\n%s", diff)
	}
	if got := one[appsv1.Deployment](t, objects, "Deployment", "healthscope-monitor").Spec.Template.Spec.ServiceAccountName; got != "watcher" {
		t.Errorf("the monitor's ServiceAccount is %q", got)
	}
	if got := one[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding", "healthscope-monitor").Subjects[0].Name; got != "watcher" {
		t.Errorf("the monitor's role is bound to %q", got)
	}
}

// TestTheAPIIsExposedWithACertificateOnly checks that there is a Service only with a certificate. Without one, clients would send tokens in plain text.
func TestTheAPIIsExposedWithACertificateOnly(t *testing.T) {
	for title, want := range map[string]struct {
		address, secret string
	}{
		"all in one": {"127.0.0.1:8082", ""}, "nothing served": {"0", ""},
		"TLS from Secrets": {":8082", "api"}, "TLS from cert-manager": {":8082", "healthscope-api-tls"},
	} {
		objects := render(t, installations[title])
		c := configuration(t, objects, "healthscope-controller")
		if c.API.BindAddress != want.address || (c.API.CertFile != "") != (want.secret != "") {
			t.Errorf("%s: the API listens on %q with certificate %q", title, c.API.BindAddress, c.API.CertFile)
		}
		services := named(objects, "Service", "healthscope-api")
		if (len(services) == 1) != (want.secret != "") {
			t.Errorf("%s: there are %d Services of the API", title, len(services))
		}
		d := one[appsv1.Deployment](t, objects, "Deployment", "healthscope-controller")
		if got := secretOf(d, "api-tls"); got != want.secret {
			t.Errorf("%s: the certificate is that of Secret %q, want %q", title, got, want.secret)
		}
	}
	service := one[corev1.Service](t, render(t, installations["TLS from Secrets"]), "Service", "healthscope-api")
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Spec.Ports[0].Port != 8443 || service.Annotations["a/b"] != "c" {
		t.Errorf("the Service of the API is %+v", service)
	}
}

// TestRsyncIsExposedWithACertificateOrByName checks the settings that allow an unencrypted port, because every client that can reach such a port may deploy.
func TestRsyncIsExposedWithACertificateOrByName(t *testing.T) {
	for title, want := range map[string]struct{ secret, authorities string }{
		"rsync for EMCO": {"healthscope-rsync-tls", "callers"}, "rsync in the clear": {}, "A&AI and EMCO": {},
	} {
		objects := render(t, installations[title])
		c := configuration(t, objects, "healthscope-controller").Rsync
		d := one[appsv1.Deployment](t, objects, "Deployment", "healthscope-controller")
		if got := [2]string{secretOf(d, "rsync-tls"), secretOf(d, "rsync-ca")}; got != [2]string{want.secret, want.authorities} {
			t.Errorf("%s: the Secrets are %q, want %+v", title, got, want)
		}
		if exposed := len(named(objects, "Service", "healthscope-rsync")) == 1; exposed != c.Enabled {
			t.Errorf("%s: there is a Service: %t", title, exposed)
		}
		if c.Enabled && (c.GRPC.BindAddress != ":9031" || (c.GRPC.CertFile == "") != c.GRPC.AllowPlaintext || (c.GRPC.ClientCAFile != "") != (want.authorities != "")) {
			t.Errorf("%s: the server is configured as %+v", title, *c.GRPC)
		}
	}
}

// secretOf returns the name of the Secret in a volume, or an empty string.
func secretOf(d appsv1.Deployment, volume string) string {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name == volume && v.Secret != nil {
			return v.Secret.SecretName
		}
	}
	return ""
}

func TestCertificatesAreForTheServices(t *testing.T) {
	objects := render(t, installations["TLS from cert-manager"])
	var got []string
	for _, what := range []string{"api", "metrics"} {
		found := named(objects, "Certificate", "healthscope-"+what)
		if len(found) != 1 {
			t.Fatalf("there are %d certificates for %s", len(found), what)
		}
		list, _, _ := unstructured.NestedStringSlice(found[0].Object, "spec", "dnsNames")
		got = append(got, list...)
	}
	for _, name := range []string{"healthscope-api", "healthscope-controller-metrics", "healthscope-monitor-metrics"} {
		if !slices.Contains(got, name+".healthscope-system.svc") || len(named(objects, "Service", name)) != 1 {
			t.Errorf("the certificates are for %q; want also Service %q", got, name)
		}
	}
	if !slices.Contains(got, "health.example.org") {
		t.Errorf("the certificates are for %q; want also the user's own name", got)
	}
}

// endpoint returns the one endpoint of a ServiceMonitor.
func endpoint(t *testing.T, objects []*unstructured.Unstructured, name string) map[string]any {
	t.Helper()
	found := named(objects, "ServiceMonitor", name)
	if len(found) != 1 {
		t.Fatalf("there are %d ServiceMonitors %q", len(found), name)
	}
	list, _, _ := unstructured.NestedSlice(found[0].Object, "spec", "endpoints")
	e, _ := list[0].(map[string]any)
	return e
}

func TestServiceMonitors(t *testing.T) {
	for title, want := range map[string]string{
		"observed": `
authorization: {type: Bearer, credentials: {name: healthscope-metrics-reader, key: token}}
tlsConfig: {insecureSkipVerify: true}`,
		"TLS from Secrets": `
authorization: {type: Bearer, credentials: {name: healthscope-metrics-reader, key: token}}
interval: 30s
scrapeTimeout: 10s
tlsConfig: {serverName: healthscope-monitor-metrics.healthscope-system.svc, ca: {secret: {name: metrics, key: ca.crt}}}`,
		"TLS from another authority": `
authorization: {type: Bearer, credentials: {name: healthscope-metrics-reader, key: token}}
tlsConfig: {serverName: healthscope-monitor-metrics.healthscope-system.svc, ca: {configMap: {name: roots, key: ca.pem}}}`,
		"another reader of metrics": `
authorization: {credentials: {name: mine, key: token}}
tlsConfig: {insecureSkipVerify: true}`,
	} {
		objects := render(t, installations[title])
		expected := map[string]any{"port": "metrics", "scheme": "https", "honorLabels": true}
		if err := yaml.Unmarshal([]byte(want), &expected); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected, endpoint(t, objects, "healthscope-monitor")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
		own := len(named(objects, "Secret", "healthscope-metrics-reader"))
		if (own == 1) != strings.Contains(want, "healthscope-metrics-reader") {
			t.Errorf("%s: %d Secrets for the token of the reader", title, own)
		}
	}
}

func TestCredentialsAreFiles(t *testing.T) {
	objects := render(t, installations["A&AI and EMCO"])
	c := configuration(t, objects, "healthscope-controller")
	d := one[appsv1.Deployment](t, objects, "Deployment", "healthscope-controller")
	if *c.Inventory.ResyncSeconds != 1234567 || len(c.HealthCheckExprs) != 1 || c.HealthCheckExprs[0].Current != `status.phase == "{{ Running }}"` {
		t.Errorf("the configuration is not the one that was given: %+v", c)
	}
	for volume, want := range map[string]struct{ secret, file, got string }{
		"inventory-credentials":  {"aai", "password", c.Inventory.PasswordFile},
		"inventory-ca":           {"aai-ca", "ca.crt", c.Inventory.CAFile},
		"inventory-tls":          {"aai-tls", "tls.key", c.Inventory.KeyFile},
		"appcontext-credentials": {"etcd", "username", c.AppContext.UsernameFile},
		"appcontext-ca":          {"etcd-ca", "ca.crt", c.AppContext.CAFile},
		"appcontext-tls":         {"etcd-tls", "tls.crt", c.AppContext.CertFile},
	} {
		if got := secretOf(d, volume); got != want.secret || want.got != "/etc/healthscope/"+volume+"/"+want.file {
			t.Errorf("%s: Secret %q, file %q", volume, got, want.got)
		}
	}
	if monitor := configuration(t, objects, "healthscope-monitor"); monitor.Inventory != nil || monitor.AppContext != nil || len(monitor.HealthCheckExprs) != 1 {
		t.Errorf("the monitor's configuration is %+v; want the rules, and nothing of A&AI and etcd", monitor)
	}
}

// TestRightsOfTheMonitorFollowItsConfiguration checks that each option has its right, and each right its option.
func TestRightsOfTheMonitorFollowItsConfiguration(t *testing.T) {
	for values, want := range map[string][]string{
		`{}`:                        nil,
		`{monitor: {limitKiB: 99}}`: nil,
		`{monitor: {kinds: [{apiVersion: batch/v1, kind: CronJob}, {apiVersion: v1, kind: Service}]}}`: nil,
		`{monitor: {kinds: [{apiVersion: cert-manager.io/v1, kind: Certificate}]}}`:                    {"discovery"},
		`{monitor: {discover: true}}`: {"discovery"}, `{monitor: {discover: false}}`: nil,
		`{monitor: {kinds: [{apiVersion: v1, kind: Secret}]}}`: {"secrets"}, `{monitor: {trustedNamespaces: [vfw]}}`: {"trusted"},
		`{monitor: {createBundles: {}}}`: {"createbundles"}, `{monitor: {createBundles: {labelKey: app}}}`: {"createbundles"},
	} {
		expected := []string{"healthscope-monitor", "healthscope-monitor-kinds"}
		for _, option := range want {
			expected = append(expected, "healthscope-monitor-"+option)
		}
		slices.Sort(expected)
		objects := render(t, "controller: {enabled: false}\nconfig: "+values)
		for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
			got := slices.DeleteFunc(having(objects, kind), func(name string) bool { return !strings.HasPrefix(name, kind+"//healthscope-monitor") })
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], kind+"//")
			}
			if diff := cmp.Diff(expected, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", values, kind, diff)
			}
		}
	}
}

// TestTheGroupsOfKubernetes checks that the chart knows the API groups of Kubernetes. Kinds of other groups may be added and removed, and the
// monitor needs an additional right to notice that.
func TestTheGroupsOfKubernetes(t *testing.T) {
	scheme := runtime.NewScheme() // Other packages may add to client-go's.
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	groups := sets.New[string]()
	for _, gv := range scheme.PrioritizedVersionsAllGroups() {
		groups.Insert(gv.Group)
	}
	var kinds []string
	for _, group := range sets.List(groups) {
		kinds = append(kinds, fmt.Sprintf("{apiVersion: %s, kind: Any}", strings.TrimPrefix(group+"/v1", "/")))
	}
	objects := render(t, fmt.Sprintf("config: {monitor: {kinds: [%s]}}", strings.Join(kinds, ", ")))
	if len(named(objects, "ClusterRole", "healthscope-monitor-discovery")) > 0 {
		t.Errorf("one of %q is not taken for Kubernetes' own", kinds)
	}
}

func TestNetworkPolicies(t *testing.T) {
	ports := func(title, name string) (in, out []string) {
		p := one[networkingv1.NetworkPolicy](t, render(t, installations[title]), "NetworkPolicy", name)
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				in = append(in, fmt.Sprintf("%s from %d", port.Port.String(), len(rule.From)))
			}
		}
		for _, rule := range p.Spec.Egress {
			for _, port := range rule.Ports {
				out = append(out, port.Port.String())
			}
		}
		return in, out
	}
	for _, c := range []struct {
		title, name string
		in, out     []string
	}{
		{"A&AI and EMCO", "healthscope-controller", []string{"probes from 0", "metrics from 0"}, []string{"53", "53", "5353", "5353", "443", "6443", "8443", "2379"}},
		{"A&AI and EMCO", "healthscope-monitor", []string{"probes from 0", "metrics from 0"}, []string{"53", "53", "5353", "5353", "443", "6443"}},
		{"locked up", "healthscope-controller", []string{"probes from 0", "metrics from 1", "api from 1"}, []string{"1053", "1053", "6443", "8443"}},
	} {
		in, out := ports(c.title, c.name)
		if diff := cmp.Diff([][]string{c.in, c.out}, [][]string{in, out}); diff != "" {
			t.Errorf("%s, %s (-want +got):\n%s", c.title, c.name, diff)
		}
	}
}

func TestPortsOfURLs(t *testing.T) {
	for url, want := range map[string]string{
		"https://aai.onap:8443": "8443", "https://aai.onap": "443", "http://aai.onap": "80", "http://[2001:db8::1]:30233": "30233", "https://[2001:db8::1]": "443",
	} {
		objects := render(t, fmt.Sprintf("networkPolicy: {enabled: true, apiServerPorts: [1]}\nconfig: {inventory: {url: %q}}", url))
		p := one[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", "healthscope-controller")
		if got := p.Spec.Egress[len(p.Spec.Egress)-1].Ports[0].Port.String(); got != want {
			t.Errorf("%s: port %s", url, got)
		}
	}
}

func TestCRDs(t *testing.T) {
	crds := []string{"CustomResourceDefinition"}
	expect(t, render(t, `crds: {enabled: false}`), crds)
	expect(t, render(t, installations["beside OAM and EMCO"]), crds)
	expect(t, render(t, `crds: {healthScope: false}`), crds, "CustomResourceDefinition//resourcebundlestates.k8splugin.io")
	const ofOAM = "CustomResourceDefinition//applicationconfigurations.core.oam.dev"
	with := "{config: {oam: {applicationConfigurations: true}}, crds: {healthScope: false, resourceBundleState: false, applicationConfigurations: %t}}"
	expect(t, render(t, fmt.Sprintf(with, true)), crds, ofOAM)
	for _, o := range named(render(t, fmt.Sprintf(with, true)), crds[0], "applicationconfigurations.core.oam.dev") {
		if o.GetAnnotations()["helm.sh/resource-policy"] != "keep" || o.GetLabels()["helm.sh/chart"] == "" {
			t.Errorf("%s has annotations %v and labels %v", o.GetName(), o.GetAnnotations(), o.GetLabels())
		}
	}
	expect(t, render(t, fmt.Sprintf(with, false)), crds)
	for _, keep := range []bool{true, false} {
		for _, o := range render(t, fmt.Sprintf(`crds: {keep: %t}`, keep)) {
			if o.GetKind() != "CustomResourceDefinition" {
				continue
			}
			if got := o.GetAnnotations()["helm.sh/resource-policy"] == "keep"; got != keep {
				t.Errorf("crds.keep is %t, and %s is kept: %t", keep, o.GetName(), got)
			}
			if o.GetAnnotations()["controller-gen.kubebuilder.io/version"] == "" {
				t.Errorf("%s has lost an annotation: %v", o.GetName(), o.GetAnnotations())
			}
		}
	}
}

func TestRightsBySomebodyElse(t *testing.T) {
	expect(t, render(t, installations["rights by somebody else"]), []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Namespace", "ServiceAccount"},
		"ServiceAccount/healthscope-system/healthscope-metrics-reader")
}

// TestUsersWithoutATokenReadTheStatus checks that the chart creates, on demand, the ServiceAccount whose token `healthscope status` uses, and its right.
func TestUsersWithoutATokenReadTheStatus(t *testing.T) {
	const reader = "healthscope-status-reader"
	objects := render(t, installations["status for users without a token"])
	account := one[corev1.ServiceAccount](t, objects, "ServiceAccount", reader)
	binding := one[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding", reader)
	if diff := cmp.Diff([]rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: Namespace}}, binding.Subjects); diff != "" || binding.RoleRef.Name != reader {
		t.Errorf("it is bound to %+v, subjects (-want +got):\n%s", binding.RoleRef, diff)
	}
	if objects := render(t); len(named(objects, "ServiceAccount", reader)) > 0 || len(named(objects, "ClusterRoleBinding", reader)) > 0 {
		t.Error("it is made by default")
	}
}

// TestAPortForPortForward covers ports below 1024, which only privileged programs can use by default. The controller is not privileged.
func TestAPortForPortForward(t *testing.T) {
	for port, want := range map[int][]corev1.Sysctl{
		80:   {{Name: "net.ipv4.ip_unprivileged_port_start", Value: "80"}},
		8083: nil,
	} {
		objects := render(t, fmt.Sprintf("api: {port: %d}", port))
		if got, want := configuration(t, objects, "healthscope-controller").API.AnonymousBindAddress, fmt.Sprintf("127.0.0.1:%d", port); got != want {
			t.Errorf("the controller listens on %q; want %q", got, want)
		}
		for _, component := range []string{"controller", "monitor"} {
			context := one[appsv1.Deployment](t, objects, "Deployment", "healthscope-"+component).Spec.Template.Spec.SecurityContext
			if component == "monitor" {
				want = nil
			}
			if diff := cmp.Diff(want, context.Sysctls); diff != "" || context.RunAsNonRoot == nil || !*context.RunAsNonRoot {
				t.Errorf("port %d: security context of the %s is %+v; sysctls (-want +got):\n%s", port, component, context, diff)
			}
		}
	}
}

// TestProbesAreEnabledWhereTheRightIsGiven checks that the value grants the rights in each namespace, and enables probes.
func TestProbesAreEnabledWhereTheRightIsGiven(t *testing.T) {
	objects := render(t, "probeNamespaces: [shop, bank]")
	if !configuration(t, objects, "healthscope-controller").Probes.Enabled {
		t.Error("the controller makes no probes")
	}
	for _, namespace := range []string{"shop", "bank"} {
		for _, kind := range []string{"Role", "RoleBinding"} {
			if name := kind + "/" + namespace + "/healthscope-controller-probes"; !slices.Contains(having(objects, kind), name) {
				t.Errorf("%s is not made: %v", name, having(objects, kind))
			}
		}
	}
	objects = render(t)
	if configuration(t, objects, "healthscope-controller").Probes.Enabled {
		t.Error("the controller makes probes by default")
	}
	for _, name := range having(objects, "Role") {
		if strings.HasSuffix(name, "-probes") {
			t.Errorf("%s is made by default", name)
		}
	}
}

// TestDeploymentIsAllowedWhereTheValueSays checks that the controller may deploy in the value's namespaces, and by default in none.
func TestDeploymentIsAllowedWhereTheValueSays(t *testing.T) {
	const suffix = "/healthscope-controller-deploy-kinds"
	bindings := having(render(t, "deployNamespaces: [shop, bank]"), "RoleBinding")
	for _, namespace := range []string{"shop", "bank"} {
		if !slices.Contains(bindings, "RoleBinding/"+namespace+suffix) {
			t.Errorf("there is no binding in namespace %s: %v", namespace, bindings)
		}
	}
	objects := render(t)
	for _, name := range slices.Concat(having(objects, "ClusterRole"), having(objects, "RoleBinding"), having(objects, "ClusterRoleBinding")) {
		if strings.Contains(name, "-controller-deploy") {
			t.Errorf("%s is made by default", name)
		}
	}
}
