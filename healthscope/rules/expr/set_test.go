package expr_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules/expr"
)

// object reads an object from YAML.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// rulesOf reads rules as they stand in a configuration file, or in a Kustomization.
func rulesOf(t *testing.T, text string) []configv1alpha1.HealthCheckExpr {
	t.Helper()
	var exprs []configv1alpha1.HealthCheckExpr
	if err := yaml.UnmarshalStrict([]byte(text), &exprs); err != nil {
		t.Fatal(err)
	}
	return exprs
}

// certificates is the rule for certificates, in the form in which Flux documents one.
const certificates = `
- apiVersion: cert-manager.io/v1
  kind: Certificate
  inProgress: status.conditions.exists(e, e.type == 'Issuing' && e.observedGeneration == metadata.generation && e.status == 'True')
  failed: status.conditions.filter(e, e.type == 'Ready').all(e, e.observedGeneration == metadata.generation && e.status == 'False')
  current: status.conditions.filter(e, e.type == 'Ready').all(e, e.observedGeneration == metadata.generation && e.status == 'True')
`

// synced is a rule by one condition, for kinds without the condition Ready.
const synced = `
- apiVersion: bitnami.com/v1alpha1
  kind: SealedSecret
  failed: status.conditions.filter(e, e.type == 'Synced').all(e, e.status == 'False')
  current: status.conditions.filter(e, e.type == 'Synced').all(e, e.status == 'True')
`

// optional is a rule that reads fields that may be missing, with the optional syntax and with has.
const optional = `
- apiVersion: example.org/v1
  kind: Widget
  failed: has(status.error) && status.error != ''
  current: status.?phase.orValue('') in ['Up', 'Done'] && type(status) == map && type(string(1)) == string && status.?replicas.orValue(0) >= spec.replicas
`

// ratio is a rule that calculates.
const ratio = `[{apiVersion: example.org/v1, kind: Widget, current: 100 / int(status.total) > 1}]`

