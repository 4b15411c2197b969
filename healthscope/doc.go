// Package healthscope owns the health states, the rule by which the raw results of single objects become one judgement
// (Judge), and the roll-up of many members. The controllers of scopes, inventory and monitors and the status documents call
// it, each with results that package rules has made and with the time. It must never import a client, a logger, metrics or a
// context, and never read a clock: nothing else in the product decides about health.
package healthscope
