// Package enrol owns the membership of clusters in a hub: it makes them members, renews their tokens, and publishes
// their states. Package commands calls Add, Remove and Read, and package app calls Setup. It must never give the hub
// more rights in a member than it needs.
//
// Add and Remove are what the commands of the same names do: they give the hub
// an account of its own in the member, with the few rights it needs, and the
// hub a Secret with a kubeconfig for the member. Setup adds to the controller the
// renewal of the tokens in these Secrets, and a publisher, which writes the
// states of all clusters to a ConfigMap that Read reads.
package enrol
