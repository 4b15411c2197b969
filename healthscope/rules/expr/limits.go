package expr

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types/ref"
)

// CostLimit is how much one evaluation of an expression may cost. The unit is that of cel-go, about one operation or
// ten characters; the API server allows ten times as much for a validation rule (k8s.io/apiserver/pkg/apis/cel).
const CostLimit = 100_000

// tooCostly are the functions whose result may be longer than all that goes in, by a factor that the object decides.
// Their cost is known only when it has been paid.
var tooCostly = map[string]bool{"replace": true, "join": true, "format": true}

// literalOnly are the functions whose work is the product of the sizes of two arguments. One of them must be a literal,
// so that the work is bounded by the object: the pattern or text that is looked for, and one of the two sets.
var literalOnly = map[string]bool{
	"matches": true, "indexOf": true, "lastIndexOf": true,
	"sets.contains": true, "sets.equivalent": true, "sets.intersects": true,
}

// unbounded returns the first call whose work has no bound, by its id, and says why it is refused; the cause is empty when there is none.
func unbounded(parsed *cel.Ast) (id int64, cause string) {
	celast.PreOrderVisit(parsed.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || cause != "" {
			return
		}
		name, deciding := qualified(e.AsCall())
		switch {
		case tooCostly[name]:
			id, cause = e.ID(), name+" cannot be used in health checks: its cost has no bound"
		case literalOnly[name] && !slices.ContainsFunc(deciding, isLiteral):
			id, cause = e.ID(), "an argument of "+name+" must be a literal: otherwise its cost has no bound"
		}
	}))
	if cause != "" {
		return id, cause
	}
	if loop, tooMany := copying(parsed); tooMany {
		return loop, fmt.Sprintf("its loops copy what they run over into their results more than %d times in all: its cost has no bound", maxCopies)
	}
	return 0, ""
}

// maxCopies is how often, all in all, loops may put what they run over into their results. Lists of lists and sums of
// lists cost nothing while they are made, so a chain of loops that doubles its input would outgrow any memory.
const maxCopies = 64

// copiesInLoop is for how many a copy counts that each turn of an inner loop makes. How many turns there are is not
// known, so that no more than two such loops may follow each other.
const copiesInLoop = 8

// maxOptionalMaps is how many optMap and optFlatMap an expression may have: the parser doubles what stands before each.
const maxOptionalMaps = 4

// scalars are the functions whose result is a number or a boolean, and holds no copy of what goes in.
var scalars = map[string]bool{
	operators.Equals: true, operators.NotEquals: true, operators.Less: true, operators.LessEquals: true, operators.Greater: true,
	operators.GreaterEquals: true, operators.In: true, operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true,
	operators.NotStrictlyFalse: true, overloads.Size: true, overloads.Contains: true, overloads.StartsWith: true, overloads.EndsWith: true,
	overloads.Matches: true,
}

// copying returns the loop with which an expression has more than maxCopies, by its id; tooMany is false when there is none.
func copying(parsed *cel.Ast) (id int64, tooMany bool) {
	product := 1
	celast.PreOrderVisit(parsed.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.ComprehensionKind || tooMany {
			return
		}
		loop := e.AsComprehension()
		product *= max(1, copies(loop.LoopStep(), loop.IterVar()), copies(loop.Result(), loop.AccuVar()))
		id, tooMany = e.ID(), product > maxCopies
	}))
	return id, tooMany
}

// copies returns how often the value of an expression may hold that of a variable.
func copies(e celast.Expr, variable string) int {
	sum := 0
	switch e.Kind() {
	case celast.IdentKind:
		if e.AsIdent() == variable {
			sum = 1
		}
	case celast.SelectKind:
		if !e.AsSelect().IsTestOnly() {
			sum = copies(e.AsSelect().Operand(), variable)
		}
	case celast.CallKind:
		sum = copiesInCall(e.AsCall(), variable)
	case celast.ListKind:
		for _, item := range e.AsList().Elements() {
			sum += copies(item, variable)
		}
	case celast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			sum += copies(entry.AsMapEntry().Key(), variable) + copies(entry.AsMapEntry().Value(), variable)
		}
	case celast.ComprehensionKind:
		loop := e.AsComprehension()
		for _, part := range []celast.Expr{loop.IterRange(), loop.AccuInit(), loop.Result()} {
			sum += copies(part, variable)
		}
		sum += copiesInLoop * min(copies(loop.LoopStep(), variable), maxCopies)
	case celast.UnspecifiedExprKind, celast.LiteralKind, celast.StructKind:
	}
	return sum
}

// copiesInCall is copies for a call.
func copiesInCall(call celast.CallExpr, variable string) int {
	sum, arguments := 0, call.Args()
	switch name := call.FunctionName(); {
	case scalars[name]:
		return 0
	case name == operators.Conditional:
		arguments = arguments[1:]
	case call.IsMemberFunction():
		sum = copies(call.Target(), variable)
	}
	for _, argument := range arguments {
		sum += copies(argument, variable)
	}
	return sum
}

// qualified returns the name of the function of a call, with its namespace where it has one (the parser takes sets in
// sets.contains for an object), and those of its arguments of which one must be a literal if any must.
func qualified(call celast.CallExpr) (name string, deciding []celast.Expr) {
	name, deciding = call.FunctionName(), call.Args()
	switch {
	case !call.IsMemberFunction():
		return name, deciding[max(0, len(deciding)-1):]
	case call.Target().Kind() == celast.IdentKind && call.Target().AsIdent() == "sets":
		return "sets." + name, deciding
	default:
		return name, deciding[:min(1, len(deciding))]
	}
}

// isLiteral says whether an expression is a literal value or a list of them.
func isLiteral(e celast.Expr) bool {
	if e.Kind() == celast.ListKind {
		return !slices.ContainsFunc(e.AsList().Elements(), func(e celast.Expr) bool { return e.Kind() != celast.LiteralKind })
	}
	return e.Kind() == celast.LiteralKind
}

// costs counts what cel-go takes for a single operation, or for less than it is: comparisons that read whole objects,
// and the length of a string. What it does not know is left to cel-go.
type costs struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	switch function {
	case operators.Equals, operators.NotEquals, operators.In, overloads.Size:
	default:
		return nil
	}
	var cost uint64
	for _, v := range args {
		cost += weight(v.Value())
	}
	return &cost
}

// weight is the cost of reading a value with all that is in it.
func weight(value any) uint64 {
	sum := uint64(1)
	switch v := value.(type) {
	case string:
		sum += uint64(len(v) / 10)
	case []any:
		for _, item := range v {
			sum += weight(item)
		}
	case map[string]any:
		for _, field := range v {
			sum += weight(field)
		}
	case []ref.Val:
		for _, item := range v {
			sum += weight(item.Value())
		}
	}
	return sum
}
