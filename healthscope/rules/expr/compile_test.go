package expr_test

import (
	"strings"
	"testing"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/rules"
	"github.com/healthscope/healthscope/healthscope/rules/expr"
)

var _ rules.UserRules = &expr.Set{}

// widget is a rule for the kind that most tests are about.
func widget(current string) configv1alpha1.HealthCheckExpr {
	return configv1alpha1.HealthCheckExpr{APIVersion: "example.org/v1", Kind: "Widget", Current: current}
}

// compile compiles rules that can be used.
func compile(t *testing.T, exprs ...configv1alpha1.HealthCheckExpr) *expr.Set {
	t.Helper()
	set, problems := expr.Compile(exprs)
	for _, p := range problems {
		t.Errorf("cannot be used: %v", p)
	}
	return set
}

func TestExpressionsThatCannotBeUsed(t *testing.T) {
	cases := map[string]struct {
		current string
		// line and column are where; cause is how what is said about it begins.
		line, column int
		cause        string
	}{
		"nothing":                        {" \n ", 0, 0, "the expression is empty"},
		"an end too early":               {"status.phase ==", 1, 16, "Syntax error: mismatched input '<EOF>'"},
		"the second line":                {"has(status.phase) &&\n  status.phase = 'Up'", 2, 16, "Syntax error: token recognition error"},
		"no such function":               {"status.phase.startWith('U')", 1, 23, "undeclared reference to 'startWith'"},
		"a wrong argument":               {"size(true) > 0", 1, 5, "found no matching overload for 'size'"},
		"a number":                       {"size(status.conditions)", 0, 0, "the expression gives a value of type int; it must give true or false"},
		"a string":                       {"'Up'", 0, 0, "the expression gives a value of type string; it must give true or false"},
		"a bad pattern":                  {"status.phase.matches('U[')", 0, 0, "error parsing regexp: missing closing ]"},
		"too long":                       {strings.Repeat("true && ", expr.MaxExpressionLength/8) + "true", 0, 0, "the expression has 4100 characters; it may have 4096"},
		"too deep":                       {strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + " == []", 0, 0, ""},
		"replace":                        {"status.a.replace('a', status.b) == 'x'", 1, 17, "replace cannot be used in health checks: its cost has no bound"},
		"join":                           {"status.list.join(status.b) == 'x'", 1, 17, "join cannot be used"},
		"format":                         {"'%.1000000f'.format([1.0]) == 'x'", 1, 20, "format cannot be used"},
		"a pattern from an object":       {"matches('literal', status.pattern)", 1, 8, "an argument of matches must be a literal"},
		"a text from an object":          {"status.a.indexOf(status.b) > 0", 1, 17, "an argument of indexOf must be a literal"},
		"lists that double, 30 times":    {"[[1]]" + strings.Repeat(".map(a, a + a)", 30) + "[0].size() > 0", 1, 332, "its loops copy what they run over"},
		"lists that double, 200 times":   {"[[1]]" + strings.Repeat(".map(a,a+a)", 200) + "[0].size() > 0", 1, 2133, "its loops copy what they run over"},
		"lists of lists":                 {"[[1]]" + strings.Repeat(".map(a, [a, a])", 30) + ".all(a, a == a)", 1, 355, "its loops copy what they run over"},
		"maps that double, by selection": {"[{'v': [1]}]" + strings.Repeat(".map(a, {'v': [a.v, a.v]})", 30) + ".all(a, a == a)", 1, 615, "its loops copy what they run over"},
		"lists that double in loops":     {"[[1]]" + strings.Repeat(".map(a, [1].map(b, a + a))", 30) + ".all(a, a == a)", 1, 738, "its loops copy what they run over"},
		"lists repeated by a loop":       {"[[1]]" + strings.Repeat(".map(a, [1, 2].map(b, a))", 30) + ".all(a, a == a)", 1, 685, "its loops copy what they run over"},
		"optional values":                {"optional.of(1)" + strings.Repeat(".optMap(a, a)", 200) + ".hasValue()", 0, 0, "the expression has 200 optMap and optFlatMap; it may have 4"},
		"lists that double in optionals": {"[[1]]" + strings.Repeat(".map(a, [optional.of(a)"+".optMap(b, b + b + b + b + b + b + b + b + b)])", 2) + ".size() > 0", 1, 106, "its loops copy what they run over"},
		"two sets from an object":        {"sets.intersects(status.a, status.b)", 1, 16, "an argument of sets.intersects must be a literal"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set, problems := expr.Compile([]configv1alpha1.HealthCheckExpr{widget(c.current)})
			if len(problems) != 1 {
				t.Fatalf("%d problems, want one: %v", len(problems), problems)
			}
			got := problems[0]
			if got.Rule != "Widget.example.org" || got.Field != "current" || !strings.HasPrefix(got.Cause, c.cause) {
				t.Errorf("got %+v", got)
			}
			if c.cause != "" && (got.Line != c.line || got.Column != c.column) {
				t.Errorf("the position is %d:%d, want %d:%d", got.Line, got.Column, c.line, c.column)
			}
			if message := got.Error(); strings.ContainsAny(message, "\n\t") || len(message) > 400 {
				t.Errorf("not one short line: %q", message)
			}
			if set.Covers("example.org/v1", "Widget") {
				t.Error("the rule is used all the same")
			}
		})
	}
}

