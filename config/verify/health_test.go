package verify

import (
	"go/ast"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai/mapping"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// epoch is the time in tests that need one.
var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestStatesAreDocumented(t *testing.T) {
	p := readPage(t, "health.md")
	var want []string
	for _, s := range healthscope.States() {
		want = append(want, string(s))
	}
	if diff := cmp.Diff(want, firstCodes(p.rows(t, "state"), "state")); diff != "" {
		t.Errorf("%s: states, best first (-code +page):\n%s", p.name, diff)
	}
}

func TestRulesAreDocumented(t *testing.T) {
	p := readPage(t, "health.md")
	var want []string
	for _, e := range literal(t, sources(t, "healthscope/rules"), "rulesByKind") {
		if kind := groupKind(e); kind != "" {
			want = append(want, kind)
		} else {
			t.Errorf("an entry of rulesByKind is not read by this test any more: %T", e)
		}
	}
	rows := p.rows(t, "kind")
	p.documents(t, "kind with a rule of its own", want, firstCodes(rows, "kind"))
	for _, r := range rows {
		for _, state := range []healthscope.State{healthscope.Ready, healthscope.Pending, healthscope.Failed} {
			if r[string(state)] == "" {
				t.Errorf("%s: say when %s is %s", p.name, r["kind"], state)
			}
		}
	}
}

// groupKind returns Kind.group of the key {"group", "Kind"} of an entry of a map literal; empty when it is none.
func groupKind(e ast.Expr) string {
	pair, ok := e.(*ast.KeyValueExpr)
	if !ok {
		return ""
	}
	key, ok := pair.Key.(*ast.CompositeLit)
	if !ok || len(key.Elts) != 2 {
		return ""
	}
	group, ok1 := text(key.Elts[0])
	kind, ok2 := text(key.Elts[1])
	if !ok1 || !ok2 {
		return ""
	}
	return strings.TrimSuffix(kind+"."+group, ".")
}

func TestTimeLimitsAreDocumented(t *testing.T) {
	p := readPage(t, "health.md")
	var c configv1alpha1.Configuration
	configv1alpha1.SetDefaults(&c)
	want := map[string]int32{
		"policy.pendingTimeoutSeconds":  *c.Policy.PendingTimeoutSeconds,
		"policy.notPresentGraceSeconds": *c.Policy.NotPresentGraceSeconds,
		"policy.noStatusGraceSeconds":   *c.Policy.NoStatusGraceSeconds,
		"policy.failureGraceSeconds":    *c.Policy.FailureGraceSeconds,
		"policy.recoveryHoldSeconds":    *c.Policy.RecoveryHoldSeconds,
	}
	for _, r := range p.rows(t, "limit") {
		for _, field := range codes(r["limit"]) {
			seconds, ok := want[field]
			if ok && code(r["default"]) != strconv.Itoa(int(seconds)) {
				t.Errorf("%s: the default of %s is %d; the row says %s", p.name, field, seconds, r["default"])
			}
			delete(want, field)
		}
	}
	for field := range want {
		t.Errorf("%s: add a row for %s", p.name, field)
	}
}

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

// wordOfOAM returns OAM's word for the health of a workload.
func wordOfOAM(m healthscope.Member) string {
	words := map[healthscope.Health]corev1alpha2.HealthStatus{
		healthscope.Healthy: corev1alpha2.StatusHealthy, healthscope.Unhealthy: corev1alpha2.StatusUnhealthy, healthscope.HealthUnknown: corev1alpha2.StatusUnknown,
	}
	return string(words[healthscope.Summarize([]healthscope.Member{m}).Health(100)])
}

// wordInInventory says what becomes of a resource in A&AI: the value of its label, or what the page says in words.
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
