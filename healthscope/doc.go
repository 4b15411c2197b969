// Package healthscope owns the health states, the judgement that Judge makes from the raw results of single objects, and the
// roll-up of many members. The controllers of scopes, inventory and monitors and the status documents call it, with results
// of package rules and with the time. No other package decides about health. This package must never import a client, a
// logger, metrics or a context, and never read a clock.
package healthscope
