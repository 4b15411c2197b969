package kubevela

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// The condition of an Application in which KubeVela's HealthScope controller reports the health of its components, with its reasons.
const (
	conditionHealthy = "Healthy"
	reasonHealthy    = "AllComponentsHealthy"
	reasonUnhealthy  = "UnhealthyOrUnknownComponents"
)

// inProgressPhases are the phases in which KubeVela works on an Application, and writes the health of its components itself.
var inProgressPhases = []string{"", "starting", "rendering", "policyGenerating", "runningWorkflow", "deleting"}

// AwaitsHealth reports whether KubeVela has left the health of an Application to the HealthScope controller: its workflow
// is finished or suspended, and nothing new is being rendered.
func AwaitsHealth(object map[string]any) bool {
	phase, _, _ := unstructured.NestedString(object, "status", "status")
	finished, _, _ := unstructured.NestedBool(object, "status", "workflow", "finished")
	suspended, _, _ := unstructured.NestedBool(object, "status", "workflow", "suspend")
	return (finished || suspended) && !slices.Contains(inProgressPhases, phase)
}

// ScopeReference names a HealthScope as KubeVela does in an Application.
type ScopeReference struct {
	Namespace, Name, UID string
}

// object returns the reference as an entry of services[].scopes.
func (s ScopeReference) object() map[string]any {
	apiVersion, kind := corev1alpha2.GroupVersion.WithKind(corev1alpha2.HealthScopeKind).ToAPIVersionAndKind()
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "namespace": s.Namespace, "name": s.Name, "uid": s.UID}
}

// ComponentHealth is the health of a workload of a component, as a scope reports it.
type ComponentHealth struct {
	// Component is the name of the component, and Cluster and Namespace say where the workload is. Cluster is empty for that of the Application.
	Component, Cluster, Namespace string
	Healthy                       bool
	Message                       string
	Scope                         ScopeReference
}

// ApplicationHealth is the health of an Application, as the scopes of its namespace report it.
type ApplicationHealth struct {
	// Scopes is the number of scopes that the Application is in, and Healthy is true when all of these say that all of it is healthy.
	Scopes  int
	Healthy bool
	// Components is the health of its components, by scope.
	Components []ComponentHealth
	// Bounded are the names of scopes that do not list all of their components.
	Bounded []string
}

// SetHealth writes a judgement into an Application as KubeVela's HealthScope controller does: into the entries that services[] has,
// and into the condition Healthy. It leaves all other fields unchanged, and entries that the judgement does not cover.
// It removes the condition when the Application is in no scope.
func SetHealth(object map[string]any, j ApplicationHealth, now time.Time) error {
	services, exist, err := unstructured.NestedSlice(object, "status", "services") // A copy.
	if err != nil {
		return err
	}
	for _, item := range services {
		if entry, ok := item.(map[string]any); ok {
			j.setService(entry)
		}
	}
	if exist {
		if err := unstructured.SetNestedSlice(object, services, "status", "services"); err != nil {
			return err
		}
	}
	conditions, _, err := unstructured.NestedSlice(object, "status", "conditions")
	if err != nil {
		return err
	}
	conditions, changed := j.setCondition(conditions, now)
	if !changed {
		return nil
	}
	return unstructured.SetNestedSlice(object, conditions, "status", "conditions")
}

// setService writes the judgement into an entry of services[].
func (j ApplicationHealth) setService(entry map[string]any) {
	var matching []ComponentHealth
	for _, c := range j.Components {
		if c.belongsTo(entry) {
			matching = append(matching, c)
		}
	}
	slices.SortStableFunc(matching, func(a, b ComponentHealth) int { return strings.Compare(a.Scope.Name, b.Scope.Name) })
	if len(matching) > 0 {
		worst := matching[0]
		if i := slices.IndexFunc(matching, func(c ComponentHealth) bool { return !c.Healthy }); i >= 0 {
			worst = matching[i]
		}
		entry["healthy"], entry["message"] = worst.Healthy, worst.Message
	}
	before, _ := entry["scopes"].([]any)
	after := j.scopesOf(before, matching)
	switch {
	case sameScopes(before, after):
	case len(after) == 0:
		delete(entry, "scopes")
	default:
		entry["scopes"] = after
	}
}