func TestWhatAnErrorSays(t *testing.T) {
	_, problems := expr.Compile([]configv1alpha1.HealthCheckExpr{{
		Name: "widgets", APIVersion: "v1", Kind: "Widget", InProgress: "1 +", Failed: "'yes'", Current: "true",
		Match: &configv1alpha1.ObjectMatch{LabelSelector: "a in"},
	}})
	want := []string{
		`cannot use health check "widgets": match.labelSelector: unable to parse requirement: found ''`,
		`cannot use health check "widgets": inProgress, line 1, column 4: Syntax error: mismatched input '<EOF>'`,
		`cannot use health check "widgets": failed: the expression gives a value of type string; it must give true or false`,
	}
	if len(problems) != len(want) {
		t.Fatalf("got %v", problems)
	}
	for i := range want {
		if got := problems[i].Error(); !strings.HasPrefix(got, want[i]) {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}
}

func TestABadRuleDisturbsNoOther(t *testing.T) {
	other := configv1alpha1.HealthCheckExpr{APIVersion: "example.org/v1", Kind: "Gadget", Current: "true"}
	half := configv1alpha1.HealthCheckExpr{Name: "half", APIVersion: "example.org/v1", Kind: "Widget", Failed: "nonsense(", Current: "true"}
	second := widget("metadata.name == 'a'")
	set, problems := expr.Compile([]configv1alpha1.HealthCheckExpr{half, second, other})
	if len(problems) != 1 || problems[0].Rule != "half" || problems[0].Field != "failed" {
		t.Errorf("got %v", problems)
	}
	for kind, want := range map[string]string{"Widget": "Widget.example.org", "Gadget": "Gadget.example.org"} {
		r, rule, matched := set.Evaluate(map[string]any{"apiVersion": "example.org/v1", "kind": kind, "metadata": map[string]any{"name": "a"}})
		if !matched || rule != want || r.State != "Ready" {
			t.Errorf("%s is judged by %q: %+v", kind, rule, r)
		}
	}
	set, _ = expr.Compile([]configv1alpha1.HealthCheckExpr{half})
	if _, rule, matched := set.Evaluate(map[string]any{"apiVersion": "example.org/v1", "kind": "Widget"}); matched || set.Covers("example.org/v1", "Widget") {
		t.Errorf("the good half of a bad rule, %q, judges", rule)
	}
}

func TestNoRules(t *testing.T) {
	set := compile(t)
	if _, _, matched := set.Evaluate(map[string]any{"apiVersion": "v1", "kind": "Pod"}); matched || set.Covers("v1", "Pod") || set.Covers("", "") {
		t.Error("no rule judges")
	}
}

func TestLoopsThatCopyLittleCanBeUsed(t *testing.T) {
	for _, current := range []string{
		"status.conditions.map(e, e.type + '=' + e.status).exists(e, e == 'Ready=True')",
		"spec.apps.map(a, a.parts.filter(p, p.name == a.name)).all(l, size(l) > 0)",
		"spec.apps.map(a, a.parts.map(p, a.name + p.name)).all(l, l.all(n, n in status.names || n.startsWith('x') || size(n) > 9))",
		"spec.apps.map(a, {'x': a.x, 'y': a.y}).filter(a, a.x == a.y || a.x > a.y && a.x < 3).size() == 2",
		"status.?phase.optMap(p, p + p).orValue('') == 'UpUp'",
		strings.Repeat("status.conditions.exists(e, e.type == 'Ready' && e.status == 'True') && ", 20) + "true",
	} {
		compile(t, widget(current))
	}
}
