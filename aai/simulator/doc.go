// Package simulator is an ONAP A&AI (Active and Available Inventory, the aai-resources service) over real HTTP, for tests,
// demonstrations, benchmarks and people who have no A&AI at hand.
//
// It exists because a real A&AI cannot run beside a unit test, while a friendly fake hides exactly what makes A&AI hard to
// write to. So it follows aai-resources 1.17 where a client can see it: resource-version checks, required fields, missing
// parents, properties that are unknown and dropped without a word, labels that are a set, relationships that move the
// resource-version of both ends, 404 for an empty container, header rules, error bodies, AAI-EVENT messages. Two modes
// share those answers: the default is faithful, Options.Strict also keeps a log of everything a careful client would not
// have sent, and Options.Reject refuses it.
//
// The schema is a part of A&AI's own, equal in v24 to v32 (v22 and v23 are the same without k8s-resource): cloud-region,
// tenant, k8s-resource, vserver, complex, generic-vnf, vf-module, vnfc and the edges among them.
//
// What is not simulated: XML request bodies (415), bulkadd and bulkprocess, X-OverrideLimit, /nodes and related-to paths,
// formats other than count, pathed and resource, duplicates by concurrent creates, and types outside the schema part
// above, whose containers are dropped like any unknown property. Relationship-properties are accepted and forgotten.
//
// The package uses the standard library only and imports nothing else of this project, so that it can judge it.
package simulator
