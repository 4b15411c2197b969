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

// InstanceDocument is the status of an instance in the shape in which k8splugin answers /v1/instance/{id}/status. What
// bundles do not know, the request that made the instance, is left out.
type InstanceDocument struct {
	// ID is the instance's id.
	ID string `json:"id"`
	// Namespace is the namespace of its bundles; absent when they are in several.
	Namespace string `json:"namespace,omitempty"`
	// Ready is true when there are resources, all that count are Ready, and all of them are known.
	Ready bool `json:"ready"`
	// ResourceCount is the number of resources, also of those that are not listed because their bundle is too large.
	ResourceCount int `json:"resourceCount"`
	// Resources are sorted by cluster, group, kind, namespace and name. They are never null.
	Resources []InstanceResource `json:"resourcesStatus"`
	// Message is why bundles of it are empty, for people; absent when every one was filled.
	Message string `json:"message,omitempty"`
	// LastSeen is when all of this was known last to be so; absent when it is current.
	LastSeen string `format:"date-time" json:"lastSeen,omitempty"`
	// UnreadClusters are the clusters of which nothing has been read yet, so that there may be more of the instance there; absent when there are none.
	UnreadClusters []string `json:"unreadClusters,omitempty"`
}

// InstanceResource is a resource of an instance.
type InstanceResource struct {
	// Name is its name.
	Name string `json:"name"`
	// GVK is its group, version and kind.
	GVK GVK `json:"GVK"`
	// Status is the whole object without what may not be shown, not its status alone; absent when the bundle does not have it.
	Status json.RawMessage `json:"status,omitempty"`
}

// NewInstance returns the document of an instance. reports are those of all bundles that carry its id in InstanceLabel, in any order.
// There is at least one, because without a bundle it is not even known that the instance exists. unread names the clusters that
// have not been read yet.
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
