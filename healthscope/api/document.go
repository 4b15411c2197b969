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

// ScopeList is the answer to a request for many scopes.
type ScopeList struct {
	// Items are the scopes, sorted by namespace and name.
	Items []ScopeItem `json:"items"`
	// Total is the number of scopes, on all pages together.
	Total int `json:"total"`
}

// ScopePage is the answer to a request for a page of many scopes.
type ScopePage struct {
	// Metadata says how to get the next page.
	Metadata ListMetadata `json:"metadata"`
	ScopeList
}

// ListMetadata is how to get the rest of a list, as in Kubernetes. It is empty on the last page.
type ListMetadata struct {
	// Continue is the value of the parameter `continue` that gets the next page.
	Continue string `json:"continue,omitempty"`
	// RemainingItemCount is the number of scopes on the pages after this one.
	RemainingItemCount int `json:"remainingItemCount,omitempty"`
}

// ScopeName names a scope. It is what is said of one that is not there any more.
type ScopeName struct {
	// Name is the name of the scope.
	Name string `json:"name"`
	// Namespace is its namespace.
	Namespace string `json:"namespace"`
}

// compare returns the order of two names in lists: by namespace, then by name.
func (n ScopeName) compare(other ScopeName) int {
	return cmp.Or(strings.Compare(n.Namespace, other.Namespace), strings.Compare(n.Name, other.Name))
}

// ScopeItem is a scope in short.
type ScopeItem struct {
	// Name is the name of the scope.
	Name string `json:"name" openapi:"ScopeName"`
	// Namespace is its namespace.
	Namespace string `json:"namespace" openapi:"NamespaceName"`
	// Health is healthy, unhealthy, or unknown: only members that cannot be judged are in the way, or the scope has not been evaluated yet.
	Health string `json:"health" openapi:"Health"`
	// State is the worst state of the members that count.
	State string `json:"state" openapi:"State"`
	// Reason is why `health` is what it is, in one CamelCase word; `NotObserved` while the scope has not been evaluated.
	Reason string `json:"reason,omitempty"`
	// ResourcesReady is the number of members that are Ready / the number of members, 0/0 before the first evaluation.
	ResourcesReady string `json:"resourcesReady" openapi:"Ratio"`
	// ClustersReachable is the number of clusters that can be seen / the number of clusters of the scope, 0/0 before the first evaluation.
	ClustersReachable string `json:"clustersReachable" openapi:"Ratio"`
	// FirstCulprit is the worst member that is not healthy, in one line; absent when there is none.
	FirstCulprit string `json:"firstCulprit,omitempty"`
	// Stale is true when the scope was changed and has not been evaluated since: the rest speaks of the scope as it was.
	Stale bool `json:"stale"`
}

// Scope is a scope in full. Its lists are worst first, except for conditions, and never null.
type Scope struct {
	ScopeItem
	// Message is the same as `reason`, for people.
	Message string `json:"message,omitempty"`
	// Summary counts the members that count in the scope's health.
	Summary status.Counts `json:"summary"`
	// Apps are the applications of the scope.
	Apps []App `json:"apps"`
	// Culprits are the members that are not healthy.
	Culprits []Culprit `json:"culprits"`
	// Conditions are the conditions of the scope, sorted by type.
	Conditions []Condition `json:"conditions"`
	// Inventory counts the scope's resources by the state of their synchronization with A&AI; absent when no A&AI is configured.
	Inventory *Inventory `json:"inventory,omitempty"`
	// Generation is the number of changes of the scope's spec.
	Generation int64 `json:"generation"`
	// ObservedGeneration is the generation that the rest speaks of; 0 before the first evaluation.
	ObservedGeneration int64 `json:"observedGeneration"`
	// Truncated is true when lists were cut because they are long. Counts are exact all the same.
	Truncated bool `json:"truncated"`
}

// App is one application of a scope.
type App struct {
	// Name is its name within the scope; empty for members outside apps.
	Name string `json:"name"`
	// State is the worst state of its members.
	State string `json:"state" openapi:"State"`
	// Total is the number of its members that count.
	Total int32 `json:"total"`
	// Ready is the number of them that are Ready.
	Ready int32 `json:"ready"`
	// Clusters is the same in each cluster it runs in.
	Clusters []Cluster `json:"clusters"`
}

// Cluster is an application in one cluster.
type Cluster struct {
	// Name is the name of the cluster.
	Name string `json:"name"`
	// State is the worst state of the application's members there.
	State string `json:"state" openapi:"State"`
	// Total is the number of its members that count.
	Total int32 `json:"total"`
	// Ready is the number of them that are Ready.
	Ready int32 `json:"ready"`
	// LastSeen is when the cluster was last seen; absent while it can be reached.
	LastSeen time.Time `json:"lastSeen,omitzero"`
}

// Culprit is a member that is not healthy.
type Culprit struct {
	// Cluster is the cluster it is in.
	Cluster string `json:"cluster"`
	// App is the application it belongs to; empty outside apps.
	App string `json:"app"`
	// Group is its API group; empty for the core group.
	Group string `json:"group"`
	// Kind is its kind.
	Kind string `json:"kind"`
	// Namespace is its namespace; empty for cluster-scoped objects.
	Namespace string `json:"namespace"`
	// Name is its name.
	Name string `json:"name"`
	// State is its state.
	State string `json:"state" openapi:"State"`
	// Reason is why, in one word.
	Reason string `json:"reason"`
	// Cause is what is behind it, such as the pod that crashes.
	Cause string `json:"cause"`
	// Since is when it entered the state; absent when that is not known.
	Since time.Time `json:"since,omitzero"`
}

// Condition is a condition of a scope.
type Condition struct {
	// Type is `Ready`, `ClustersReachable` or `InventorySynced`.
	Type string `json:"type"`
	// Status is `True`, `False` or `Unknown`.
	Status string `enum:"True,False,Unknown" json:"status"`
	// Reason is why, in one word.
	Reason string `json:"reason"`
	// Message is the same for people.
	Message string `json:"message"`
	// LastTransitionTime is when `status` changed.
	LastTransitionTime time.Time `json:"lastTransitionTime"`
	// ObservedGeneration is the generation of the scope it speaks of.
	ObservedGeneration int64 `json:"observedGeneration"`
}

// Inventory counts resources by the state of their synchronization with A&AI.
type Inventory struct {
	// Synced is the number of resources whose state A&AI has acknowledged.
	Synced int32 `json:"synced"`
	// Pending is the number that wait to be written.
	Pending int32 `json:"pending"`
	// Failed is the number that A&AI refused.
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
	if item.Stale && s.Status.Health != "" { // What it asks for now has not been judged.
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
		ObservedGeneration: max(s.Status.ObservedGeneration, 0), // The CRD says -1 before the first evaluation.
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
