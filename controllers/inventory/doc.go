// Package inventory keeps A&AI in step with the judged resources of scopes, or
// of all bundles.
//
// An index learns of every judgement and every bundle, and knows which resources
// have changed since A&AI was told last. One reconcile for each A&AI tenant takes
// what is new and has package aai/sync write it; a ledger tells scopes and metrics
// how far that went. What each of them does costs as much as has changed.
//
// It is level-triggered: there is no journal, and after a crash the same is
// worked out again from what is there.
package inventory
