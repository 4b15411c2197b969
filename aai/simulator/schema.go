package simulator

import "slices"

// kind is how a property is written in JSON and stored.
type kind int

const (
	textKind      kind = iota // JSON string
	booleanKind               // JSON true or false
	integerKind               // JSON number
	textListKind              // JSON array of strings, stored as a set
	versionKind               // the resource-version, set by the server
	containerKind             // child nodes: {"tenants":{"tenant":[...]}}
	relationsKind             // the relationship-list
)

// property is one field of a node type.
type property struct {
	name            string
	kind            kind
	key             bool   // part of the node's key, and so of its URI
	required        bool   // PUT fails without it
	defaultsToFalse bool   // a boolean that is false if it is not written
	internal        bool   // never accepted from a client
	requires        string // PUT fails when this property is set and the named one is not
}

// nodeType is one type of node. Its properties are in the order in which A&AI writes them.
type nodeType struct {
	name              string
	container         string // plural path segment and JSON field that holds nodes of this type
	namespace         string // first path segment of a top-level type, empty for children
	parent            string // type that contains this one, empty at the top
	deletedWithParent bool   // deleted together with its parent; nodes of other types prevent that deletion
	since             int    // first schema version that has the type
	nameProperty      string // shown as related-to-property of relationships to this type, empty for none
	properties        []property
}

// Schema versions of the types below. Only k8s-resource is not in all of them.
const (
	oldestSchema     = 22
	firstK8sResource = 24
	newestSchema     = 32
)

// nodeTypes follow ONAP's OXM files aai_oxm_v24.xml to aai_oxm_v32.xml (aai-schema-service), which are equal for these
// types. A property is required here if it has required="true" there, which is what the server enforces.
var nodeTypes = []*nodeType{
	{
		name: "cloud-region", container: "cloud-regions", namespace: "cloud-infrastructure", nameProperty: "owner-defined-type",
		properties: slices.Concat(
			keys("cloud-owner", "cloud-region-id"),
			texts("cloud-type", "owner-defined-type", "cloud-region-version", "identity-url", "cloud-zone", "complex-name",
				"sriov-automation", "cloud-extra-info"),
			integers("cloud-region-number"),
			texts("cloud-function", "cloud-role", "ops-note", "cloud-region-number-definition", "status", "upgrade-cycle"),
			versionStamp, defaulted("orchestration-disabled", "in-maint"), provenance, containers("tenants"), relations,
		),
	},
	{
		name: "tenant", container: "tenants", parent: "cloud-region", nameProperty: "tenant-name",
		properties: slices.Concat(
			keys("tenant-id"), required("tenant-name"), texts("tenant-context", "parent-id", "production-state", "support-model"),
			provenance, versionStamp, relations, containers("k8s-resources"),
		),
	},
	{
		name: "k8s-resource", container: "k8s-resources", parent: "tenant", since: firstK8sResource, nameProperty: "name",
		properties: slices.Concat(
			keys("id"), required("name", "group", "version", "kind", "namespace"), propertiesLike(property{kind: textListKind}, "labels"),
			required("selflink"), provenance, versionStamp, relations,
		),
	},
	{
		name: "generic-vnf", container: "generic-vnfs", namespace: "network", nameProperty: "vnf-name",
		properties: slices.Concat(
			keys("vnf-id"), texts("vnf-instance-id", "vnf-name", "vnf-name2"), required("vnf-type"),
			texts("service-id", "regional-resource-zone", "prov-status", "operational-status", "license-key", "equipment-role",
				"orchestration-status", "vnf-package-name", "vnf-discriptor-name", "job-id", "heat-stack-id", "mso-catalog-key",
				"management-option", "ipv4-oam-address", "ipv4-loopback0-address", "nm-lan-v6-address", "management-v6-address"),
			integers("vcpu"), texts("vcpu-units"), integers("vmemory"), texts("vmemory-units"),
			integers("vdisk"), texts("vdisk-units"), integers("nshd", "nvm", "nnet"),
			defaulted("in-maint", "is-closed-loop-disabled"), versionStamp, texts("summary-status"),
			propertiesLike(property{kind: booleanKind}, "encrypted-access-flag"),
			texts("entitlement-assignment-group-uuid", "entitlement-resource-uuid", "license-assignment-group-uuid", "license-key-uuid"),
			model, texts("model-customization-id", "widget-model-id", "widget-model-version", "as-number",
				"regional-resource-subzone", "nf-type", "nf-function", "nf-role", "nf-naming-code", "selflink", "ipv4-oam-gateway-address"),
			integers("ipv4-oam-gateway-address-prefix-length", "vlan-id-outer"),
			texts("nm-profile-name", "software-version", "application-id"), provenance, relations, containers("vf-modules"),
		),
	},
	{
		name: "vf-module", container: "vf-modules", parent: "generic-vnf", deletedWithParent: true,
		properties: slices.Concat(
			keys("vf-module-id"), texts("vf-module-name", "heat-stack-id", "orchestration-status"),
			defaulted("is-base-vf-module", "automated-assignment"), versionStamp,
			model, texts("model-customization-id", "widget-model-id", "widget-model-version", "contrail-service-instance-fqdn"),
			integers("module-index"), texts("selflink"), provenance, relations, texts("operational-status"),
		),
	},
}

