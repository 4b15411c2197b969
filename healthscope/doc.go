// Package healthscope is the core of the product: what a health state is, how
// the raw results of single objects become one judgement, and how judgements
// add up.
//
// There is one truth. Monitors and caches yield raw Results, made by package
// rules from one object each; Judge alone adds owners, time and the policy of
// the installation; the status of scopes, the inventory and status documents
// all read its answer.
//
// The package is pure: it imports no client, logger, metrics or context and
// reads no clock. Time comes in as an argument.
package healthscope
