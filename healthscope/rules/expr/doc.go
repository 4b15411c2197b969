// Package expr owns the rules that users write in CEL, in the shape of healthCheckExprs in Flux (RFC-0009 of fluxcd/flux2).
// Programs that load a configuration call Compile, and package rules calls the Set that it makes for each object. An
// expression must never see the data of Secrets and ConfigMaps, and the package never imports a client, a logger, metrics or
// a context, nor reads a clock.
//
// Compile drops a rule that has an error in any of its expressions, and uses the others. An error in the evaluation of an expression affects only
// the object: it is Unknown, and the message names the rule.
//
// An evaluation is bounded without a clock: it counts steps, including the length of strings and the size of lists, and stops at CostLimit. A
// single call that costs more than that ends only after it has run, which is acceptable because the operator writes the expressions.
package expr