func TestRulesInTheFormOfFlux(t *testing.T) {
	certificate := func(generation, conditions string) string {
		return `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, generation: ` + generation + `}, status: {conditions: [` + conditions + `]}}`
	}
	sealed := func(generation, status string) string {
		return `{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, metadata: {name: a, generation: ` + generation + `}, status: {` + status + `}}`
	}
	const issued, refused, issuing = `{type: Ready, status: "True", observedGeneration: 2}`, `{type: Ready, status: "False", observedGeneration: 2}`, `{type: Issuing, status: "True", observedGeneration: 2}`
	const unsealed, notUnsealed = `conditions: [{type: Synced, status: "True"}]`, `conditions: [{type: Synced, status: "False"}]`
	cases := map[string]struct {
		rules, object string
		want          healthscope.State
		reason        healthscope.Reason
	}{
		"a certificate that is issued":         {certificates, certificate("2", issued), "Ready", ""},
		"a certificate that is being issued":   {certificates, certificate("2", refused+", "+issuing), "Pending", "HealthCheckInProgress"},
		"a certificate that cannot be issued":  {certificates, certificate("2", refused), "Failed", "HealthCheckFailed"},
		"a certificate of an older generation": {certificates, certificate("3", issued), "Pending", "HealthCheckNotCurrent"},
		"a certificate that is new":            {certificates, `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, generation: 1}}`, "Pending", "NotObserved"},
		"a certificate of another version":     {certificates, strings.Replace(certificate("2", issued), "/v1", "/v2", 1), "Ready", ""},
		"a sealed secret that is unsealed":     {synced, sealed("1", unsealed), "Ready", ""},
		"a sealed secret that is not":          {synced, sealed("1", notUnsealed), "Failed", "HealthCheckFailed"},
		"a status of another generation":       {synced, sealed("3", "observedGeneration: 2, "+unsealed), "Pending", "StaleGeneration"},
		"generations as strings":               {synced, sealed(`"3"`, "observedGeneration: 3, "+unsealed), "Ready", ""},
		"fields that are there":                {optional, `{apiVersion: example.org/v1, kind: Widget, spec: {replicas: 2}, status: {phase: Up, replicas: 2}}`, "Ready", ""},
		"fields that are not":                  {optional, `{apiVersion: example.org/v1, kind: Widget, spec: {replicas: 2}, status: {phase: Up}}`, "Pending", "HealthCheckNotCurrent"},
		"a fraction of a number":               {optional, `{apiVersion: example.org/v1, kind: Widget, spec: {replicas: 1.5}, status: {phase: Done, replicas: 2}}`, "Ready", ""},
		"an empty status":                      {optional, `{apiVersion: example.org/v1, kind: Widget, spec: {replicas: 2}, status: {}}`, "Pending", "HealthCheckNotCurrent"},
		"no status":                            {optional, `{apiVersion: example.org/v1, kind: Widget, spec: {replicas: 2}}`, "Pending", "NotObserved"},
		"a field that is missing":              {optional, `{apiVersion: example.org/v1, kind: Widget, status: {phase: Up}}`, "Unknown", "HealthCheckError"},
		"a number":                             {ratio, `{apiVersion: example.org/v1, kind: Widget, status: {total: 2}}`, "Ready", ""},
		"a division by zero":                   {ratio, `{apiVersion: example.org/v1, kind: Widget, status: {total: 0}}`, "Unknown", "HealthCheckError"},
		"a word that is no number":             {ratio, `{apiVersion: example.org/v1, kind: Widget, status: {total: many}}`, "Unknown", "HealthCheckError"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := object(t, c.object)
			before, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			r, rule, matched := compile(t, rulesOf(t, c.rules)...).Evaluate(o)
			if !matched || r.State != c.want || r.Reason != c.reason {
				t.Errorf("got %s %s %q, matched %t; want %s %s", r.State, r.Reason, r.Message, matched, c.want, c.reason)
			}
			if r.State != healthscope.Ready && r.Reason != healthscope.ReasonStaleGeneration && !strings.Contains(r.Message, rule) {
				t.Errorf("the message does not name the rule: %q", r.Message)
			}
			if after, _ := json.Marshal(o); string(before) != string(after) {
				t.Errorf("the object has changed: %s", after)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	cases := map[string]struct{ rule, want string }{
		"failed":           {`{apiVersion: v1, kind: W, failed: "status.up ==\n  false", current: "true"}`, `health check "W": failed is true: status.up == false`},
		"not current":      {`{apiVersion: v1, kind: W, name: my-rule, current: status.up}`, `health check "my-rule": current is false: status.up`},
		"no boolean":       {`{apiVersion: v1, kind: W, current: status.list}`, `health check "W": current fails on this object: it gives a value of type list; it must give true or false`},
		"no such variable": {`{apiVersion: v1, kind: W, current: stauts.up}`, `health check "W": current fails on this object: no such attribute(s): stauts`},
		"no such field":    {`{apiVersion: v1, kind: W, inProgress: status.down, current: status.up}`, `health check "W": inProgress fails on this object: no such key: down`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := compile(t, rulesOf(t, "["+c.rule+"]")...)
			r, _, _ := set.Evaluate(object(t, `{apiVersion: v1, kind: W, status: {up: false, list: []}}`))
			if r.Message != c.want {
				t.Errorf("got  %s\nwant %s", r.Message, c.want)
			}
		})
	}
}

func TestWhichObjectsARuleIsFor(t *testing.T) {
	set := compile(t, rulesOf(t, `
- {name: one, apiVersion: example.org/v1, kind: Widget, match: {name: a, namespace: store}, current: "true"}
- {name: labelled, apiVersion: example.org/v1, kind: Widget, match: {labelSelector: "tier=gold,env in (test,prod),!old"}, current: "true"}
- {name: namespace, apiVersion: example.org/v1, kind: Widget, match: {namespace: test}, current: "true"}
- {name: core, apiVersion: v1, kind: Widget, match: {}, current: "true"}
`)...)
	cases := map[string]struct{ object, want string }{
		"name and namespace":  {`{apiVersion: example.org/v1, kind: Widget, metadata: {name: a, namespace: store, labels: {tier: gold, env: test}}}`, "one"},
		"another name":        {`{apiVersion: example.org/v1, kind: Widget, metadata: {name: b, namespace: store}}`, ""},
		"another namespace":   {`{apiVersion: example.org/v1, kind: Widget, metadata: {name: a, namespace: shop}}`, ""},
		"labels":              {`{apiVersion: example.org/v1, kind: Widget, metadata: {name: b, labels: {tier: gold, env: test}}}`, "labelled"},
		"one label too few":   {`{apiVersion: example.org/v1, kind: Widget, metadata: {name: b, labels: {tier: gold}}}`, ""},
		"one label too many":  {`{apiVersion: example.org/v1, kind: Widget, metadata: {name: b, labels: {tier: gold, env: prod, old: ""}}}`, ""},
		"labels that are odd": {`{apiVersion: example.org/v1, kind: Widget, metadata: {name: b, labels: [tier]}}`, ""},
		"the first counts":    {`{apiVersion: example.org/v1, kind: Widget, metadata: {name: b, namespace: test, labels: {tier: gold, env: test}}}`, "labelled"},
		"a namespace alone":   {`{apiVersion: example.org/v1, kind: Widget, metadata: {name: b, namespace: test}}`, "namespace"},
		"the core group":      {`{apiVersion: v1, kind: Widget}`, "core"},
		"another group":       {`{apiVersion: v1/v1, kind: Widget}`, ""},
		"another kind":        {`{apiVersion: v1, kind: Widgets}`, ""},
		"no kind":             {`{apiVersion: v1}`, ""},
		"odd metadata":        {`{apiVersion: v1, kind: Widget, metadata: 7}`, "core"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := object(t, c.object)
			_, rule, matched := set.Evaluate(o)
			if rule != c.want || matched != (c.want != "") {
				t.Errorf("judged by %q, %t; want %q", rule, matched, c.want)
			}
			apiVersion, _ := o["apiVersion"].(string)
			if kind, _ := o["kind"].(string); matched && !set.Covers(apiVersion, kind) {
				t.Error("a rule judges a kind that it does not cover")
			}
		})
	}
}

// TestCostlyEvaluationsAreCutOff: each of these would take minutes, or gigabytes, on the object, were it not cut off.
func TestCostlyEvaluationsAreCutOff(t *testing.T) {
	list := make([]any, 50_000)
	for i := range list {
		list[i] = map[string]any{"n": int64(i)}
	}
	big := map[string]any{"apiVersion": "example.org/v1", "kind": "Widget", "status": map[string]any{"list": list, "few": list[:1000], "nested": []any{list}, "text": strings.Repeat("é", 500_000)}}
	small := map[string]any{"apiVersion": "example.org/v1", "kind": "Widget", "status": map[string]any{"list": list[:20], "few": list[:20], "nested": []any{list[:20]}, "text": "éé"}}
	doubled := "[status.text]" + strings.Repeat(".map(v, v + v)", 6) + ".all(v, size(v) > 0)"
	for name, current := range map[string]string{
		"a loop":                    "status.list.all(a, a.n >= 0 && a.n < 100000 && a.n != -1)",
		"a loop within a loop":      "status.list.all(a, status.list.exists(b, b.n == a.n))",
		"comparisons in a loop":     "status.few.all(a, status.nested == status.nested)",
		"membership in a loop":      "status.few.all(a, status.list in status.nested)",
		"lengths in a loop":         "status.few.all(a, size(status.text) > 0)",
		"a text that doubles":       doubled,
		"a text that is coded":      "[bytes(status.text)]" + strings.Repeat(".map(v, bytes(base64.encode(v)))", 6) + ".all(v, size(v) > 0)",
		"a pattern in a loop":       "status.few.all(a, !status.text.matches('x+y'))",
		"a literal set in a loop":   "status.few.all(a, !sets.contains(status.list, [1, 2, 3]))",
		"letters that are reversed": "status.few.all(a, status.text.reverse() != '')",
	} {
		t.Run(name, func(t *testing.T) {
			set := compile(t, widget(current))
			r, _, _ := set.Evaluate(big)
			if r.State != healthscope.Unknown || r.Reason != healthscope.ReasonHealthCheckTooCostly || !strings.Contains(r.Message, `"Widget.example.org": current was cut off`) {
				t.Errorf("got %s %s %q", r.State, r.Reason, r.Message)
			}
			if r, _, _ := set.Evaluate(small); r.State != healthscope.Ready {
				t.Errorf("another object is %s %s %q", r.State, r.Reason, r.Message)
			}
		})
	}
}

func TestDataOfSecretsIsNotVisible(t *testing.T) {
	const canary = "canary"
	for _, kind := range []string{"Secret", "ConfigMap"} {
		o := map[string]any{
			"apiVersion": "v1", "kind": kind, "data": map[string]any{"a": canary}, "stringData": map[string]any{"a": canary},
			"metadata": map[string]any{"name": "a", "labels": map[string]any{"tier": "gold"}, "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": canary}},
		}
		for _, current := range []string{"data.a == 'canary'", "stringData.a == 'canary'", "metadata.annotations.exists(a, true)", "int(data.a) == 1"} {
			r, _, matched := compile(t, configv1alpha1.HealthCheckExpr{APIVersion: "v1", Kind: kind, Current: current}).Evaluate(o)
			if !matched || r.State != healthscope.Unknown || strings.Contains(strings.ReplaceAll(r.Message, current, ""), canary) {
				t.Errorf("%s: %s is %s %q", kind, current, r.State, r.Message)
			}
		}
		r, _, _ := compile(t, configv1alpha1.HealthCheckExpr{APIVersion: "v1", Kind: kind, Current: "metadata.name == 'a' && metadata.labels.tier == 'gold' && kind != ''"}).Evaluate(o)
		if r.State != healthscope.Ready {
			t.Errorf("%s: its metadata cannot be seen: %q", kind, r.Message)
		}
		o["apiVersion"] = "example.org/v1"
		r, _, _ = compile(t, configv1alpha1.HealthCheckExpr{APIVersion: "example.org/v1", Kind: kind, Current: "data.a == 'canary'"}).Evaluate(o)
		if r.State != healthscope.Ready {
			t.Errorf("the data of a %s of another group cannot be seen: %q", kind, r.Message)
		}
	}
}

