package charted

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/healthscope/healthscope/e2e/installation"
)

// places are namespaces in which accounts have different rights: any, that of the release, and that of the members' Secrets.
var places = []string{"default", installation.Namespace, "healthscope-clusters"}

// member are the manifests of the rights that a hub has in its members.
var member = []string{"role.yaml", "kinds.yaml", "binding.yaml"}

// may returns what the API server says that an account may do.
func may(ctx context.Context, account string) string {
	GinkgoHelper()
	var text strings.Builder
	for _, place := range places {
		out := kubectl(ctx, "auth", "can-i", "--list", "--namespace", place, "--as", "system:serviceaccount:"+installation.Namespace+":"+account)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		for i, line := range lines {
			lines[i] = strings.TrimRight(line, " ")
		}
		slices.Sort(lines[1:])
		text.WriteString("# in namespace " + place + "\n" + strings.Join(lines, "\n") + "\n\n")
	}
	return text.String()
}

var _ = DescribeTable("The rights of a ServiceAccount", func(ctx context.Context, account string, manifests []string) {
	for _, name := range manifests {
		path := filepath.Join(root, "config", "rbac", "member", name)
		kubectl(ctx, "apply", "-f", path)
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "-f", path) })
	}
	file := filepath.Join("testdata", "can-i", account+".txt")
	got := may(ctx, account)
	if *update {
		Expect(os.WriteFile(file, []byte(got), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	Expect(got).To(Equal(string(want)), "go test ./e2e/charted -update writes what the API server says")
},
	Entry("the controller's", SpecTimeout(time.Minute), "healthscope-controller", nil),
	Entry("the monitor's", SpecTimeout(time.Minute), "healthscope-monitor", nil),
	Entry("Prometheus's", SpecTimeout(time.Minute), "healthscope-metrics-reader", nil),
	Entry("the hub's in its members", SpecTimeout(time.Minute), "healthscope-hub", member),
)
