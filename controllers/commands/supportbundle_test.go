package commands_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/suite"
)

// canary is part of every secret. No archive may contain it.
const canary = "canary-S3cr3t"

// unpack returns the files of a support bundle.
func unpack(archive io.Reader) map[string]string {
	GinkgoHelper()
	zip, err := gzip.NewReader(archive)
	Expect(err).NotTo(HaveOccurred())
	files := map[string]string{}
	for r := tar.NewReader(zip); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(r)
		Expect(err).NotTo(HaveOccurred())
		files[strings.TrimPrefix(header.Name, "healthscope-support/")] = string(content)
	}
}

// runSupportBundle runs the command support-bundle in a directory.
func runSupportBundle(ctx context.Context, dir string, args ...string) (code int, out, errOut string) {
	GinkgoHelper()
	return execute(ctx, dir, program, append([]string{"support-bundle"}, args...)...)
}

// kubeconfigOf writes a kubeconfig file for a URL without credentials, and returns its path.
func kubeconfigOf(dir, server string) string {
	GinkgoHelper()
	path := filepath.Join(dir, "kubeconfig")
	Expect(os.WriteFile(path, fmt.Appendf(nil, "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: %q}}]\nusers: [{name: a, user: {token: %s}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n", server, canary), 0o600)).To(Succeed())
	return path
}

// withKubelet returns the URL of an API server that serves logs and metrics as if a kubelet ran the pods. It forwards all other
// requests.
func withKubelet() string {
	GinkgoHelper()
	target, err := url.Parse(plane.Config().Host)
	Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization")
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/log"):
			fmt.Fprintf(w, "a line of the log, %s\nAuthorization: Bearer %s\npassword=%s\n", r.URL.RawQuery, canary, canary)
		case strings.HasSuffix(r.URL.Path, "/proxy/metrics"):
			fmt.Fprint(w, "healthscope_cluster_up{cluster=\"west\"} 1\n")
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	DeferCleanup(server.Close)
	return server.URL
}

// newInstallation creates the objects of an installation in a cluster, with canaries wherever secrets may be.
func newInstallation(ctx context.Context) (namespace, settings string) {
	GinkgoHelper()
	namespace = suite.NewNamespace(ctx, api)
	annotated := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{
			corev1.LastAppliedConfigAnnotation: `{"token": "` + canary + `"}`, "example.org/note": canary, "healthscope.core.oam.dev/cluster-name": "west+bonn",
		}}
	}
	settings = fmt.Sprintf("# The password is %s\napiVersion: config.healthscope.io/v1alpha1\nkind: Configuration\nclusterName: hub\nunknown: %s\ninventory:\n  url: https://me:%s@aai.example\n  passwordFile: /etc/aai/password\n", canary, canary, canary)
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "hub"}, Annotations: map[string]string{"example.org/token": canary}},
		Spec: corev1.PodSpec{AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{
			Name: "controller", Image: "example.org/healthscope:1", Args: []string{"controller", "--config=/etc/healthscope/config.yaml", "--password=" + canary},
			Env:   []corev1.EnvVar{{Name: "AAI", Value: canary}},
			Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080}},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: "/healthz", Port: intstr.FromInt32(8081), HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Auth", Value: canary}},
			}}},
		}}},
	}
	secret := &corev1.Secret{ObjectMeta: annotated("west"), StringData: map[string]string{corev1alpha2.KubeconfigKey: canary, "password": canary}}
	secret.Labels = map[string]string{corev1alpha2.LabelClusterKubeconfig: "true"}
	bundle := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: annotated("5-web")}
	ours := &corev1.Pod{ObjectMeta: annotated("hub-1"), Spec: template.Spec}
	ours.Labels = ourLabels
	for _, o := range []client.Object{
		secret,
		&corev1.ConfigMap{ObjectMeta: annotated("settings"), Data: map[string]string{"config.yaml": settings}},
		&corev1.ConfigMap{ObjectMeta: annotated("others"), Data: map[string]string{"note": canary}},
		&corev1.ConfigMap{ObjectMeta: annotated("healthscope-clusters"), Data: map[string]string{"clusters": "west+bonn is Connected"}},
		&appsv1.Deployment{ObjectMeta: annotated("hub"), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}},
		ours,
		&corev1alpha2.HealthScope{ObjectMeta: annotated("shop")}, bundle,
		&corev1.Event{
			ObjectMeta: annotated("event"), Message: "a scope has failed, url https://me:" + canary + "@host", Reason: "Failed",
			InvolvedObject: corev1.ObjectReference{Kind: "HealthScope", Namespace: namespace, Name: "shop"},
		},
	} {
		Expect(api.Create(ctx, o)).To(Succeed())
		// Other specs read the whole cluster, in which an unreadable bundle would be reported.
		DeferCleanup(func(ctx context.Context) error { return client.IgnoreNotFound(api.Delete(ctx, o)) })
	}
	bundle.Status.PodStatuses = k8spluginv1alpha1.RawList(`[{"spec": {"containers": [{"env": [{"name": "X", "value": "` + canary + `"}]}]}}]`)
	bundle.Status.Resources = []k8spluginv1alpha1.ResourceHealth{{Kind: "Pod", Name: "web-0", Namespace: namespace, State: "Ready"}}
	Expect(api.Status().Update(ctx, bundle)).To(Succeed())
	return namespace, settings
}

