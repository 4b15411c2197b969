// Package inventory keeps A&AI in step with the judged resources of scopes, or
// of all bundles.
//
// It is level-triggered: one reconcile for each A&AI tenant gathers what the
// tenant is to hold and has package aai/sync make it so. There is no journal;
// after a crash the same is worked out again from what is there.
package inventory
