// Package expr owns the rules that users write in CEL, in the shape of healthCheckExprs in Flux (RFC-0009 of fluxcd/flux2).
// Programs that load a configuration call Compile, and package rules calls the Set that it makes for each object. An
// expression must never see the data of Secrets and ConfigMaps, and the package never imports a client, a logger, metrics or
// a context, nor reads a clock.
//
// Compile leaves out a rule with an error as a whole, and uses the others. An error of an expression on an object only
// affects that object: it is Unknown, and the message names the rule.
//
// Evaluation is bounded without a clock: it counts steps, the length of strings and the size of lists included, and stops
// at CostLimit. A single call that costs more is only stopped after it has run: the operator writes the expressions.
package expr
