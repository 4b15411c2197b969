package status

import (
	"encoding/json"
	"time"
)

// Document is the status of a deployment intent group, or of the network intents of a cluster. The fields up to `status`, the
// counts and `apps` are those of EMCO's status design, in its order. A default document has other fields only if data are not
// current, are missing or cannot be read, a filter matches nothing, or rsync cannot reach a cluster. Times are in RFC 3339, in
// UTC.
type Document struct {
	// Project is the name of the project. Absent in the document of a cluster.
	Project string `json:"project,omitempty"`
	// CompositeApp is the name of the composite app. Absent in the document of a cluster.
	CompositeApp string `json:"composite-app-name,omitempty"`
	// CompositeAppVersion is the version of the composite app. Absent in the document of a cluster.
	CompositeAppVersion string `json:"composite-app-version,omitempty"`
	// CompositeProfile is the name of the composite profile. Absent in the document of a cluster, and if the context does not
	// contain it: EMCO does not write it.
	CompositeProfile string `json:"composite-profile-name,omitempty"`
	// Name is the name of the deployment intent group, or of the cluster as `<provider>+<cluster>`.
	Name string `json:"name"`
	// State is the history of the actions of users. Absent in a list of instances.
	State *History `json:"state,omitempty"`
	// Instances are the ids of all contexts, the oldest first. Present only if the query has the parameter `instance` without a value.
	Instances []string `json:"instances,omitzero"`
	// Status is the state of the context, as rsync writes it, such as `Instantiating`, `Instantiated`, `InstantiateFailed`,
	// `Updating`, `Updated`, `UpdatedFailed`, `Terminating`, `Terminated` or `TerminateFailed`. Absent until rsync starts, and if
	// the state cannot be read.
	Status string `json:"status,omitempty"`
	// Health is the combined health of all resources that the query selects. Present only with `health=true`.
	Health *Health `json:"health,omitempty"`
	Freshness
	// RsyncStatus is the number of listed resources by their `rsync-status`. A status without resources is omitted. Absent with
	// `type=cluster`.
	RsyncStatus map[string]int `json:"rsync-status,omitempty" minimum:"1"`
	// ClusterStatus is the number of listed resources by their status in the cluster: `Present`, `NotPresent` or `Unknown`. A status
	// without resources is omitted. Absent with `type=rsync`.
	ClusterStatus map[string]int `json:"cluster-status,omitempty" minimum:"1"`
	// Unmatched holds the values of filters that match no resource in the response. Absent if every value matches a resource.
	Unmatched *Unmatched `json:"unmatched,omitempty"`
	// Problems are descriptions, for people, of the values in the contexts that cannot be read. There are at most 20; if there are
	// more problems, the last entry is the number of the others. The resources concerned are listed nevertheless. Absent if there are
	// none.
	Problems []string `json:"problems,omitempty"`
	// Apps are the apps, in the order in which the context deploys them. An app without a resource in the response is omitted.
	// Absent with `output=summary`.
	Apps []App `json:"apps,omitempty"`
}

// Freshness is the age of data. It is empty for current data.
type Freshness struct {
	// Source is `context` if the data are from a bundle that was saved in the context, as of `last-seen`, or of unknown age without
	// `last-seen`. The document has it if one of its clusters has it. Absent if the hub itself observes the data.
	Source string `enum:"context" json:"source,omitempty"`
	// LastSeen is the last time at which the data were known to be as shown; for the document, the oldest such time of its parts.
	// Present, if it is known, for data that are not current, and with `health=true` for all data.
	LastSeen string `format:"date-time" json:"last-seen,omitempty"`
	// Truncated is true if there are objects that the response does not list, because their bundle is too large to list them. Absent
	// otherwise.
	Truncated bool `json:"truncated,omitempty"`
}

// noHistory is the value of History.Unknown. EMCO stores the history in its own database.
const noHistory = "no history of it is kept in etcd; what users did is known to those who made its contexts"

// sourceContext is the Freshness.Source of bundles that were saved in the context.
const sourceContext = "context"

// History is the history of the actions of users on a deployment intent group, or on the network intents of a cluster.
type History struct {
	// Actions are the actions of users, in the order in which they were recorded. Absent if no history is stored; otherwise there is
	// at least one.
	Actions []Action `json:"Actions,omitempty"`
	// Unknown is the reason, for people, why the actions of users are not known: no history is stored. Absent if there is a history.
	Unknown string `json:"Unknown,omitempty"`
}

// Action is an action of a user. It does not show the result of the action.
type Action struct {
	// State is the kind of the action, such as `Created`, `Approved`, `Instantiated`, `Updated` or `Terminated`.
	State string `json:"State"`
	// ContextID is the id of the context that the action created or applied to. Empty for an action without a context, such as
	// `Created`.
	ContextID string `json:"ContextId"`
	// TimeStamp is the time of the action.
	TimeStamp string `format:"date-time" json:"TimeStamp"`
}

// Unmatched holds the values of a query that match nothing.
type Unmatched struct {
	// Apps are the values of the parameter `app` that match no resource in the response. Absent if there are none.
	Apps []string `json:"app,omitempty"`
	// Clusters are the values of the parameter `cluster` that match no resource in the response. Absent if there are none.
	Clusters []string `json:"cluster,omitempty"`
	// Resources are the values of the parameter `resource` that match no resource in the response. Absent if there are none.
	Resources []string `json:"resource,omitempty"`
	// Instance is the id of the requested context, or by default of the current one, if that context no longer exists. Absent
	// otherwise.
	Instance string `json:"instance,omitempty"`
}