var (
	versionStamp = propertiesLike(property{kind: versionKind}, "resource-version")
	relations    = propertiesLike(property{kind: relationsKind}, listSegment)
	provenance   = texts("data-owner", "data-source", "data-source-version")
	model        = []property{
		{name: "model-invariant-id", requires: "model-version-id"},
		{name: "model-version-id", requires: "model-invariant-id"},
		{name: "persona-model-version", internal: true},
	}
)

func keys(names ...string) []property {
	return propertiesLike(property{key: true, required: true}, names...)
}
func required(names ...string) []property { return propertiesLike(property{required: true}, names...) }
func texts(names ...string) []property    { return propertiesLike(property{}, names...) }
func integers(names ...string) []property {
	return propertiesLike(property{kind: integerKind}, names...)
}
func containers(names ...string) []property {
	return propertiesLike(property{kind: containerKind}, names...)
}
func defaulted(names ...string) []property {
	return propertiesLike(property{kind: booleanKind, defaultsToFalse: true}, names...)
}

// propertiesLike returns one property per name, each a copy of the pattern.
func propertiesLike(pattern property, names ...string) []property {
	list := make([]property, len(names))
	for i, name := range names {
		list[i] = pattern
		list[i].name = name
	}
	return list
}

// property returns the named property, or nil.
func (t *nodeType) property(name string) *property {
	i := slices.IndexFunc(t.properties, func(p property) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &t.properties[i]
}

// keys returns the names of the key properties in the order of the URI.
func (t *nodeType) keys() []string {
	var names []string
	for _, p := range t.properties {
		if p.key {
			names = append(names, p.name)
		}
	}
	return names
}

// typeNamed returns the type with this name in a schema version, or nil.
func typeNamed(name string, schema int) *nodeType {
	return findType(schema, func(t *nodeType) bool { return t.name == name })
}

// typeContained returns the type whose nodes the named container holds, or nil.
func typeContained(container string, schema int) *nodeType {
	return findType(schema, func(t *nodeType) bool { return t.container == container })
}

func findType(schema int, match func(*nodeType) bool) *nodeType {
	for _, t := range nodeTypes {
		if t.since <= schema && match(t) {
			return t
		}
	}
	return nil
}

// isNamespace reports whether a path may start with this segment.
func isNamespace(segment string) bool {
	return segment != "" && slices.ContainsFunc(nodeTypes, func(t *nodeType) bool { return t.namespace == segment })
}

// edgeRule allows one kind of edge between two types.
type edgeRule struct {
	from, to    string
	label       string
	single      string // type of the end that may have only one such edge, empty for none
	containment bool   // the edge follows from the URI, and cannot be written as a relationship
}

const (
	belongsTo = "org.onap.relationships.inventory.BelongsTo"
	locatedIn = "org.onap.relationships.inventory.LocatedIn"
	supports  = "org.onap.relationships.inventory.Supports"
	uses      = "org.onap.relationships.inventory.Uses"
	hostedOn  = "tosca.relationships.HostedOn"
)

// edgeRules are those of ONAP's DbEdgeRules_v32.json with both ends in nodeTypes. The rules about k8s-resource are the same
// since v24; v24 itself has no Supports between VNFs.
var edgeRules = []*edgeRule{
	{from: "tenant", to: "cloud-region", label: belongsTo, containment: true},
	{from: "k8s-resource", to: "tenant", label: belongsTo, containment: true},
	{from: "vf-module", to: "generic-vnf", label: belongsTo, containment: true},
	{from: "vf-module", to: "k8s-resource", label: uses, single: "k8s-resource"},
	{from: "generic-vnf", to: "k8s-resource", label: hostedOn, single: "k8s-resource"},
	{from: "generic-vnf", to: "cloud-region", label: locatedIn, single: "generic-vnf"},
	{from: "generic-vnf", to: "tenant", label: belongsTo, single: "generic-vnf"},
	{from: "generic-vnf", to: "generic-vnf", label: supports},
	{from: "vf-module", to: "tenant", label: hostedOn, single: "vf-module"},
}

// ruleBetween returns the rule for two types in either direction, or nil. An empty label stands for any. No two types have
// more than one rule.
func ruleBetween(a, b *nodeType, label string) *edgeRule {
	for _, r := range edgeRules {
		pair := (r.from == a.name && r.to == b.name) || (r.from == b.name && r.to == a.name)
		if pair && (label == "" || label == r.label) {
			return r
		}
	}
	return nil
}
