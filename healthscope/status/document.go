package status

import (
	"encoding/json"
	"time"
)

// Document is the status of a deployment intent group, or of the network intents of a cluster. Its first fields, down to
// Status, and the counts and apps, are those of EMCO's status design, in its order; nothing else is in a default document
// unless something is wrong. Times are RFC 3339, in UTC.
type Document struct {
	// Project is the project; of a deployment intent group only, as are the next three.
	Project string `json:"project,omitempty"`
	// CompositeApp is the composite app.
	CompositeApp string `json:"composite-app-name,omitempty"`
	// CompositeAppVersion is its version.
	CompositeAppVersion string `json:"composite-app-version,omitempty"`
	// CompositeProfile is the composite profile; absent where the context does not name it, as EMCO's do not.
	CompositeProfile string `json:"composite-profile-name,omitempty"`
	// Name is the name of the group, or of the cluster: <provider>+<cluster>.
	Name string `json:"name"`
	// State is what users did, in the order in which they did it; absent from a list of instances.
	State *History `json:"state,omitempty"`
	// Instances are the ids of all contexts, the oldest first; absent unless they were asked for.
	Instances []string `json:"instances,omitzero"`
	// Status is the state of the context, as rsync keeps it; absent as long as rsync has not begun.
	Status string `json:"status,omitempty"`
	// Health is the final state of everything that the query selects.
	Health *Health `json:"health,omitempty"`
	Freshness
	// RsyncStatus counts the listed resources by what rsync did with them. Words without any are left out.
	RsyncStatus map[string]int `json:"rsync-status,omitempty" minimum:"1"`
	// ClusterStatus counts the listed resources by whether they are there. Words without any are left out.
	ClusterStatus map[string]int `json:"cluster-status,omitempty" minimum:"1"`
	// Unmatched are the values of filters that no resource in the answer has; absent when each has one.
	Unmatched *Unmatched `json:"unmatched,omitempty"`
	// Problems are what in the contexts cannot be read, at most twenty places.
	Problems []string `json:"problems,omitempty"`
	// Apps are in the order in which the context wants them brought up. One without a resource in the answer is left out.
	Apps []App `json:"apps,omitempty"`
}

// Freshness says how old a fact is. It is empty for what is current.
type Freshness struct {
	// Source is `context` for what was saved in the context, and is as old as `last-seen` says, or of unknown age without it. Absent for what the hub sees.
	Source string `enum:"context" json:"source,omitempty"`
	// LastSeen is when this was known last to be so. Of a document it is the oldest of all.
	LastSeen string `format:"date-time" json:"last-seen,omitempty"`
	// Truncated is true when there are objects that the answer does not list: their bundle is too large.
	Truncated bool `json:"truncated,omitempty"`
}

// noHistory is History.Unknown: EMCO keeps the history in its own database.
const noHistory = "no history of it is kept in etcd; what users did is known to those who made its contexts"

// sourceContext is the Freshness.Source of bundles that were saved in the context.
const sourceContext = "context"

// History is what users did with a group or with the network intents of a cluster.
type History struct {
	// Actions are absent where no history is kept; else there is at least one.
	Actions []Action `json:"Actions,omitempty"`
	// Unknown is the reason, for people, why it is not known what users did: no history is kept. Absent where there is one.
	Unknown string `json:"Unknown,omitempty"`
}

// Action is something that a user did.
type Action struct {
	// State is what, such as Created, Approved, Instantiated or Terminated.
	State string `json:"State"`
	// ContextID is the context that came of it, or that it was about; empty when there is none.
	ContextID string `json:"ContextId"`
	// TimeStamp is when.
	TimeStamp string `format:"date-time" json:"TimeStamp"`
}

// Unmatched are values of a query that lead to nothing.
type Unmatched struct {
	// Apps are values of the filter app.
	Apps []string `json:"app,omitempty"`
	// Clusters are values of the filter cluster.
	Clusters []string `json:"cluster,omitempty"`
	// Resources are values of the filter resource.
	Resources []string `json:"resource,omitempty"`
	// Instance is the id of a context that is not kept any more.
	Instance string `json:"instance,omitempty"`
}