// belongsTo reports whether the health is that of an entry of services[].
func (c ComponentHealth) belongsTo(entry map[string]any) bool {
	name, _ := entry["name"].(string)
	cluster, _ := entry["cluster"].(string)
	namespace, _ := entry["namespace"].(string) // KubeVela drops it when it writes an entry again.
	return name == c.Component && clusterOf(cluster) == c.Cluster && (namespace == "" || namespace == c.Namespace)
}

// scopesOf returns the scopes of an entry: the references to other kinds unchanged, then the HealthScopes that report on it.
func (j ApplicationHealth) scopesOf(before []any, matching []ComponentHealth) []any {
	var after []any
	for _, item := range before {
		ref, _ := item.(map[string]any)
		name, _ := ref["name"].(string)
		if !isHealthScope(ref) || slices.Contains(j.Bounded, name) && !slices.ContainsFunc(matching, func(c ComponentHealth) bool { return c.Scope.Name == name }) {
			after = append(after, item)
		}
	}
	for i, c := range matching {
		if i == 0 || matching[i-1].Scope != c.Scope {
			after = append(after, c.Scope.object())
		}
	}
	return after
}

func isHealthScope(ref map[string]any) bool {
	apiVersion, _ := ref["apiVersion"].(string)
	gvk := schema.FromAPIVersionAndKind(apiVersion, corev1alpha2.HealthScopeKind)
	return ref["kind"] == corev1alpha2.HealthScopeKind && gvk.Group == corev1alpha2.GroupVersion.Group
}

// sameScopes reports whether two lists name the same scopes, in any order.
func sameScopes(a, b []any) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(item any) bool {
		return !slices.ContainsFunc(b, func(other any) bool { return reflect.DeepEqual(item, other) })
	})
}

// setCondition returns the conditions with the condition of the judgement, and reports whether they have changed.
func (j ApplicationHealth) setCondition(conditions []any, now time.Time) (next []any, changed bool) {
	index := slices.IndexFunc(conditions, func(item any) bool {
		c, ok := item.(map[string]any)
		return ok && c["type"] == conditionHealthy
	})
	var before map[string]any
	if index >= 0 {
		before, _ = conditions[index].(map[string]any)
	}
	if j.Scopes == 0 {
		reason, _ := before["reason"].(string)
		if reason != reasonHealthy && reason != reasonUnhealthy {
			return conditions, false
		}
		return slices.Delete(conditions, index, index+1), true
	}
	status, reason := metav1.ConditionTrue, reasonHealthy
	if !j.Healthy {
		status, reason = metav1.ConditionFalse, reasonUnhealthy
	}
	if before["status"] == string(status) && before["reason"] == reason {
		return conditions, false
	}
	after := maps.Clone(before)
	if after == nil {
		after = map[string]any{"type": conditionHealthy}
		conditions, index = append(conditions, after), len(conditions)
	}
	after["reason"] = reason
	if before["status"] != string(status) {
		after["status"], after["lastTransitionTime"] = string(status), now.UTC().Format(time.RFC3339)
	}
	conditions[index] = after
	return conditions, true
}

// JudgementOf returns the health that scopes report of an Application in their namespace.
func JudgementOf(application string, scopes []corev1alpha2.HealthScope) ApplicationHealth {
	j := ApplicationHealth{Healthy: true}
	for i := range scopes {
		s := &scopes[i]
		if s.Status.Truncated {
			j.Bounded = append(j.Bounded, s.Name)
		}
		inScope := false
		for _, app := range s.Status.AppHealthConditions {
			if app.AppName != application {
				continue
			}
			inScope = true
			for _, c := range app.Components {
				h := healthOf(s, c)
				j.Healthy = j.Healthy && h.Healthy
				j.Components = append(j.Components, h)
			}
		}
		if inScope {
			j.Scopes++
		}
	}
	return j
}

// healthOf returns the health that a scope reports of a workload.
func healthOf(s *corev1alpha2.HealthScope, c corev1alpha2.WorkloadHealthCondition) ComponentHealth {
	return ComponentHealth{
		Component: c.ComponentName, Cluster: c.TargetWorkload.Cluster, Namespace: cmp.Or(c.TargetWorkload.Namespace, s.Namespace),
		Healthy: c.HealthStatus == corev1alpha2.StatusHealthy, Message: cmp.Or(c.CustomStatusMsg, c.Diagnosis),
		Scope: ScopeReference{s.Namespace, s.Name, string(s.UID)},
	}
}
