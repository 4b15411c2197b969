package rsync_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// series returns the metrics in a registry: values by name and values of labels.
func series(registry *prometheus.Registry) map[string]float64 {
	GinkgoHelper()
	families, err := registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			parts := []string{family.GetName()}
			for _, l := range m.GetLabel() {
				parts = append(parts, l.GetValue())
			}
			all[strings.Join(parts, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

var _ = Describe("The metrics of rsync", func() {
	It("say what was handled, what clusters have answered, and that another program is at work", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite("1260", namespace, "a").add("a", edge01, "good+ConfigMap", configMap("good")).values)
		put(ctx, newComposite("1261", namespace, "a").add("a", edge01, "no name+ConfigMap", configMap("no name")).values)
		put(ctx, newComposite("1262", namespace, "a").add("a", edge02, "late+ConfigMap", configMap("late")).values)
		registry, n := prometheus.NewRegistry(), newNetwork()
		n.set(true)
		start(n, func(o *rsync.Options) { o.Registry = registry })
		instantiate(ctx, "1260")
		ends(ctx, "1261", deploy.EventInstantiate, "InstantiateFailed")
		Eventually(series).WithArguments(registry).Should(Equal(map[string]float64{
			"healthscope_rsync_standing_down":                  0,
			"healthscope_rsync_events_total Instantiate Done":  1,
			"healthscope_rsync_events_total Instantiate Error": 1,
			"healthscope_rsync_answers_total acknowledged":     3, // Two bundles, and an object.
			"healthscope_rsync_answers_total refused":          1,
		}))
		enqueue(ctx, "1262", deploy.EventInstantiate)
		Eventually(series).WithArguments(registry).Should(HaveKeyWithValue("healthscope_rsync_answers_total unanswered", BeNumerically(">", 0)))

		put(ctx, values{"/context/1262/rsync/AppContextEventQueue/": `{"AcQueue":[{"event":"Instantiate","status":"Pending"},{"event":"Instantiate","status":"Pending"}]}`})
		Eventually(series).WithArguments(registry).Should(HaveKeyWithValue("healthscope_rsync_standing_down", 1.0))
	})
})
