package probe

import (
	"slices"
	"time"
)

// Ref is a Service in the namespace of a scope.
type Ref struct{ Cluster, Name string }

// Want describes what is to be probed for a scope.
type Want struct {
	Spec

	// Clusters are the clusters in which Services are looked for.
	Clusters []string
	// Referred are the Services that the scope refers to. Found are its other Services, such as those in its bundles; they are probed only if their annotation asks for it.
	Referred, Found map[Ref]struct{}
}

// Has reports whether the scope has a Service, whether or not it is probed.
func (w *Want) Has(r Ref) bool {
	_, referred := w.Referred[r]
	_, found := w.Found[r]
	return referred || found
}

// Wants reports whether a Service of a cluster is to be probed for a scope.
func (w *Want) Wants(scope, cluster string, s Service) bool {
	ref := Ref{cluster, s.Name}
	if _, referred := w.Referred[ref]; referred {
		return true
	}
	if _, found := w.Found[ref]; found && s.Annotated {
		return true
	}
	return slices.Contains(s.Scopes, scope)
}

// Probed is a Service that is to be probed, with the Finding.
type Probed struct {
	Ref

	// UID and Component are those of the Service.
	UID, Component string
	// Port is the number of the probed port, as text. Problem says why no port can be probed.
	Port, Problem string
	Finding
}

// Unread is a cluster whose Services cannot be read, or have not been yet.
type Unread struct {
	Cluster string
	// Problem says why; empty while they are being read for the first time, since Since.
	Problem string
	Since   time.Time
}

// Report is what is known of the probes of a scope.
type Report struct {
	// Services are sorted by cluster and name.
	Services []Probed
	// Unread are sorted by cluster.
	Unread []Unread
}