// TestOrder: whatever the three expressions say, inProgress goes before failed, and that before current.
func TestOrder(t *testing.T) {
	const all = `[{apiVersion: v1, kind: W, inProgress: status.p, failed: status.f, current: status.c}]`
	const onlyCurrent = `[{apiVersion: v1, kind: W, current: status.c}]`
	three, one := compile(t, rulesOf(t, all)...), compile(t, rulesOf(t, onlyCurrent)...)
	rapid.Check(t, func(t *rapid.T) {
		p, f, c := rapid.Bool().Draw(t, "inProgress"), rapid.Bool().Draw(t, "failed"), rapid.Bool().Draw(t, "current")
		o := map[string]any{"apiVersion": "v1", "kind": "W", "status": map[string]any{"p": p, "f": f, "c": c}}
		want := healthscope.Pending
		switch {
		case p:
		case f:
			want = healthscope.Failed
		case c:
			want = healthscope.Ready
		}
		if r, _, _ := three.Evaluate(o); r.State != want {
			t.Errorf("got %s, want %s", r.State, want)
		}
		if r, _, _ := one.Evaluate(o); (r.State == healthscope.Ready) != c {
			t.Errorf("current alone is %t and gives %s", c, r.State)
		}
	})
}

func TestEvaluateIsSafeForConcurrentUse(t *testing.T) {
	set := compile(t, widget("status.list.all(a, a.n == status.n)"))
	var group sync.WaitGroup
	for i := range int64(8) {
		group.Go(func() {
			o := map[string]any{"apiVersion": "example.org/v1", "kind": "Widget", "status": map[string]any{"n": i, "list": []any{map[string]any{"n": i}}}}
			for range 200 {
				if r, _, _ := set.Evaluate(o); r.State != healthscope.Ready {
					t.Errorf("%d is %s %q", i, r.State, r.Message)
					return
				}
			}
		})
	}
	group.Wait()
}

