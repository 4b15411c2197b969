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
		"nothing":          {" \n ", 0, 0, "the expression is empty"},
		"an end too early": {"status.phase ==", 1, 16, "Syntax error: mismatched input '<EOF>'"},
		"the second line":  {"has(status.phase) &&\n  status.phase = 'Up'", 2, 16, "Syntax error: token recognition error"},
		"no such function": {"status.phase.startWith('U')", 1, 23, "undeclared reference to 'startWith'"},
		"a wrong argument": {"size(true) > 0", 1, 5, "found no matching overload for 'size'"},
		"a number":         {"size(status.conditions)", 0, 0, "the expression gives a value of type int; it must give true or false"},
		"a string":         {"'Up'", 0, 0, "the expression gives a value of type string; it must give true or false"},
		"a bad pattern":    {"status.phase.matches('U[')", 0, 0, "error parsing regexp: missing closing ]"},
		"too long":         {strings.Repeat("true && ", expr.MaxExpressionLength/8) + "true", 0, 0, "expression code point size exceeds limit: size: 4100, limit 4096"},
		"macros that grow": {"optional.of(1)" + strings.Repeat(".optMap(a, a)", 200) + ".hasValue()", 0, 0, ""},
		"too deep":         {strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + " == []", 0, 0, ""},
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
