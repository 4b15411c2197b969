package api

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/status"
)

// notCounted is "ready/total" of a scope that has not been evaluated.
const notCounted = "0/0"

// Messages of a scope whose status is missing or outdated.
const (
	// notObservedMessage explains healthscope.ReasonNotObserved.
	notObservedMessage = "the controller has not written a status for this scope yet"
	// staleMessage explains healthscope.ReasonStaleGeneration.
	staleMessage = "the controller has not evaluated this scope since its spec changed"
)

// ScopeList is a list of scopes.
type ScopeList struct {
	// Items are the scopes, sorted by namespace and name.
	Items []ScopeItem `json:"items"`
	// Total is the number of scopes, on all pages together.
	Total int `json:"total"`
}

// ScopePage is a page of a list of scopes.
type ScopePage struct {
	// Metadata holds the token of the next page. It is empty on the last page.
	Metadata ListMetadata `json:"metadata"`
	ScopeList
}

// ListMetadata is the metadata of a page of a list, as in Kubernetes. It is empty on the last page.
type ListMetadata struct {
	// Continue is the token of the next page: the value of the parameter `continue` in the request for that page. Absent on the last
	// page.
	Continue string `json:"continue,omitempty"`
	// RemainingItemCount is the number of scopes on the pages after this one. Absent on the last page.
	RemainingItemCount int `json:"remainingItemCount,omitempty"`
}

// ScopeName identifies a scope. It is the data of the event for a scope that was deleted or is no longer selected.
type ScopeName struct {
	// Name is the name of the scope.
	Name string `json:"name"`
	// Namespace is the namespace of the scope.
	Namespace string `json:"namespace"`
}

// compare returns the order of two names in lists: by namespace, then by name.
func (n ScopeName) compare(other ScopeName) int {
	return cmp.Or(strings.Compare(n.Namespace, other.Namespace), strings.Compare(n.Name, other.Name))
}

// ScopeItem is the short form of a scope.
type ScopeItem struct {
	// Name is the name of the scope.
	Name string `json:"name" openapi:"ScopeName"`
	// Namespace is the namespace of the scope.
	Namespace string `json:"namespace" openapi:"NamespaceName"`
	// Health is `healthy`, `unhealthy` or `unknown`. It is `unknown` in these cases: only members that cannot be judged, or apps
	// without members, keep the scope from being healthy; the scope has no members; the scope has not been evaluated since it was
	// created or its spec changed.
	Health string `json:"health" openapi:"Health"`
	// State is the worst state of the members that count.
	State string `json:"state" openapi:"State"`
	// Reason is the reason for `health`, in one CamelCase word. It is `NotObserved` before the first evaluation, and
	// `StaleGeneration` if the scope has not been evaluated since its spec changed.
	Reason string `json:"reason,omitempty"`
	// ResourcesReady is the number of members that are Ready, a slash, and the number of members that count. `0/0` before the first
	// evaluation.
	ResourcesReady string `json:"resourcesReady" openapi:"Ratio"`
	// ClustersReachable is the number of clusters of the scope that can be reached, a slash, and the number of clusters of the
	// scope. `0/0` before the first evaluation.
	ClustersReachable string `json:"clustersReachable" openapi:"Ratio"`
	// FirstCulprit describes, in one line, the worst member that is not healthy; if there is none, what else keeps the scope from
	// being healthy, such as a required app without members. Absent if there is nothing to describe.
	FirstCulprit string `json:"firstCulprit,omitempty"`
	// Stale is true if the scope has not been evaluated since it was created or its spec changed. `health` is then `unknown`, and
	// the fields other than `reason`, `message` and `generation` are those of the last evaluation.
	Stale bool `json:"stale"`
}

// Scope is the full form of a scope. Its lists are sorted, worst first, except `conditions`. A list without entries is empty, and
// never null.
type Scope struct {
	ScopeItem
	// Message describes `reason` for people.
	Message string `json:"message,omitempty"`
	// Summary is the number of members that count in the scope's health, by state.
	Summary status.Counts `json:"summary"`
	// Apps are the applications of the scope.
	Apps []App `json:"apps"`
	// Culprits are the members that count and are not healthy.
	Culprits []Culprit `json:"culprits"`
	// Conditions are the conditions of the scope, sorted by type.
	Conditions []Condition `json:"conditions"`
	// Inventory is the number of the scope's resources by the state of their synchronization with A&AI. Absent if no A&AI is
	// configured.
	Inventory *Inventory `json:"inventory,omitempty"`
	// Generation is `metadata.generation` of the scope. It increases with each change of the spec.
	Generation int64 `json:"generation"`
	// ObservedGeneration is the generation of the scope at the last evaluation; 0 before the first evaluation.
	ObservedGeneration int64 `json:"observedGeneration"`
	// Truncated is true if lists were cut because they are long, or a bundle of the scope does not list all its resources. Counts
	// are exact nevertheless.
	Truncated bool `json:"truncated"`
}

