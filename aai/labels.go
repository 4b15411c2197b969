package aai

// Names of the labels that carry what k8s-resource has no field for. A
// configured prefix comes before each name, so that labels of others cannot be
// mistaken for them.
const (
	// LabelStatus is Ready, Pending or Failed.
	LabelStatus = "status"
	// LabelReason says in one word why; absent when there is nothing to say.
	LabelReason = "reason"
	// LabelSince is when the state was first seen, in RFC 3339 and UTC; absent when that is not known.
	LabelSince = "since"
	// LabelLink holds the target of a relationship that this installation made, one label for each. A&AI does not say whose a relationship is; this label does.
	LabelLink = "link"
)
