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
	// documentKey is the key of the document in its data. Names of clusters may hold characters that no key may.
	documentKey = "clusters.json"
	// maxDocument is the size in bytes of a document at most: an object may have 1 MiB altogether.
	maxDocument = 900 << 10
	// maxText is how much of a message a document holds, in bytes.
	maxText = 512
)

// Document is what the controller publishes of its clusters. It has nothing
// that changes with time alone, so that it is written only when something happens.
type Document struct {
	// Lease names the Lease of the controller: while it is renewed, the document is up to date.
	Lease ObjectName `json:"lease"`
	// Clusters are the clusters, by name, the hub's own among them.
	Clusters []Cluster `json:"clusters"`
	// RejectedSecrets are the Secrets that are none of a cluster, and why.
	RejectedSecrets []fleet.RejectedSecret `json:"rejectedSecrets,omitempty"`
	// Omitted is how many clusters and Secrets more there are, which did not fit.
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

// newDocument returns the document for states, which are sorted.
func newDocument(lease ObjectName, states []fleet.ClusterState, rejected []fleet.RejectedSecret) Document {
	d := Document{Lease: lease, Clusters: make([]Cluster, len(states)), RejectedSecrets: rejected}
	for i, s := range states {
		c := Cluster{
			Name: s.Name, Local: s.Local, SecretUID: s.SecretUID, State: s.Reachability, Since: instant(s.Since), LastSeen: instant(s.LastSeen),
			Message: shortened(s.Message), Maintenance: shortened(s.Maintenance),
		}
		if s.Reachable() && !s.Unwatched {
			c.LastSeen = nil
		}
		d.Clusters[i] = c
	}
	return d
}

// instant returns a time in whole seconds; nil when it is zero.
func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

func shortened(text string) string { return healthscope.Shorten(text, maxText) }

// encode returns the document as JSON of at most maxDocument bytes. What does not fit is left out: first all messages and rejected Secrets, then clusters.
func (d Document) encode() ([]byte, error) {
	data, err := json.Marshal(d)
	if err != nil || len(data) <= maxDocument {
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
		if data, err = json.Marshal(d); err != nil || len(data) <= maxDocument {
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
