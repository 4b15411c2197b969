package simulator

import "slices"

// The types below and the order of their fields follow ONAP's OXM files aai_oxm_v24.xml to aai_oxm_v32.xml
// (aai-schema-service), which are equal for them; required means required="true" there, which is what the server enforces.
var nodeTypes = []*nodeType{
	{
		name: "cloud-region", container: "cloud-regions", namespace: "cloud-infrastructure", nameProperty: "owner-defined-type",
		properties: slices.Concat(
			keys("cloud-owner", "cloud-region-id"),
			texts("cloud-type", "owner-defined-type", "cloud-region-version", "identity-url", "cloud-zone", "complex-name",
				"sriov-automation", "cloud-extra-info"),
			integers("cloud-region-number"),
			texts("cloud-function", "cloud-role", "ops-note", "cloud-region-number-definition", "status", "upgrade-cycle"),
			stamp(),
			defaulted("orchestration-disabled", "in-maint"),
			provenance(),
			containers("tenants"),
			relations(),
		),
	},
	{
		name: "tenant", container: "tenants", parent: "cloud-region", nameProperty: "tenant-name",
		properties: slices.Concat(
			keys("tenant-id"), required("tenant-name"),
			texts("tenant-context", "parent-id", "production-state", "support-model"),
			provenance(), stamp(),
			containers("vservers"), relations(), containers("k8s-resources"),
		),
	},
	{
		name: "k8s-resource", container: "k8s-resources", parent: "tenant", since: firstK8sResource, nameProperty: "name",
		properties: slices.Concat(
			keys("id"), required("name", "group", "version", "kind", "namespace"),
			textLists("labels"), required("selflink"),
			provenance(), stamp(), relations(),
		),
	},
	{
		name: "vserver", container: "vservers", parent: "tenant", nameProperty: "vserver-name",
		properties: slices.Concat(
			keys("vserver-id"), required("vserver-name"), texts("vserver-name2", "prov-status"), required("vserver-selflink"),
			defaulted("in-maint", "is-closed-loop-disabled"), texts("numa"),
			provenance(), stamp(), relations(), texts("operational-status"),
		),
	},
	{
		name: "complex", container: "complexes", namespace: "cloud-infrastructure",
		properties: slices.Concat(
			keys("physical-location-id"), texts("data-center-code", "complex-name", "identity-url"), stamp(),
			required("physical-location-type"), texts("time-zone"), provenance(),
			required("street1"), texts("street2"), required("city"), texts("state"),
			required("postal-code", "country", "region"), texts("latitude", "longitude", "elevation", "lata"), relations(),
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
			defaulted("in-maint", "is-closed-loop-disabled"), stamp(), texts("summary-status"),
			booleans("encrypted-access-flag"),
			texts("entitlement-assignment-group-uuid", "entitlement-resource-uuid", "license-assignment-group-uuid",
				"license-key-uuid"),
			model(), internals("persona-model-version"),
			texts("model-customization-id", "widget-model-id", "widget-model-version", "as-number",
				"regional-resource-subzone", "nf-type", "nf-function", "nf-role", "nf-naming-code", "selflink",
				"ipv4-oam-gateway-address"),
			integers("ipv4-oam-gateway-address-prefix-length", "vlan-id-outer"),
			texts("nm-profile-name", "software-version", "application-id"),
			provenance(), relations(), containers("vf-modules"),
		),
	},
	{
		name: "vf-module", container: "vf-modules", parent: "generic-vnf",
		properties: slices.Concat(
			keys("vf-module-id"), texts("vf-module-name", "heat-stack-id", "orchestration-status"),
			defaulted("is-base-vf-module", "automated-assignment"), stamp(),
			model(), internals("persona-model-version"),
			texts("model-customization-id", "widget-model-id", "widget-model-version", "contrail-service-instance-fqdn"),
			integers("module-index"), texts("selflink"),
			provenance(), relations(), texts("operational-status"),
		),
	},
	{
		name: "vnfc", container: "vnfcs", namespace: "network",
		properties: slices.Concat(
			keys("vnfc-name"), required("nfc-naming-code", "nfc-function"),
			texts("prov-status", "orchestration-status", "ipaddress-v4-oam-vip"),
			defaulted("in-maint", "is-closed-loop-disabled"), texts("group-notation"),
			model(), texts("model-customization-id"),
			provenance(), stamp(), relations(),
		),
	},
}

