package charted

import (
	"context"
	"net/http"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// theirs are values for a cluster in which another project owns the CRDs.
const theirs = "crds: {healthScope: false, resourceBundleState: false}\n"

// anothers is a part of the message that a program logs when it notices another project's CRD.
const anothers = "another project's CRD"

var _ = Describe("A release where OAM and EMCO own the CRDs", func() {
	It("says that it is not ready, until the CRDs are applied as its page says", func(ctx context.Context) {
		ours := filepath.Join(root, "config", "crd")
		Expect(hs.Uninstall(ctx)).To(Succeed())
		kubectl(ctx, "delete", "-k", ours)
		kubectl(ctx, "apply", "-f", filepath.Join("testdata", "oam-emco-crds.yaml"))
		DeferCleanup(func(ctx SpecContext) {
			// The next specs need CRDs without another owner, as after an uninstallation.
			Expect(hs.Uninstall(ctx)).To(Succeed())
			kubectl(ctx, "delete", "-k", ours)
			reinstall(ctx, withMonitors)
			applySample(ctx)
			isHealthy(ctx)
		})
		Expect(hs.Install(ctx, withMonitors)).To(MatchError(ContainSubstring("ownership")))
		reinstall(ctx, withMonitors, theirs)
		warned := map[string]int{"controller": logged("controller", anothers), "monitor": logged("monitor", anothers)}

		By("having objects of kinds that drop what is written")
		for _, name := range []string{"1-application.yaml", "2-bundles.yaml"} {
			kubectl(ctx, "apply", "-f", filepath.Join(root, "config", "samples", "vfw", name))
		}
		kubectl(ctx, "apply", "-f", filepath.Join("testdata", "oam-scope.yaml"))
		for _, program := range []string{"controller", "monitor"} {
			Eventually(ctx, hs.Readyz).WithArguments(program).Should(Equal(http.StatusInternalServerError), program)
			Eventually(logged).WithArguments(program, anothers).Should(BeNumerically(">", warned[program]), program)
		}

		By("applying ours over theirs")
		kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", ours)
		applySample(ctx)
		isHealthy(ctx)
		for _, program := range []string{"controller", "monitor"} {
			Eventually(ctx, hs.Readyz).WithArguments(program).Should(Equal(http.StatusOK), program)
		}
	}, SpecTimeout(3*time.Minute))
})