// App is an app of a composite app.
type App struct {
	// Name is the name of the app.
	Name string `json:"name"`
	// Health is the combined health of all resources of the app that the query selects. Present only with `health=true`.
	Health *Health `json:"health,omitempty"`
	// Clusters are the clusters of the app, sorted by name. A cluster without a resource in the response is omitted.
	Clusters []Cluster `json:"clusters"`
}

// Cluster is an app in a cluster.
type Cluster struct {
	// Provider is the name of the cluster's provider. Absent if the context has no name of the form `<provider>+<cluster>` for the
	// cluster.
	Provider string `json:"cluster-provider,omitempty"`
	// Name is the name of the cluster, without its provider.
	Name string `json:"cluster"`
	// Connectivity is `Retrying` while rsync cannot reach the cluster and tries again. Absent otherwise.
	Connectivity string `enum:"Retrying" json:"connectivity,omitempty"`
	// Health is the combined health of all resources of the app in this cluster that the query selects. Present only with
	// `health=true`.
	Health *Health `json:"health,omitempty"`
	Freshness
	// Resources are the resources of the app in this cluster: first those in the context, sorted by name and kind, then those that
	// are only in the cluster, sorted by group, kind, namespace and name.
	Resources []Resource `json:"resources"`
}

// Resource is an object that exists in a cluster, or that is expected there.
type Resource struct {
	// GVK is the group, version and kind of the resource. Group and version are those in the context if they are known. Fields that
	// are not known are empty.
	GVK GVK `json:"GVK"`
	// Name is the name of the object.
	Name string `json:"name"`
	// Namespace is the namespace of the object. Present only with `health=true`, and if it is known. Absent for cluster-scoped
	// objects.
	Namespace string `json:"namespace,omitempty"`
	// RsyncStatus is the result of rsync's work on the resource: `Pending`, `Applied`, `Failed`, `Retrying` or `Deleted`; `Unknown`
	// if it cannot be read. Other values in the context are passed on unchanged. Absent for a resource that is only in the cluster,
	// and with `type=cluster`.
	RsyncStatus string `json:"rsync-status,omitempty"`
	// ClusterStatus is `NotPresent` or `Unknown` for a resource that is not known to be in the cluster. For a resource in the
	// cluster, it is `Present` with `type=all`, and absent with `type=cluster`, as in EMCO's design. Absent with `type=rsync`.
	ClusterStatus Presence `json:"cluster-status,omitempty" openapi:"Presence"`
	// Health is the health of the resource. Present only with `health=true`.
	Health *Health `json:"health,omitempty"`
	// Detail is the Kubernetes object without confidential data, as it is in the cluster; with `type=rsync`, as it is in the
	// context. Present only with `output=detail`, and if the object is available.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// GVK is a group, version and kind in EMCO's spelling.
type GVK struct {
	// Group is the API group; empty for the core group.
	Group string `json:"Group"`
	// Version is the version in that group.
	Version string `json:"Version"`
	// Kind is the kind.
	Kind string `json:"Kind"`
}

// Health is the health of one resource, or the combined health of several resources.
type Health struct {
	// State is `Ready`, `Pending`, `Failed`, `Terminating`, `NotPresent` or `Unknown`.
	State string `json:"state" openapi:"State"`
	// Reason is the reason for the state, in one CamelCase word. Absent if there is nothing to report.
	Reason string `json:"reason,omitempty"`
	// Message describes the reason for people. For several resources, it names the worst one if that determines the state. Absent if
	// there is nothing to report.
	Message string `json:"message,omitempty"`
	// Cause is the root cause of the state, such as a pod that crashes. Absent if `reason` and `message` are sufficient, and for
	// several resources.
	Cause string `json:"cause,omitempty"`
	// LastState is the last known state of a resource that can no longer be read. Absent otherwise.
	LastState string `json:"last-state,omitempty" openapi:"State"`
	// Since is the time at which the state began. Absent if it is not known.
	Since string `format:"date-time" json:"since,omitempty"`
	// Age is the time since `since`, in seconds; 0 if `since` is in the future. Absent if `since` is absent.
	Age *int64 `json:"age,omitempty"`
	// CountsAs is the state as which the resource counts in the health of its cluster, its app and the document: `Ready`, `Pending`,
	// `Failed` or `Unknown`. Absent for a resource that does not count, because its owner counts, because it is being deleted, or
	// because its kind is not reported or its bundle does not list it. Absent for several resources.
	CountsAs string `enum:"Ready,Pending,Failed,Unknown" json:"counts-as,omitempty"`
	// Resources are the numbers of resources that count, by state. Absent for a single resource.
	Resources *Counts `json:"resources,omitempty"`
}

// Counts are numbers of objects, by the state as which they count.
type Counts struct {
	// Total is the number of objects that count: the sum of the other fields.
	Total int `json:"total"`
	// Ready is the number of objects that are Ready.
	Ready int `json:"ready"`
	// Pending is the number of objects that are not Ready yet.
	Pending int `json:"pending"`
	// Failed is the number of objects that are Failed.
	Failed int `json:"failed"`
	// Unknown is the number of objects whose state cannot be determined.
	Unknown int `json:"unknown"`
}

// wireTime returns a time as it is served; empty for the zero time. It works for any year.
func wireTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