// FuzzEvaluate: whatever the object and the expression are, there is a result that can be shown.
func FuzzEvaluate(f *testing.F) {
	f.Add("status.phase == 'Up'", `{"status": {"phase": "Up"}}`)
	f.Add("status.conditions.exists(e, e.type == 'Ready')", `{"status": {"conditions": [1, null, {"type": 2}]}, "metadata": []}`)
	f.Add("metadata.generation > status.n && x.y", `{"metadata": {"generation": 1e300}, "status": {"observedGeneration": "two", "n": {}}}`)
	f.Add("int(status.n) > 0 || has(status.a.b)", `{"status": {"n": "x"}}`)
	f.Add("\xff(", `{"status": []}`)
	f.Fuzz(func(t *testing.T, expression, text string) {
		var o map[string]any
		if json.Unmarshal([]byte(text), &o) != nil || o == nil {
			return
		}
		o["apiVersion"], o["kind"] = "example.org/v1", "Widget"
		set, problems := expr.Compile([]configv1alpha1.HealthCheckExpr{widget(expression)})
		for _, p := range problems {
			if p.Cause == "" || !utf8.ValidString(p.Error()) {
				t.Errorf("an error that cannot be shown: %q", p.Error())
			}
		}
		r, _, matched := set.Evaluate(o)
		if matched == (len(problems) > 0) {
			t.Errorf("matched is %t with %v", matched, problems)
		}
		if matched && (!r.State.Valid() || (r.State == healthscope.Ready) != (r.Message == "") || !utf8.ValidString(r.Message) || strings.Contains(r.Message, "\n")) {
			t.Errorf("got %s", fmt.Sprintf("%s %s %q", r.State, r.Reason, r.Message))
		}
	})
}