// App is an application of a scope.
type App struct {
	// Name is the name of the application within the scope. Empty for members outside apps.
	Name string `json:"name"`
	// State is the worst state of the members of the application that count.
	State string `json:"state" openapi:"State"`
	// Total is the number of members of the application that count.
	Total int32 `json:"total"`
	// Ready is the number of members of the application that count and are Ready.
	Ready int32 `json:"ready"`
	// Clusters are the clusters of the application, with its state in each.
	Clusters []Cluster `json:"clusters"`
}

// Cluster is the state of an application in one cluster.
type Cluster struct {
	// Name is the name of the cluster.
	Name string `json:"name"`
	// State is the worst state of the members of the application in this cluster that count.
	State string `json:"state" openapi:"State"`
	// Total is the number of members of the application in this cluster that count.
	Total int32 `json:"total"`
	// Ready is the number of members of the application in this cluster that count and are Ready.
	Ready int32 `json:"ready"`
	// LastSeen is the last time at which the cluster was reached. Absent while it can be reached, and if that time is not known.
	LastSeen time.Time `json:"lastSeen,omitzero"`
}

// Culprit is a member that counts and is not healthy, or a cluster that cannot be reached.
type Culprit struct {
	// Cluster is the name of the cluster of the member.
	Cluster string `json:"cluster"`
	// App is the application of the member. Empty for a member outside apps, and for a cluster.
	App string `json:"app"`
	// Group is the API group of the member. Empty for the core group.
	Group string `json:"group"`
	// Kind is the kind of the member; `Cluster` for a cluster that cannot be reached.
	Kind string `json:"kind"`
	// Namespace is the namespace of the member. Empty for cluster-scoped objects.
	Namespace string `json:"namespace"`
	// Name is the name of the member.
	Name string `json:"name"`
	// State is the state of the member.
	State string `json:"state" openapi:"State"`
	// Reason is the reason for the state, in one CamelCase word.
	Reason string `json:"reason"`
	// Cause describes the root cause for people, such as a pod that crashes.
	Cause string `json:"cause"`
	// Since is the time at which the member entered the state. Absent if it is not known.
	Since time.Time `json:"since,omitzero"`
}

// Condition is a condition of a scope.
type Condition struct {
	// Type is the type of the condition: `Ready`, `ClustersReachable`, `InventorySynced`, `ProbesReady`, `Stalled`,
	// `InventoryConflict`, `HealthChecksInvalid` or `StatusConflict`.
	Type string `json:"type"`
	// Status is `True`, `False` or `Unknown`.
	Status string `enum:"True,False,Unknown" json:"status"`
	// Reason is the reason for `status`, in one CamelCase word.
	Reason string `json:"reason"`
	// Message describes the reason for people.
	Message string `json:"message"`
	// LastTransitionTime is the last time at which `status` changed.
	LastTransitionTime time.Time `json:"lastTransitionTime"`
	// ObservedGeneration is the generation of the scope that the condition describes.
	ObservedGeneration int64 `json:"observedGeneration"`
}

// Inventory holds numbers of resources, by the state of their synchronization with A&AI.
type Inventory struct {
	// Synced is the number of resources whose state A&AI has acknowledged.
	Synced int32 `json:"synced"`
	// Pending is the number of resources that wait to be written, or for a parent object to appear.
	Pending int32 `json:"pending"`
	// Failed is the number of resources that A&AI refused.
	Failed int32 `json:"failed"`
}