// App is an app of a composite app.
type App struct {
	// Name is its name.
	Name string `json:"name"`
	// Health is the state of all of it that the query selects.
	Health *Health `json:"health,omitempty"`
	// Clusters are sorted by their names. One without a resource in the answer is left out.
	Clusters []Cluster `json:"clusters"`
}

// Cluster is an app in a cluster.
type Cluster struct {
	// Provider is the name of the cluster's provider.
	Provider string `json:"cluster-provider,omitempty"`
	// Name is the name of the cluster itself.
	Name string `json:"cluster"`
	// Connectivity is `Retrying` while rsync cannot reach the cluster, and tries again; else it is absent.
	Connectivity string `enum:"Retrying" json:"connectivity,omitempty"`
	// Health is the state of all of the app there that the query selects.
	Health *Health `json:"health,omitempty"`
	Freshness
	// Resources are those in the context, sorted by name and kind, then those that are in the cluster only, by group, kind, namespace and name.
	Resources []Resource `json:"resources"`
}

// Resource is an object in a cluster, or one that should be there.
type Resource struct {
	// GVK is its group, version and kind, as the context has it. What is not known is empty.
	GVK GVK `json:"GVK"`
	// Name is its name.
	Name string `json:"name"`
	// Namespace is its namespace; only with health.
	Namespace string `json:"namespace,omitempty"`
	// RsyncStatus is what rsync did with it; absent for what is in the cluster only, and with type=cluster.
	RsyncStatus string `json:"rsync-status,omitempty"`
	// ClusterStatus is NotPresent or Unknown for what is not known to be there; absent with type=rsync. With type=all it is
	// also Present; with type=cluster that is left out, as in EMCO's design.
	ClusterStatus Presence `json:"cluster-status,omitempty" openapi:"Presence"`
	// Health is its state.
	Health *Health `json:"health,omitempty"`
	// Detail is the object without what may not be shown: as it is in the cluster, or with type=rsync as it is in the
	// context. Absent unless it was asked for, and where the object is not at hand.
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

// Health is the state of an object, or of many together.
type Health struct {
	// State is Ready, Pending, Failed, Terminating, NotPresent or Unknown.
	State string `json:"state" openapi:"State"`
	// Reason is why, in one word; absent where there is nothing to say.
	Reason string `json:"reason,omitempty"`
	// Message is the same for people. For many it names the one that is worst.
	Message string `json:"message,omitempty"`
	// Cause is what is at the bottom of it, such as a pod that crashes, where the object alone does not say it.
	Cause string `json:"cause,omitempty"`
	// LastState is the state that was known last of an object that cannot be seen any more.
	LastState string `json:"last-state,omitempty" openapi:"State"`
	// Since is since when it is in its state, as far as that is known.
	Since string `format:"date-time" json:"since,omitempty"`
	// Age is the number of seconds since then.
	Age *int64 `json:"age,omitempty"`
	// CountsAs is the state an object counts as in those of its cluster and app: Ready, Pending, Failed or Unknown. Absent for
	// one that does not count, because its owner does or because it is to go, and for many.
	CountsAs string `enum:"Ready,Pending,Failed,Unknown" json:"counts-as,omitempty"`
	// Resources counts the objects that count; absent for a single object.
	Resources *Counts `json:"resources,omitempty"`
}

// Counts counts objects by the state they count as.
type Counts struct {
	// Total is the sum of the others.
	Total int `json:"total"`
	// Ready is the number that are Ready.
	Ready int `json:"ready"`
	// Pending is the number that are not Ready yet.
	Pending int `json:"pending"`
	// Failed is the number that are Failed.
	Failed int `json:"failed"`
	// Unknown is the number that cannot be judged.
	Unknown int `json:"unknown"`
}

// wireTime returns a time as it is served; empty for the zero time. It works for any year.
func wireTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