var _ = Describe("The command support-bundle", func() {
	It("writes what is of use, and no secrets", func(ctx SpecContext) {
		namespace, settings := newInstallation(ctx)
		dir := GinkgoT().TempDir()
		Expect(os.WriteFile(filepath.Join(dir, "given"), []byte(settings), 0o600)).To(Succeed())
		flags := []string{"--kubeconfig", kubeconfigOf(dir, withKubelet()), "--namespace", namespace, "--hub-namespace", namespace, "--config", "given", "--log-lines", "7"}
		code, _, errOut := runSupportBundle(ctx, dir, flags...)
		Expect(code).To(Equal(0), errOut)
		found, err := filepath.Glob(filepath.Join(dir, "healthscope-support-*Z.tar.gz"))
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(1))
		Expect(errOut).To(HavePrefix(filepath.Base(found[0]) + ": "))
		data, err := os.ReadFile(found[0])
		Expect(err).NotTo(HaveOccurred())
		files := unpack(bytes.NewReader(data))
		for name, content := range files {
			Expect(content).NotTo(ContainSubstring(canary), name)
			Expect(content).NotTo(ContainSubstring(canary[:6]), name)
		}
		Expect(errOut).NotTo(ContainSubstring(canary))
		for name, want := range map[string]string{
			"version.txt":                        "healthscope ",
			"server-version.json":                `"gitVersion"`,
			"crds.yaml":                          "name: healthscopes.core.oam.dev",
			"clusters.yaml":                      "west+bonn is Connected",
			"clusters-secrets.yaml":              "healthscope.core.oam.dev/cluster-name: west+bonn",
			"deployments.yaml":                   "image: example.org/healthscope:1",
			"pods.yaml":                          "--config=/etc/healthscope/config.yaml",
			"logs/hub-1-controller.log":          "tailLines=7",
			"metrics/hub-1.txt":                  "healthscope_cluster_up",
			"healthscopes.yaml":                  "name: shop",
			"resourcebundlestates.yaml":          "podStatuses: 1 objects, (not shown)",
			"events-healthscope.yaml":            "a scope has failed",
			"configuration/given.yaml":           "passwordFile: /etc/aai/password",
			"configuration/settings-config.yaml": "clusterName: hub",
			"leases.yaml":                        "",
			"errors.txt":                         "configuration/given.yaml cannot be used: ",
		} {
			Expect(files).To(HaveKeyWithValue(name, ContainSubstring(want)))
		}
		Expect(files["crds.yaml"]).To(And(ContainSubstring("name: resourcebundlestates.k8splugin.io"), ContainSubstring("culprits:")))
		Expect(files["clusters-secrets.yaml"]).To(MatchRegexp(`creationTimestamp: "\d`), "how old a cluster's credentials are")
		Expect(files["resourcebundlestates.yaml"]).To(ContainSubstring("name: web-0"))
		Expect(files).NotTo(HaveKey("configuration/others-note"))

		By("asking for less, on standard output")
		code, out, errOut := runSupportBundle(ctx, dir, append(flags, "--scopes=false", "-o", "-")...)
		Expect(code).To(Equal(0), errOut)
		Expect(unpack(strings.NewReader(out))).To(And(HaveKey("pods.yaml"), Not(HaveKey("healthscopes.yaml")), Not(HaveKey("resourcebundlestates.yaml"))))

		By("asking for the events about clusters, where their Secrets are elsewhere")
		elsewhere := suite.NewNamespace(ctx, api)
		Expect(api.Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: elsewhere, Name: "event"}, Message: "the token is not renewed", Reason: "TokenNotRenewed",
			InvolvedObject: corev1.ObjectReference{Kind: "Secret", Namespace: elsewhere, Name: "west"},
		})).To(Succeed())
		code, out, errOut = runSupportBundle(ctx, dir, append(flags, "--hub-namespace", elsewhere, "-o", "-")...)
		Expect(code).To(Equal(0), errOut)
		Expect(unpack(strings.NewReader(out))).To(And(HaveKey("events-"+namespace+".yaml"), HaveKeyWithValue("events-"+elsewhere+".yaml", ContainSubstring("TokenNotRenewed"))))

		By("writing to a file that exists")
		code, _, errOut = runSupportBundle(ctx, dir, append(flags, "-o", "given")...)
		Expect(code).To(Equal(1))
		Expect(errOut).To(ContainSubstring("cannot write a support bundle: cannot create the file: open given: file exists"))
	}, NodeTimeout(time.Minute))

	It("ends in time when the API server is away, or says nothing", func(ctx SpecContext) {
		release := make(chan struct{})
		silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		DeferCleanup(silent.Close)
		DeferCleanup(func() { close(release) })
		for _, server := range []string{"http://" + freeAddress(), silent.URL} {
			dir := GinkgoT().TempDir()
			code, out, errOut := runSupportBundle(ctx, dir, "--kubeconfig", kubeconfigOf(dir, server), "--timeout", "1s", "-o", "-")
			Expect(code).To(Equal(0), errOut)
			Expect(unpack(strings.NewReader(out))["errors.txt"]).To(And(ContainSubstring("the version of the API server: "), ContainSubstring("healthscopes.yaml: "), Not(ContainSubstring(canary))))
		}
	}, NodeTimeout(30*time.Second))
})
