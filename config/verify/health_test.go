package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/healthscope/healthscope/aai/mapping"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// epoch is the time in tests that need one.
var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestWordsOfOthersAreDocumented(t *testing.T) {
	p := readPage(t, "health.md")
	results := map[string]healthscope.Result{"Pending and serving": {State: healthscope.Pending, Serving: true}}
	for _, s := range healthscope.States() {
		results[string(s)] = healthscope.Result{State: s}
	}
	for _, r := range p.rows(t, "result") {
		result, ok := results[r["result"]]
		if !ok {
			t.Errorf("%s: there is no result %q", p.name, r["result"])
			continue
		}
		delete(results, r["result"])
		result.Key = healthscope.Key{Cluster: "local", Group: "apps", Kind: "Deployment", Namespace: "default", Name: "x"}
		member := healthscope.Judge([]healthscope.Result{result}, healthscope.DefaultPolicy(), epoch).Members[0]
		if got := wordOfOAM(member); code(r["OAM"]) != got {
			t.Errorf("%s: OAM's word for %s is %s; the row says %s", p.name, r["result"], got, r["OAM"])
		}
		if got := wordInInventory(member); strings.Trim(r["A&AI"], "`") != got {
			t.Errorf("%s: in A&AI, of %s, it must say: %s; the row says %s", p.name, r["result"], got, r["A&AI"])
		}
	}
	for result := range results {
		t.Errorf("%s: add a row for the result %q", p.name, result)
	}
}

// wordOfOAM returns the health of a workload in OAM's terms.
func wordOfOAM(m healthscope.Member) string {
	words := map[healthscope.Health]corev1alpha2.HealthStatus{
		healthscope.Healthy: corev1alpha2.StatusHealthy, healthscope.Unhealthy: corev1alpha2.StatusUnhealthy, healthscope.HealthUnknown: corev1alpha2.StatusUnknown,
	}
	return string(words[healthscope.Summarize([]healthscope.Member{m}).Health(100)])
}

// wordInInventory returns the effect of a member on its object in A&AI: the value of its label, or the words of the page.
func wordInInventory(m healthscope.Member) string {
	e := mapping.Map(mapping.Resource{Member: m}, mapping.Options{
		Kinds: []string{"Deployment.apps"}, Regions: []configv1alpha1.Region{{Cluster: mapping.Wildcard, Namespace: mapping.Wildcard}},
	})
	switch e.Decision {
	case mapping.Write:
		for _, label := range e.Document.Labels {
			if status, ok := strings.CutPrefix(label, "status="); ok {
				return status
			}
		}
	case mapping.Remove:
		return "the object is removed"
	case mapping.Hold:
		return "what it holds is left as it is"
	case mapping.Exclude, mapping.Unmapped:
	}
	return "nothing"
}
