package expr

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/labels"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// MaxExpressionLength is the maximum length of an expression, in characters.
const MaxExpressionLength = 4096

// RuleError reports why a rule cannot be used. It names the rule, the field, the position and the cause.
type RuleError struct {
	// Rule is the name of the rule.
	Rule string
	// Field is the invalid field: current, inProgress, failed or match.labelSelector.
	Field string
	// Line and Column are the position within the expression, starting at 1; 0 when there is no position.
	Line, Column int
	// Cause describes what is wrong, in one line.
	Cause string
}

// Error implements error.
func (p RuleError) Error() string {
	if p.Line == 0 {
		return fmt.Sprintf("cannot use health check %q: %s: %s", p.Rule, p.Field, p.Cause)
	}
	return fmt.Sprintf("cannot use health check %q: %s, line %d, column %d: %s", p.Rule, p.Field, p.Line, p.Column, p.Cause)
}

// Compile compiles rules. Their order matters: the first rule that matches an object judges it. Each rule is either in the set or has at least
// one error. Callers must have validated the rules with configv1alpha1.Validate, which also checks that their names differ.
func Compile(exprs []configv1alpha1.HealthCheckExpr) (*Set, []RuleError) {
	set := &Set{byKind: map[groupKind][]*check{}}
	var ruleErrors []RuleError
	for i := range exprs {
		c, checkErrors := compileCheck(&exprs[i])
		if len(checkErrors) > 0 {
			ruleErrors = append(ruleErrors, checkErrors...)
			continue
		}
		kind := groupKind{groupOf(exprs[i].APIVersion), exprs[i].Kind}
		set.byKind[kind] = append(set.byKind[kind], c)
	}
	return set, ruleErrors
}

// compileCheck compiles one rule.
func compileCheck(e *configv1alpha1.HealthCheckExpr) (*check, []RuleError) {
	var ruleErrors []RuleError
	c := &check{name: e.RuleName(), labels: labels.Everything()}
	if e.Match != nil {
		c.object, c.namespace = e.Match.Name, e.Match.Namespace
		selector, err := labels.Parse(e.Match.LabelSelector)
		if err != nil {
			ruleErrors = append(ruleErrors, RuleError{Rule: c.name, Field: "match.labelSelector", Cause: oneLine(err.Error())})
		}
		c.labels = selector
	}
	// Flux evaluates in this order.
	for _, q := range []expression{
		{field: "inProgress", text: e.InProgress, state: healthscope.Pending, reason: healthscope.ReasonHealthCheckInProgress},
		{field: "failed", text: e.Failed, state: healthscope.Failed, reason: healthscope.ReasonHealthCheckFailed},
		{field: "current", text: e.Current, state: healthscope.Ready},
	} {
		if q.text == "" && q.field != "current" {
			continue
		}
		if ruleError := q.compile(); ruleError != nil {
			ruleError.Rule = c.name
			ruleErrors = append(ruleErrors, *ruleError)
			continue
		}
		c.expressions = append(c.expressions, q)
	}
	return c, ruleErrors
}

// baseEnvironment returns the environment that all expressions share: the functions and options that Flux gives to health checks, and a maximum
// length. cel-go itself bounds the depth of expressions and, after the expansion of macros, their size.
var baseEnvironment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.ParserExpressionSizeLimit(MaxExpressionLength),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		ext.Strings(),
		ext.Sets(),
		ext.Encoders(),
	)
})

// compile parses and type-checks the expression, and creates its program.
func (q *expression) compile() *RuleError {
	if strings.TrimSpace(q.text) == "" {
		return &RuleError{Field: q.field, Cause: "the expression is empty"}
	}
	env, err := baseEnvironment()
	if err != nil {
		return q.ruleError(err)
	}
	parsed, issues := env.Parse(q.text)
	if issues.Err() != nil {
		return q.ruleErrorAt(issues)
	}
	variables := variablesOf(parsed)
	q.readsStatus = slices.Contains(variables, "status")
	if env, err = env.Extend(declarations(variables)...); err != nil {
		return q.ruleError(err)
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return q.ruleErrorAt(issues)
	}
	if t := checked.OutputType(); t != cel.BoolType && t != cel.DynType {
		return &RuleError{Field: q.field, Cause: fmt.Sprintf("the expression gives a value of type %s; it must give true or false", t)}
	}
	q.program, err = env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(CostLimit), cel.CostTracking(costEstimator{}))
	if err != nil {
		return q.ruleError(err)
	}
	return nil
}

// variablesOf returns the names that an expression uses, to declare them as variables: each is a top-level field of the object. Loop variables
// and names of types are among them, which does no harm.
func variablesOf(parsed *cel.Ast) []string {
	var names []string
	celast.PreOrderVisit(parsed.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.IdentKind {
			return
		}
		if name := strings.TrimPrefix(e.AsIdent(), "."); !slices.Contains(names, name) && !strings.HasPrefix(name, "@") {
			names = append(names, name)
		}
	}))
	return names
}

// declarations declares variables with a dynamic type, because there is no schema.
func declarations(variables []string) []cel.EnvOption {
	options := make([]cel.EnvOption, len(variables))
	for i, name := range variables {
		options[i] = cel.Variable(name, cel.DynType)
	}
	return options
}

// ruleError returns an error as a RuleError without a position.
func (q *expression) ruleError(err error) *RuleError {
	return &RuleError{Field: q.field, Cause: oneLine(err.Error())}
}

// ruleErrorAt returns the first of CEL's issues as a RuleError with its position.
func (q *expression) ruleErrorAt(issues *cel.Issues) *RuleError {
	first := issues.Errors()[0]
	return &RuleError{Field: q.field, Line: max(0, first.Location.Line()), Column: first.Location.Column() + 1, Cause: oneLine(first.Message)}
}