// each makes one property per name from a pattern.
func each(pattern property, names ...string) []property {
	list := make([]property, len(names))
	for i, name := range names {
		list[i] = pattern
		list[i].name = name
	}
	return list
}

func keys(names ...string) []property {
	return each(property{kind: textKind, key: true, required: true}, names...)
}

func required(names ...string) []property {
	return each(property{kind: textKind, required: true}, names...)
}

func texts(names ...string) []property     { return each(property{kind: textKind}, names...) }
func integers(names ...string) []property  { return each(property{kind: integerKind}, names...) }
func booleans(names ...string) []property  { return each(property{kind: booleanKind}, names...) }
func textLists(names ...string) []property { return each(property{kind: textListKind}, names...) }

func defaulted(names ...string) []property {
	return each(property{kind: booleanKind, fallback: true}, names...)
}

func internals(names ...string) []property {
	return each(property{kind: textKind, internal: true}, names...)
}

func containers(names ...string) []property { return each(property{kind: containerKind}, names...) }
func stamp() []property                     { return each(property{kind: versionKind}, "resource-version") }
func relations() []property                 { return each(property{kind: relationsKind}, "relationship-list") }
func provenance() []property                { return texts("data-owner", "data-source", "data-source-version") }

// model is the pair of identifiers that are only valid together.
func model() []property {
	return []property{
		{name: "model-invariant-id", kind: textKind, requires: "model-version-id"},
		{name: "model-version-id", kind: textKind, requires: "model-invariant-id"},
	}
}

const (
	belongsTo = "org.onap.relationships.inventory.BelongsTo"
	locatedIn = "org.onap.relationships.inventory.LocatedIn"
	supports  = "org.onap.relationships.inventory.Supports"
	uses      = "org.onap.relationships.inventory.Uses"
	hostedOn  = "tosca.relationships.HostedOn"
)

// edgeRules are those of ONAP's DbEdgeRules_v32.json whose ends are both in nodeTypes, for every version served. The rules
// that touch k8s-resource are the same since v24; v24 differs in two others: it has no Supports between VNFs, and a
// complex cannot be deleted while a cloud-region is located in it.
var edgeRules = []*edgeRule{
	{from: "tenant", to: "cloud-region", label: belongsTo, multiplicity: manyToOne, tree: true, blocksTo: true},
	{from: "k8s-resource", to: "tenant", label: belongsTo, multiplicity: manyToOne, tree: true, blocksTo: true},
	{from: "vserver", to: "tenant", label: belongsTo, multiplicity: manyToOne, tree: true, blocksTo: true},
	{from: "vf-module", to: "generic-vnf", label: belongsTo, multiplicity: manyToOne, tree: true, deletesFrom: true},

	{from: "vf-module", to: "k8s-resource", label: uses, multiplicity: oneToMany},
	{from: "generic-vnf", to: "k8s-resource", label: hostedOn, multiplicity: oneToMany},

	{from: "cloud-region", to: "complex", label: locatedIn, multiplicity: manyToOne},
	{from: "generic-vnf", to: "complex", label: locatedIn, multiplicity: manyToMany, blocksTo: true},
	{from: "generic-vnf", to: "cloud-region", label: locatedIn, multiplicity: manyToOne},
	{from: "generic-vnf", to: "tenant", label: belongsTo, multiplicity: manyToOne},
	{from: "generic-vnf", to: "generic-vnf", label: supports, multiplicity: manyToMany},
	{from: "generic-vnf", to: "vserver", label: hostedOn, multiplicity: oneToMany},
	{from: "vf-module", to: "tenant", label: hostedOn, multiplicity: manyToOne},
	{from: "vf-module", to: "vnfc", label: uses, multiplicity: oneToMany, deletesTo: true},
	{from: "vf-module", to: "vserver", label: uses, multiplicity: oneToMany},
	{from: "vnfc", to: "generic-vnf", label: belongsTo, multiplicity: manyToOne, deletesFrom: true},
	{from: "vnfc", to: "vserver", label: hostedOn, multiplicity: oneToMany},
}
