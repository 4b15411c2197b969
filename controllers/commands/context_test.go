package commands_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/controllers/commands"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

var _ = Describe("healthscope context", func() {
	var (
		store      *appcontext.Store
		namespace  string
		folder     string
		configFile string
	)
	write := func(name, text string) string {
		GinkgoHelper()
		file := filepath.Join(folder, name)
		Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
		return file
	}
	ask := func(args ...string) string {
		GinkgoHelper()
		var out, errOut bytes.Buffer
		code := commands.Main(append([]string{"context", "--config", configFile}, args...), nil, &out, &errOut)
		Expect(code).To(BeZero(), errOut.String())
		return out.String()
	}
	BeforeEach(func(ctx SpecContext) {
		var etcd *controlplane.Etcd
		etcd, store = newStore(ctx)
		namespace, folder = suite.NewNamespace(ctx, api), GinkgoT().TempDir()
		config := fmt.Sprintf("clusterName: local+local\nappContext: {endpoints: [%q]}\n", etcd.Endpoint())
		configFile = write("config.yaml", "apiVersion: config.healthscope.io/v1alpha1\nkind: Configuration\n"+config)
		r := start(namespace, "controller")
		r.configureWithf("api: {bindAddress: '0', anonymousBindAddress: %q}\nrsync: {enabled: true}\n%s", r.api, config)
	})

	It("has an application deployed by the controller, and deleted", func(ctx SpecContext) {
		write("web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n")
		shop := write("shop.yaml", "project: retail\nname: shop\nversion: v1\ndeploymentIntentGroup: autumn\nnamespace: "+namespace+"\napps:\n- name: web\n  clusters: [local+local]\n  manifests: [web.yaml]\n")

		id := strings.TrimSpace(ask("apply", "-f", shop))
		Expect(ask("plan", id, "--hub-kubeconfig", plane.KubeconfigPath())).To(ContainSubstring("1 to create, 0 to change"))
		Expect(ask("instantiate", id, "--wait")).To(Equal("Instantiate of context " + id + " is in the queue\ncontext " + id + " is Instantiated\n"))
		Expect(ask("list")).To(MatchRegexp(id + `\s+Instantiated\s+retail/shop/v1/autumn`))
		Expect(ask("show", id)).To(MatchRegexp(`event Instantiate: Done\n(.*\n)*web\s+local\+local\s+web\+ConfigMap\s+Applied\s+-`))
		name := types.NamespacedName{Namespace: namespace, Name: "web"}
		Expect(api.Get(ctx, name, &corev1.ConfigMap{})).To(Succeed())

		write("web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: api\n")
		next := strings.TrimSpace(ask("apply", "-f", shop))
		Expect(ask("plan", next, "--from", id, "--hub-kubeconfig", plane.KubeconfigPath())).To(And(
			MatchRegexp(`api\+ConfigMap\s+create`), MatchRegexp(`web\+ConfigMap\s+delete`), ContainSubstring("1 to create, 0 to change, 1 to delete, 0 unchanged")))
		Expect(ask("update", id, next, "--wait")).To(Equal("Update of context " + id + " to " + next + " is in the queue\ncontext " + next + " is Instantiated\n"))
		Expect(ask("list")).To(And(MatchRegexp(id+`\s+Updated`), MatchRegexp(next+`\s+Instantiated`)))
		Expect(ask("show", next)).To(MatchRegexp(`resources are those of context ` + id + `\n(.*\n)*web\s+local\+local\s+web\+ConfigMap\s+Deleted(.*\n)*web\s+local\+local\s+api\+ConfigMap\s+Applied`))
		ask("rollback", next, id)
		Eventually(func() string { return ask("list") }, "60s").Should(And(MatchRegexp(next+`\s+Updated`), MatchRegexp(id+`\s+Instantiated`)))
		Expect(api.Get(ctx, name, &corev1.ConfigMap{})).To(Succeed())

		write("web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: 'no name'\n")
		wrong := strings.TrimSpace(ask("apply", "-f", shop))
		var out, errOut bytes.Buffer
		Expect(commands.Main([]string{"context", "--config", configFile, "update", id, wrong, "--wait"}, nil, &out, &errOut)).To(Equal(1), errOut.String())
		Expect(out.String()).To(MatchRegexp(`web\s+local\+local\s+no name\+ConfigMap\s+Failed\s+.*Invalid value: "no name"`))
		ask("rollback", wrong, id, "--wait")
		Expect(ask("stop", id)).To(Equal("context " + id + " is stopped\n"))

		ask("terminate", id, "--wait")
		said := []appcontext.Write{{Handle: deploy.StandingDownHandle, Sidecar: true, Value: "another program is at work"}}
		Expect(store.WriteLevels(ctx, "", said, appcontext.Condition{})).To(Succeed())
		for _, args := range [][]string{{"list"}, {"show", id}} {
			Expect(ask(args...)).To(HavePrefix("nothing is deployed until the controller is started again: another program is at work\n"))
		}
		Expect(ask("list")).To(MatchRegexp(id + `\s+Terminated`))
		Expect(apierrors.IsNotFound(api.Get(ctx, name, &corev1.ConfigMap{}))).To(BeTrue())
	}, SpecTimeout(3*time.Minute))

	It("shows what an app waits for, as long as it does", func() {
		write("db.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: db}\nspec:\n  selector: {matchLabels: {app: db}}\n  template:\n    metadata: {labels: {app: db}}\n    spec: {containers: [{name: db, image: example.org/db}]}\n")
		write("web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")
		shop := write("shop.yaml", "project: retail\nname: shop\nversion: v1\ndeploymentIntentGroup: autumn\nnamespace: "+namespace+"\napps:\n- {name: db, clusters: [local+local], manifests: [db.yaml]}\n- {name: web, clusters: [local+local], manifests: [web.yaml], dependsOn: [{app: db, state: Ready}]}\n")

		id := strings.TrimSpace(ask("apply", "-f", shop))
		ask("instantiate", id)
		const line = `(?m)^app web waits until app db is Ready: cluster local\+local: Deployment/db is `
		// Nothing runs the pods of the Deployment.
		Eventually(func() string { return ask("show", id) }, "60s").Should(MatchRegexp(line))
		ask("stop", id)
		Eventually(func() string { return ask("show", id) }, "60s").ShouldNot(MatchRegexp(line))
	})
})
