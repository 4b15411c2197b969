package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// InstanceLabel is the label of the bundles, and of the objects, of an instance of ONAP's k8splugin. Its value is the
// instance's id.
const InstanceLabel = "k8splugin.io/rb-instance-id"

// InstanceDocument is the status of an instance, in the form of k8splugin's response to /v1/instance/{id}/status. It does not
// contain the request that created the instance, because bundles do not contain it.
type InstanceDocument struct {
	// ID is the id of the instance.
	ID string `json:"id"`
	// Namespace is the namespace of the bundles of the instance. Absent if they are in more than one namespace, or if it is not known.
	Namespace string `json:"namespace,omitempty"`
	// Ready is true if the instance has resources, all that count are Ready, the current state of all is known, and all clusters
	// have been read.
	Ready bool `json:"ready"`
	// ResourceCount is the number of resources. It includes those that are not listed because their bundle is too large.
	ResourceCount int `json:"resourceCount"`
	// Resources are the resources, sorted by cluster, group, kind, namespace and name. Empty if there are none.
	Resources []InstanceResource `json:"resourcesStatus"`
	// Message describes, for people, why bundles of the instance are empty. Absent if a monitor has filled every bundle that can be
	// read.
	Message string `json:"message,omitempty"`
	// LastSeen is the last time at which all of this was known to be as shown. Absent if it is current, or if that time is not known.
	LastSeen string `format:"date-time" json:"lastSeen,omitempty"`
	// UnreadClusters are the names of the clusters that have not been read yet and may have more resources of the instance. Absent
	// if there are none.
	UnreadClusters []string `json:"unreadClusters,omitempty"`
}

// InstanceResource is a resource of an instance.
type InstanceResource struct {
	// Name is the name of the object.
	Name string `json:"name"`
	// GVK is the group, version and kind of the object.
	GVK GVK `json:"GVK"`
	// Status is the whole Kubernetes object without confidential data, and not only its status. Absent if the bundle does not
	// contain the object.
	Status json.RawMessage `json:"status,omitempty"`
}

// NewInstance returns the document of an instance. reports are those of all bundles that carry its id in InstanceLabel, in any
// order. There is at least one, because without a bundle it is not even known that the instance exists. unread names the clusters
// that have not been read yet.
func NewInstance(id string, reports []Report, unread []string) InstanceDocument {
	document := InstanceDocument{ID: id, Namespace: namespaceOf(reports), Resources: []InstanceResource{}, Message: unfilledMessage(reports), UnreadClusters: unread}
	var members []instanceMember
	var summary healthscope.Summary
	var seen oldestSeen
	incomplete := len(unread) > 0
	for i := range reports {
		r := &reports[i]
		objects := r.Bundle.objects()
		for j := range r.Members {
			m := &r.Members[j]
			members = append(members, instanceMember{m, objects[m.Key]})
			summary.Add(*m)
		}
		document.ResourceCount += r.objectCount()
		notReady := r.Unlisted.Total - r.Unlisted.Ready
		incomplete = incomplete || r.Unreachable || !r.Observed || len(r.Malformed) > 0 || notReady > 0
		if r.Unreachable || r.Saved {
			seen.add(r.LastSeen)
		}
	}
	slices.SortFunc(members, func(a, b instanceMember) int {
		return cmp.Or(a.Compare(b.Key), strings.Compare(a.UID, b.UID))
	})
	for _, m := range members {
		document.Resources = append(document.Resources, InstanceResource{
			Name: m.Name, GVK: GVK{Group: m.Group, Version: m.Version, Kind: m.Kind}, Status: encode(m.object),
		})
	}
	document.Ready = !incomplete && summary.Total > 0 && summary.Ready == summary.Total
	document.LastSeen = wireTime(seen.seen)
	return document
}

// namespaceOf returns the namespace of all reports; empty when they are in several.
func namespaceOf(reports []Report) string {
	namespace := ""
	for i := range reports {
		if i > 0 && reports[i].Namespace != namespace {
			return ""
		}
		namespace = reports[i].Namespace
	}
	return namespace
}

// unfilledMessage returns a message about the bundles that no monitor has filled; empty when there are none. A monitor follows the
// label keys in its configuration. By default, this is only EMCO's key.
func unfilledMessage(reports []Report) string {
	empty := 0
	for i := range reports {
		if !reports[i].Observed && !reports[i].Unreachable {
			empty++
		}
	}
	if empty == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d bundles have not been filled: does a monitor run in the cluster, with %s in monitor.labelKeys and the bundle's namespace in monitor.namespaces?", empty, len(reports), InstanceLabel)
}

// instanceMember is a member with its object; nil when the object is not available.
type instanceMember struct {
	*healthscope.Member

	object map[string]any
}

// objectCount returns the number of objects of a bundle, listed or not.
func (r *Report) objectCount() int {
	count := len(r.Members)
	if r.Truncated && r.Bundle != nil {
		count = max(count, r.Bundle.count)
	}
	if r.Truncated {
		count = max(count, len(r.Members)+r.Unlisted.Total)
	}
	return count
}
