// Package expr judges objects by rules that users write in CEL, in the shape of
// healthCheckExprs in Flux (RFC-0009 of fluxcd/flux2).
//
// Compile turns the rules of a configuration into a Set, which implements
// rules.UserRules, and a list of RuleErrors. A rule that cannot be used is left
// out whole; the others count. What goes wrong when a rule looks at an object
// concerns that object alone: it is Unknown, and the message names the rule.
//
// Evaluation is bounded without a clock: it counts steps, the length of strings
// and the size of lists included, and stops at CostLimit. A single call that
// costs more is only stopped after it has run: the operator writes the expressions.
//
// Expressions never see the data of Secrets and ConfigMaps: of these, they are
// shown apiVersion, kind and metadata without annotations, in which tools keep copies.
//
// The package is pure: no client, logger, metrics or context, and no clock.
package expr
