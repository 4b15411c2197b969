package scope

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// Probes are the HTTP probes of the Services of scopes.
type Probes interface {
	// Want replaces what is probed for a scope, and returns the current report. A nil want ends the probes of the scope.
	Want(scope types.NamespacedName, want *probe.Want) probe.Report
	// Subscribe calls changed for every scope for which there may be another report. changed must not block.
	Subscribe(changed func(scope types.NamespacedName))
}

// serviceKind is the kind of the objects that are probed.
var serviceKind = corev1.SchemeGroupVersion.WithKind("Service")

// addProbed adds the results of probes of Services. If the scope also has the Service from another source, there are two results
// on the same object, of which the worse one counts.
func (g *gatherer) addProbed() {
	want, p := g.wantProbes()
	g.probesCondition = p
	if g.probes == nil {
		return
	}
	report := g.probes.Want(types.NamespacedName{Namespace: g.scope.Namespace, Name: g.scope.Name}, want)
	if want == nil {
		return
	}
	g.probesCondition = g.probesConditionFor(want, report)
	for _, s := range report.Services {
		service := corev1alpha2.WorkloadReference{APIVersion: serviceKind.Version, Kind: serviceKind.Kind, Name: s.Name, UID: types.UID(s.UID)}
		if s.Cluster != g.view.Cluster() { // As OAM has it.
			service.Cluster = s.Cluster
		}
		g.add(g.apps[0], reference{WorkloadReference: service}, g.probeResult(&want.Spec, s)).duplicate = want.Has(s.Ref)
	}
}

// wantProbes returns the probes that the scope requests, or the condition that says why there are none.
func (g *gatherer) wantProbes() (*probe.Want, conditionState) {
	problem := probe.CheckRollup(&g.scope.Spec)
	var spec probe.Spec
	requested := probe.Requested(&g.scope.Spec)
	if requested && problem == nil {
		spec, problem = probe.Parse(&g.scope.Spec)
	}
	switch {
	case problem != nil:
		return nil, conditionState{ReasonInvalidProbe, problem.Error()}
	case !requested:
		return nil, conditionState{}
	case g.probes == nil:
		return nil, conditionState{ReasonProbesDisabled, "the scope asks for probes, and the controller's configuration does not enable them: set probes.enabled"}
	}
	want := &probe.Want{Spec: spec, Clusters: g.selectedClusters(g.apps[0]), Referred: map[probe.Ref]struct{}{}, Found: map[probe.Ref]struct{}{}}
	for _, f := range g.findings {
		of := want.Found
		if f.ref.APIVersion == serviceKind.Version && f.ref.Kind == serviceKind.Kind {
			of = want.Referred
		}
		for k := range f.keys() {
			if k.Group == serviceKind.Group && k.Kind == serviceKind.Kind && k.Namespace == g.scope.Namespace {
				of[probe.Ref{Cluster: k.Cluster, Name: k.Name}] = struct{}{}
			}
		}
	}
	return want, conditionState{}
}

// probeResult returns the result of the probes of a Service.
func (g *gatherer) probeResult(spec *probe.Spec, s probe.Probed) healthscope.Result {
	r := resultOf(fleet.Kind{Cluster: s.Cluster, GroupVersionKind: serviceKind}, g.scope.Namespace, s.Name)
	r.UID = s.UID
	if s.Component != "" {
		r.Labels = map[string]string{corev1alpha2.LabelComponent: s.Component}
	}
	state, unreadable := g.unreadable(s.Cluster)
	before, isCulprit := g.culprit(r.Key)
	failing := before.Reason == string(healthscope.ReasonProbeFailed)
	what := fmt.Sprintf("%s %s on port %s: ", spec.Method, spec.Path, s.Port)
	switch {
	case unreadable:
		return unreadableResult(r, state, "")
	case s.Problem != "":
		return unknownFor(r, healthscope.ReasonNotProbed, "it is not probed: %s", s.Problem)
	case s.Result == probe.Blocked:
		return unknownFor(r, healthscope.ReasonNotProbed, "%s%s", what, s.Cause)
	case s.Result == probe.Passing:
		r.State = healthscope.Ready
	case s.Result == probe.Failing, failing && s.Made:
		r.State, r.Reason, r.Message = healthscope.Failed, healthscope.ReasonProbeFailed, what+s.Cause
		if !s.LastSuccess.IsZero() {
			r.Message += "; last success " + s.LastSuccess.UTC().Format(time.RFC3339)
		}
	case s.Made:
		r.State, r.Reason, r.Message = healthscope.Pending, healthscope.ReasonProbePending, what+s.Cause
	// No probe has been made since the controller started, or since the Service was created.
	case failing:
		r.State, r.Reason, r.Message = healthscope.Failed, healthscope.ReasonProbeFailed, before.Cause
	case before.State == string(healthscope.Unknown):
		return unknownFor(r, healthscope.ReasonNotProbed, "it has not been probed yet")
	case !isCulprit && g.wasProbed():
		r.State = healthscope.Ready
	default:
		if g.scope.Status.ObservedGeneration <= 0 { // Its first probe is about to be made.
			g.waitSince(g.scope.CreationTimestamp.Time, false)
		}
		r.State, r.Reason, r.Message = healthscope.Pending, healthscope.ReasonProbePending, "it has not been probed yet"
	}
	return r
}

// wasProbed reports whether, by the status, the Services of this spec were probed before. A Service that is no culprit in
// the status was healthy then, and a restart of the controller must not make it unhealthy.
func (g *gatherer) wasProbed() bool {
	c := meta.FindStatusCondition(g.scope.Status.Conditions, corev1alpha2.ConditionProbesReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == g.scope.Generation
}

// probesConditionFor returns the condition of a scope whose Services are probed.
func (g *gatherer) probesConditionFor(want *probe.Want, report probe.Report) conditionState {
	unread := map[string][]string{} // The clusters whose Services cannot be read, by problem.
	for _, u := range report.Unread {
		if _, unreadable := g.unreadable(u.Cluster); unreadable {
			continue // The condition ClustersReachable says so.
		}
		if u.Problem == "" {
			g.waitSince(u.Since, false)
		}
		problem := cmp.Or(u.Problem, "the Services have not been read yet")
		unread[problem] = append(unread[problem], u.Cluster)
	}
	var problems []string
	for _, problem := range slices.Sorted(maps.Keys(unread)) {
		problems = append(problems, strings.Join(unread[problem], ", ")+": "+problem)
	}
	probed, others := 0, len(want.Found)
	for _, s := range report.Services {
		if s.Problem == "" {
			probed++
		}
		if _, found := want.Found[s.Ref]; found {
			others--
		}
	}
	switch {
	case len(problems) > 0:
		return conditionState{ReasonServicesUnread, strings.Join(problems, "; ")}
	case len(report.Services) == 0:
		return conditionState{ReasonNoServices, fmt.Sprintf("no Service in namespace %q%s has %s, and the scope refers to none",
			g.scope.Namespace, selectedClustersSuffix(g.scope.Spec.Clusters), scopeLabelsText(g.scope))}
	}
	message := fmt.Sprintf("%d of %d Services are probed", probed, len(report.Services))
	if others > 0 {
		message += fmt.Sprintf("; other Services of the scope, which ask for it neither by label nor by the annotation %s: %d", corev1alpha2.AnnotationProbe, others)
	}
	return conditionState{ReasonProbing, message}
}
