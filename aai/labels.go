package aai

// Names of the labels for data for which k8s-resource has no field. A
// configured prefix comes before each name, to distinguish them from labels of
// other owners.
const (
	// LabelStatus is Ready, Pending or Failed.
	LabelStatus = "status"
	// LabelReason is the reason for the status, in one word; absent when there is none.
	LabelReason = "reason"
	// LabelSince is the time at which the state was first seen, in RFC 3339 and UTC; absent when it is not known.
	LabelSince = "since"
	// LabelLink holds the target of a relationship that this installation created; each relationship has its own label. The label is needed because A&AI does not store the owner of a relationship.
	LabelLink = "link"
)
