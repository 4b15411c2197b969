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
	// Want sets what is probed for a scope in place of what was before, and returns what is known of it. Without a want nothing is.
	Want(scope types.NamespacedName, want *probe.Want) probe.Report
	// Subscribe calls changed for every scope for which there may be another report. changed must not block.
	Subscribe(changed func(scope types.NamespacedName))
}

// serviceKind is the kind of what is probed.
var serviceKind = corev1.SchemeGroupVersion.WithKind("Service")

// probing is whether the probes that a scope asks for are made.
type probing struct {
	// reason and message are those of the condition ProbesReady; without a reason there is none.
	reason  Reason
	message string
}

// probed adds what probes say of Services. Where the scope has a Service otherwise, that is a second answer on the same
// object, of which the worse one counts.
func (g *gatherer) probed() {
	name := types.NamespacedName{Namespace: g.scope.Namespace, Name: g.scope.Name}
	want, p := g.wantProbes()
	g.out.probing = p
	if g.probes == nil {
		return
	}
	report := g.probes.Want(name, want)
	if want == nil {
		return
	}
	g.out.probing = g.probingOf(want, report)
	for _, s := range report.Services {
		service := serviceReference(s.Ref, g.bundles.Cluster())
		found := finding{ref: service, results: []healthscope.Result{g.probeResult(&want.Spec, s)}}
		found.ref.UID = types.UID(s.UID)
		found.aside = want.Has(s.Ref)
		g.out.findings = append(g.out.findings, found)
	}
}

// wantProbes returns what the scope wants to be probed, or why nothing is.
func (g *gatherer) wantProbes() (*probe.Want, probing) {
	problem := probe.CheckRollup(&g.scope.Spec)
	var spec probe.Spec
	asked := probe.Asked(&g.scope.Spec)
	if asked && problem == nil {
		spec, problem = probe.Parse(&g.scope.Spec)
	}
	switch {
	case problem != nil:
		return nil, probing{ReasonInvalidProbe, problem.Error()}
	case !asked:
		return nil, probing{}
	case g.probes == nil:
		return nil, probing{ReasonProbesDisabled, "the scope asks for probes, and the controller's configuration does not enable them: set probes.enabled"}
	}
	want := &probe.Want{Spec: spec, Referred: map[probe.Ref]struct{}{}, Found: map[probe.Ref]struct{}{}}
	for _, cluster := range g.bundles.Clusters() {
		if g.takesFrom(&g.apps[0], cluster) {
			want.Clusters = append(want.Clusters, cluster)
		}
	}
	for i := range g.out.findings {
		f := &g.out.findings[i]
		of := want.Found
		if f.ref.APIVersion == serviceKind.Version && f.ref.Kind == serviceKind.Kind {
			of = want.Referred
		}
		for _, r := range f.results {
			g.addService(of, r.Key)
		}
		for _, m := range f.members {
			g.addService(of, m.Key)
		}
	}
	return want, probing{}
}

// addService adds an object to some Services if it is one that can be probed for the scope.
func (g *gatherer) addService(to map[probe.Ref]struct{}, k healthscope.Key) {
	if k.Group == serviceKind.Group && k.Kind == serviceKind.Kind && k.Namespace == g.scope.Namespace {
		to[probe.Ref{Cluster: k.Cluster, Name: k.Name}] = struct{}{}
	}
}

func serviceReference(r probe.Ref, own string) corev1alpha2.WorkloadReference {
	ref := corev1alpha2.WorkloadReference{APIVersion: serviceKind.Version, Kind: serviceKind.Kind, Name: r.Name, Cluster: r.Cluster}
	if r.Cluster == own {
		ref.Cluster = "" // As OAM has it.
	}
	return ref
}

// probeResult returns what probes say of a Service.
func (g *gatherer) probeResult(spec *probe.Spec, s probe.Probed) healthscope.Result {
	r := resultOf(fleet.Kind{Cluster: s.Cluster, GroupVersionKind: serviceKind}, g.scope.Namespace, s.Name)
	r.UID = s.UID
	if s.Component != "" {
		r.Labels = map[string]string{corev1alpha2.LabelComponent: s.Component}
	}
	state, unseen := g.unreadable(s.Cluster)
	failing, before := g.wasFailing(r.Key)
	what := fmt.Sprintf("%s %s on port %s: ", spec.Method, spec.Path, s.Port)
	switch {
	case unseen:
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
	// Nothing has been seen since the controller started, or since the Service came.
	case failing:
		r.State, r.Reason, r.Message = healthscope.Failed, healthscope.ReasonProbeFailed, before
	case g.wasProbed():
		r.State = healthscope.Ready
	default:
		if g.scope.Status.ObservedGeneration <= 0 { // Its first probe is about to be made.
			g.waitFor(g.scope.CreationTimestamp.Time)
		}
		r.State, r.Reason, r.Message = healthscope.Pending, healthscope.ReasonProbePending, "it has not been probed yet"
	}
	return r
}

// wasFailing reports whether the status names a Service as one whose probes fail, and with which cause.
func (g *gatherer) wasFailing(service healthscope.Key) (failing bool, cause string) {
	at := slices.IndexFunc(g.scope.Status.Culprits, func(c corev1alpha2.Culprit) bool {
		return c.Reason == string(healthscope.ReasonProbeFailed) && keyOf(c) == service
	})
	if at < 0 {
		return false, ""
	}
	return true, g.scope.Status.Culprits[at].Cause
}

// wasProbed reports whether, by the status, the Services of this spec were probed before: what is no culprit there was well,
// and a controller that starts must not make it unhealthy.
func (g *gatherer) wasProbed() bool {
	c := meta.FindStatusCondition(g.scope.Status.Conditions, corev1alpha2.ConditionProbesReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == g.scope.Generation
}

// probingOf returns reason and message of the condition of a scope whose Services are probed.
func (g *gatherer) probingOf(want *probe.Want, report probe.Report) probing {
	unread := map[string][]string{} // The clusters by what is wrong there.
	for _, u := range report.Unread {
		_, unseen := g.unreadable(u.Cluster)
		if unseen {
			g.await(u.Cluster) // The condition ClustersReachable says so.
			continue
		}
		if u.Problem == "" {
			g.waitFor(u.Since)
		}
		problem := cmp.Or(u.Problem, "the Services have not been read yet")
		unread[problem] = append(unread[problem], u.Cluster)
	}
	var problems []string
	for _, problem := range slices.Sorted(maps.Keys(unread)) {
		problems = append(problems, strings.Join(unread[problem], ", ")+": "+problem)
	}
	can := 0
	for _, s := range report.Services {
		if s.Problem == "" {
			can++
		}
	}
	switch {
	case len(problems) > 0:
		return probing{ReasonServicesUnread, strings.Join(problems, "; ")}
	case len(report.Services) == 0:
		return probing{ReasonNoServices, fmt.Sprintf("no Service in namespace %q%s has the label %s=%s or %s%s=true, and the scope refers to none",
			g.scope.Namespace, ofSelected(g.scope.Spec.Clusters), corev1alpha2.LabelScopeName, g.scope.Name, corev1alpha2.LabelScopePrefix, g.scope.Name)}
	}
	message := fmt.Sprintf("%d of %d Services are probed", can, len(report.Services))
	others := len(want.Found)
	for _, s := range report.Services {
		if _, found := want.Found[s.Ref]; found {
			others--
		}
	}
	if others > 0 {
		message += fmt.Sprintf("; other Services of the scope, which ask for it neither by label nor by the annotation %s: %d", corev1alpha2.AnnotationProbe, others)
	}
	return probing{ReasonProbing, message}
}
