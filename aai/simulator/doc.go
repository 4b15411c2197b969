// Package simulator owns an ONAP A&AI (Active and Available Inventory, the aai-resources service) over real HTTP, with faults
// on demand. Tests, benchmarks and the demonstration use it. The command aai-simulator serves it for users who have no
// A&AI. It must never import anything of this project, nor anything but the standard library, so that it can judge
// the client.
//
// It exists because a unit test cannot start a real A&AI, and because a fake that accepts everything hides the pitfalls of A&AI's
// API. So it follows aai-resources 1.17 where a client can observe it: resource-version checks, required fields,
// missing parents, properties that are unknown and dropped without an error, labels that are a set, relationships that move the
// resource-version of both ends, 404 for an empty container, header rules, error bodies. Options.Strict also keeps a log of
// everything that a correct client would not send, and Options.Reject refuses it.
//
// A request passes exchange.go (faults on the wire, by the rules of fault.go), request.go (A&AI's filters, in their order) and
// then read.go, or write.go and bulk.go, which work on inventory.go by the types of schema.go. document.go reads bodies as
// A&AI does. control.go and seed.go let a test inspect and change the simulator.
//
// The types are cloud-region, tenant, k8s-resource, generic-vnf and vf-module with the edges among them, as of v24 to v32 (v22
// and v23 are the same without k8s-resource).
//
// What is not simulated: other types, whose containers are dropped like any unknown property; XML; events; bulkadd and
// bulkprocess; /nodes, /examples and related-to paths; formats other than count, pathed and resource; deletion of children by
// leaving them out of a PUT; duplicates by concurrent creation. Relationship-properties are accepted and forgotten.
package simulator
