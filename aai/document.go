package aai

import (
	"fmt"
	"net/url"
	"strings"
)

// Document is a k8s-resource, which represents one Kubernetes resource in A&AI.
// The fields and their JSON names are those of the A&AI schema, which are the
// same in v24 to v32. The schema has no field for health, so Labels hold it.
type Document struct {
	// ID is the key of the document.
	ID string `json:"id"`
	// Name is the resource's name.
	Name string `json:"name"`
	// Group is the API group; empty for the core group, but never absent, because A&AI requires it.
	Group string `json:"group"`
	// Version is the API version, such as v1.
	Version string `json:"version"`
	// Kind is the kind.
	Kind string `json:"kind"`
	// Namespace is the namespace; empty for cluster-scoped resources, but never absent.
	Namespace string `json:"namespace"`
	// Labels are key=value strings. A&AI stores them as a set: order and duplicates have no meaning.
	Labels []string `json:"labels,omitempty"`
	// Selflink is the URL of more information about the resource.
	Selflink string `json:"selflink"`
	// DataOwner identifies who manages the document.
	DataOwner string `json:"data-owner,omitempty"`
	// DataSource is where the data comes from: the name of the cluster.
	DataSource string `json:"data-source,omitempty"`
	// DataSourceVersion is the version of the source's data. This project does not change it.
	DataSourceVersion string `json:"data-source-version,omitempty"`
	// ResourceVersion is A&AI's token for optimistic concurrency. A&AI sets it. A create must not carry it, and an update must carry the one that was read.
	ResourceVersion string `json:"resource-version,omitempty"`
	// RelationshipList holds the relationships. On a PUT, A&AI keeps its relationships if the list is absent, and replaces them if it is present.
	RelationshipList RelationshipList `json:"relationship-list,omitzero"`
}

// RelationshipList is the JSON object in which A&AI wraps relationships.
type RelationshipList struct {
	// Relationships are the relationships, in no particular order.
	Relationships []Relationship `json:"relationship"`
}

// IsZero reports whether the list is absent. A list that is present and empty is not.
func (l RelationshipList) IsZero() bool { return l.Relationships == nil }

// Relationship is an edge from a k8s-resource to another object in A&AI.
type Relationship struct {
	// RelatedTo is the type of the other object, generic-vnf or vf-module.
	RelatedTo string `json:"related-to"`
	// Label is the kind of edge. A&AI fills it in when it is absent, because each type has only one kind.
	Label string `json:"relationship-label,omitempty"`
	// RelatedLink is the path of the other object, with or without /aai/vN, never with a host.
	RelatedLink string `json:"related-link"`
}

// Target returns the path of the other object in the form that Key.Path uses. Two relationships are equal if their targets are equal.
func (r Relationship) Target() string { return canonicalPath(r.RelatedLink) }

// String returns the type and the id of the other object, for messages.
func (r Relationship) String() string {
	_, id := r.TargetID()
	return fmt.Sprintf("%s %q", r.RelatedTo, id)
}

// TargetID returns the property that identifies the other object in the A&AI schema, and its value.
func (r Relationship) TargetID() (property, id string) {
	target := r.Target()
	id = target[strings.LastIndexByte(target, '/')+1:]
	if decoded, err := url.PathUnescape(id); err == nil {
		id = decoded
	}
	if r.RelatedTo == "generic-vnf" {
		return "vnf-id", id
	}
	return r.RelatedTo + "-id", id
}

// RelationshipToGenericVNF returns the relationship to a VNF. A k8s-resource can have at most one.
func RelationshipToGenericVNF(vnfID string) Relationship {
	return Relationship{RelatedTo: "generic-vnf", RelatedLink: vnfPath(vnfID)}
}

// RelationshipToVFModule returns the relationship to a module of a VNF. A k8s-resource can have at most one.
func RelationshipToVFModule(vnfID, vfModuleID string) Relationship {
	return Relationship{RelatedTo: "vf-module", RelatedLink: VFModule{GenericVNFID: vnfID, ID: vfModuleID}.Path()}
}

func vnfPath(vnfID string) string { return path("network", "generic-vnfs", "generic-vnf", vnfID) }