// newScopeList returns the document of the selected scopes.
func newScopeList(scopes []corev1alpha2.HealthScope, about selection) ScopeList {
	items := make([]ScopeItem, 0, len(scopes)) // JSON has [] and not null.
	for i := range scopes {
		if item := newScopeItem(&scopes[i]); about.matches(scopes[i].Labels, item) {
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(a, b ScopeItem) int { return a.scopeName().compare(b.scopeName()) })
	return ScopeList{Items: items, Total: len(items)}
}

func newScopeItem(s *corev1alpha2.HealthScope) ScopeItem {
	item := ScopeItem{
		Name: s.Name, Namespace: s.Namespace,
		Health: string(corev1alpha2.UnknownHealth), State: stateOf(s.Status.Summary.State),
		ResourcesReady:    cmp.Or(s.Status.ResourcesReady, notCounted),
		ClustersReachable: cmp.Or(s.Status.ClustersReachable, notCounted),
		FirstCulprit:      s.Status.FirstCulprit,
		Stale:             s.Generation > s.Status.ObservedGeneration,
	}
	if item.Stale && s.Status.Health != "" { // The current spec has not been evaluated.
		item.Reason = string(healthscope.ReasonStaleGeneration)
		return item
	}
	switch s.Status.Health {
	case "":
		item.State, item.Reason = string(healthscope.Unknown), string(healthscope.ReasonNotObserved)
		return item
	case corev1alpha2.Healthy, corev1alpha2.Unhealthy:
		item.Health = string(s.Status.Health)
	case corev1alpha2.UnknownHealth:
	}
	if ready := meta.FindStatusCondition(s.Status.Conditions, corev1alpha2.ConditionReady); ready != nil {
		item.Reason = ready.Reason
	}
	return item
}

// NewScope returns the document of one scope.
func NewScope(s *corev1alpha2.HealthScope) Scope {
	document := Scope{
		ScopeItem:          newScopeItem(s),
		Summary:            newCounts(s.Status.Summary),
		Apps:               convert(s.Status.Apps, newApp),
		Culprits:           convert(s.Status.Culprits, newCulprit),
		Conditions:         convert(s.Status.Conditions, newCondition),
		Generation:         s.Generation,
		ObservedGeneration: max(s.Status.ObservedGeneration, 0), // The CRD has -1 before the first evaluation.
		Truncated:          s.Status.Truncated,
	}
	slices.SortFunc(document.Conditions, func(a, b Condition) int { return strings.Compare(a.Type, b.Type) })
	if inventory := s.Status.Inventory; inventory != nil {
		document.Inventory = &Inventory{Synced: inventory.Synced, Pending: inventory.Pending, Failed: inventory.Failed}
	}
	switch ready := meta.FindStatusCondition(s.Status.Conditions, corev1alpha2.ConditionReady); {
	case s.Status.Health == "":
		document.Message = notObservedMessage
	case document.Stale:
		document.Message = staleMessage
	case ready != nil:
		document.Message = ready.Message
	}
	return document
}

func newCounts(s corev1alpha2.MemberCounts) status.Counts {
	return status.Counts{Total: int(s.Total), Ready: int(s.Ready), Pending: int(s.Pending), Failed: int(s.Failed), Unknown: int(s.Unknown)}
}

func newApp(a corev1alpha2.AppStatus) App {
	clusters := convert(a.Clusters, func(c corev1alpha2.ClusterStatus) Cluster {
		return Cluster{Name: c.Name, State: stateOf(c.State), Total: c.Total, Ready: c.Ready, LastSeen: timeOf(c.LastSeen)}
	})
	return App{Name: a.Name, State: stateOf(a.State), Total: a.Total, Ready: a.Ready, Clusters: clusters}
}

func newCulprit(c corev1alpha2.Culprit) Culprit {
	return Culprit{
		Cluster: c.Cluster, App: c.App, Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name,
		State: stateOf(c.State), Reason: c.Reason, Cause: c.Cause, Since: timeOf(c.Since),
	}
}

func newCondition(c metav1.Condition) Condition {
	return Condition{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
		LastTransitionTime: c.LastTransitionTime.UTC(), ObservedGeneration: c.ObservedGeneration,
	}
}

// stateOf returns a state of a status. It returns Unknown for words that are not states, because the API server does not validate them.
func stateOf(word string) string {
	if healthscope.State(word).Valid() {
		return word
	}
	return string(healthscope.Unknown)
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// convert converts a list. The result is never nil, so that JSON has [] and not null.
func convert[From, To any](list []From, one func(From) To) []To {
	converted := make([]To, 0, len(list))
	for _, element := range list {
		converted = append(converted, one(element))
	}
	return converted
}

func (i ScopeItem) scopeName() ScopeName { return ScopeName{Namespace: i.Namespace, Name: i.Name} }

// text returns the health of the scope as one word.
func (i ScopeItem) text() string { return i.Health + "\n" }

// text returns a line for each scope: namespace/name, a space, and its health.
func (l ScopeList) text() string {
	var lines strings.Builder
	for _, item := range l.Items {
		lines.WriteString(item.Namespace + "/" + item.Name + " " + item.text())
	}
	return lines.String()
}
