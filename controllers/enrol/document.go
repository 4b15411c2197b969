package enrol

import (
	"encoding/json"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

const (
	// ConfigMapName is the name of the ConfigMap, in the namespace of the Secrets of clusters, in which the controller publishes their states.
	ConfigMapName = "healthscope-clusters"
	// documentKey is the key of the document in its data. The names of clusters may hold characters that are invalid in keys.
	documentKey = "clusters.json"
	// maxDocumentBytes is the maximum size of a document: an object may have 1 MiB.
	maxDocumentBytes = 900 << 10
	// maxMessageBytes is the maximum size of a message in a document.
	maxMessageBytes = 512
)

// Document is what the controller publishes about its clusters. It has no field
// that changes with time alone, so that it is written only when a state changes.
type Document struct {
	// Lease names the Lease of the controller: while it is renewed, the document is up to date.
	Lease ObjectName `json:"lease"`
	// Clusters are the clusters, by name, the hub's own among them.
	Clusters []Cluster `json:"clusters"`
	// RejectedSecrets are the Secrets that the hub rejects, and the reasons.
	RejectedSecrets []fleet.RejectedSecret `json:"rejectedSecrets,omitempty"`
	// Omitted is the number of clusters and Secrets that did not fit.
	Omitted int `json:"omitted,omitempty"`
}

// ObjectName is the name of an object in a namespace.
type ObjectName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Cluster is the state of a cluster.
type Cluster struct {
	// Name is its name.
	Name string `json:"name"`
	// Local is true for the hub's own cluster.
	Local bool `json:"local,omitempty"`
	// SecretUID is the uid of the Secret by which the hub reads it; empty for the hub's own cluster.
	SecretUID types.UID `json:"secretUID,omitempty"`
	// State is a value of fleet.Reachability.
	State fleet.Reachability `json:"state"`
	// Since is since when the hub sees the cluster, or does not; nil when that is not known.
	Since *time.Time `json:"since,omitempty"`
	// LastSeen is when the cluster was seen last; nil for never, and for one that is Connected, which is seen now unless it is Unwatched.
	LastSeen *time.Time `json:"lastSeen,omitempty"`
	// Message says why the cluster is not Connected, or what is wrong with it.
	Message string `json:"message,omitempty"`
	// Maintenance says why the cluster is under maintenance; empty when it is not.
	Maintenance string `json:"maintenance,omitempty"`
}

// newDocument returns the document for states, which must be sorted by name.
func newDocument(lease ObjectName, states []fleet.ClusterState, rejected []fleet.RejectedSecret) Document {
	d := Document{Lease: lease, Clusters: make([]Cluster, len(states)), RejectedSecrets: rejected}
	for i, s := range states {
		c := Cluster{
			Name: s.Name, Local: s.Local, SecretUID: s.SecretUID, State: s.Reachability, Since: wholeSeconds(s.Since), LastSeen: wholeSeconds(s.LastSeen),
			Message: truncated(s.Message), Maintenance: truncated(s.Maintenance),
		}
		if s.Reachable() && !s.Unmonitored {
			c.LastSeen = nil
		}
		d.Clusters[i] = c
	}
	return d
}

// wholeSeconds returns a time truncated to seconds; nil if it is zero.
func wholeSeconds(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

func truncated(text string) string { return healthscope.Shorten(text, maxMessageBytes) }

// encode returns the document as JSON of at most maxDocumentBytes. To fit, it omits first all messages and rejected Secrets, then
// clusters.
func (d Document) encode() ([]byte, error) {
	data, err := json.Marshal(d)
	if err != nil || len(data) <= maxDocumentBytes {
		return data, err
	}
	bare := make([]Cluster, len(d.Clusters))
	for i, c := range d.Clusters {
		c.Message, c.Maintenance = "", ""
		bare[i] = c
	}
	rejected := len(d.RejectedSecrets)
	d.RejectedSecrets = nil
	for d.Clusters = bare; ; d.Clusters = d.Clusters[:len(d.Clusters)*9/10] {
		d.Omitted = len(bare) - len(d.Clusters) + rejected
		if data, err = json.Marshal(d); err != nil || len(data) <= maxDocumentBytes {
			return data, err
		}
	}
}

// decode reads a document.
func decode(data string) (Document, error) {
	var d Document
	err := json.Unmarshal([]byte(data), &d)
	return d, errors.Wrapf(err, "cannot read key %q of ConfigMap %q", documentKey, ConfigMapName)
}
