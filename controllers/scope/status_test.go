package scope

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// wire returns a part of a status as JSON.
func wire(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("cannot encode: %v", err)
	}
	return string(data)
}

func TestStatusOfAScope(t *testing.T) {
	t.Parallel()
	crashing := member(edge1, "Deployment", "sink", healthscope.Failed, "CrashLoopBackOff")
	crashing.Cause = "Pod sink-0: back-off"
	w := world{clusters: []string{hub, edge1, edge2}, bundles: []*fleet.Bundle{
		bundleOf(edge1, "1-sink", crashing, owned(member(edge1, "Pod", "sink-0", healthscope.Failed, "CrashLoopBackOff"))),
		bundleOf(edge2, "1-sink", member(edge2, "Deployment", "sink", healthscope.Ready, ""), member(edge2, "Service", "sink", healthscope.Ready, "")),
		bundleOf(edge2, "1-source", member(edge2, "Deployment", "source", healthscope.Pending, healthscope.ReasonReplicasNotReady)),
	}}
	scope := scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{
		{Name: "source", WorkloadReferences: refs(bundleRef("1-source"))},
		{Name: "sink", WorkloadReferences: refs(bundleRef("1-sink"))},
		{Name: "quiet", Selector: selectSink},
	}})
	since := metav1.NewTime(noon.Add(-time.Hour))
	moment := metav1.NewTime(noon)
	sourceRef := at("", bundleRef("1-source"))
	sourceRef.UID = "uid-acme+edge2-1-source"
	want := corev1alpha2.HealthScopeStatus{
		Health:               corev1alpha2.Unhealthy,
		ScopeHealthCondition: corev1alpha2.ScopeHealthCondition{HealthStatus: corev1alpha2.StatusUnhealthy, Total: 2, UnhealthyWorkloads: 2},
		HealthConditions: []corev1alpha2.WorkloadHealthCondition{
			{ComponentName: "sink", TargetWorkload: bundleRef("1-sink"), HealthStatus: corev1alpha2.StatusUnhealthy, Diagnosis: "Ready:2/3 Deployment/sink: CrashLoopBackOff"},
			{ComponentName: "source", TargetWorkload: sourceRef, HealthStatus: corev1alpha2.StatusUnhealthy, Diagnosis: "Ready:0/1 Deployment/source: ReplicasNotReady"},
		},
		Summary:           corev1alpha2.MemberCounts{State: "Failed", Total: 4, Ready: 2, Pending: 1, Failed: 1},
		ResourcesReady:    "2/4",
		ClustersReachable: "2/2",
		Apps: []corev1alpha2.AppStatus{
			{Name: "sink", State: "Failed", Total: 3, Ready: 2, Clusters: []corev1alpha2.ClusterStatus{
				{Name: edge1, State: "Failed", Total: 1}, {Name: edge2, State: "Ready", Total: 2, Ready: 2},
			}},
			{Name: "quiet", State: "Unknown"},
			{Name: "source", State: "Pending", Total: 1, Clusters: []corev1alpha2.ClusterStatus{{Name: edge2, State: "Pending", Total: 1}}},
		},
		Culprits: []corev1alpha2.Culprit{
			{Cluster: edge1, App: "sink", Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "sink", State: "Failed", Reason: "CrashLoopBackOff", Cause: "Pod sink-0: back-off", Since: &since},
			{Cluster: edge2, App: "source", Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "source", State: "Pending", Reason: "ReplicasNotReady", Since: &since},
		},
		FirstCulprit: "Deployment/sink in acme+edge1: CrashLoopBackOff",
		Conditions: []metav1.Condition{
			{Type: "Ready", Status: "False", Reason: "MembersFailed", Message: "2 of 4 resources are not healthy: Deployment/sink in acme+edge1: CrashLoopBackOff", ObservedGeneration: 3, LastTransitionTime: moment},
			{Type: "ClustersReachable", Status: "True", Reason: "AllReachable", Message: "every cluster of the scope is Connected", ObservedGeneration: 3, LastTransitionTime: moment},
			{Type: "Stalled", Status: "True", Reason: "MembersFailed", Message: "1 of 4 resources have failed: Deployment/sink in acme+edge1: CrashLoopBackOff", ObservedGeneration: 3, LastTransitionTime: moment},
		},
		ObservedGeneration: 3,
	}
	if diff := cmp.Diff(want, statusIn(w, scope, noon)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOAMConditionsOfReferences(t *testing.T) {
	t.Parallel()
	const healthy, unhealthy, unknown = corev1alpha2.StatusHealthy, corev1alpha2.StatusUnhealthy, corev1alpha2.StatusUnknown
	surging := deployment("web", healthscope.Pending, 3, 3)
	surging.Serving, surging.Reason = true, healthscope.ReasonRolloutInProgress
	cases := map[string]struct {
		reason    string
		object    *healthscope.Result
		ref       corev1alpha2.WorkloadReference
		status    corev1alpha2.HealthStatus
		diagnosis string
		scope     string
	}{
		"Failed": {
			object: new(deployment("web", healthscope.Failed, 0, 3)), ref: deploymentRef("web"),
			status: unhealthy, diagnosis: "Ready:0/3 Deployment/web: ProgressDeadlineExceeded",
			scope: `{"healthStatus":"UNHEALTHY","total":1,"unhealthyWorkloads":1}`,
		},
		"Surge": {
			reason: "OAM's runtime called this UNHEALTHY, and users complained.", object: &surging, ref: deploymentRef("web"),
			status: healthy, diagnosis: "Ready:3/3 ",
			scope: `{"healthStatus":"HEALTHY","total":1,"healthyWorkloads":1}`,
		},
		"Missing": {
			ref:    deploymentRef("web"),
			status: unhealthy, diagnosis: "it does not exist",
			scope: `{"healthStatus":"UNHEALTHY","total":1,"unhealthyWorkloads":1}`,
		},
		"UnknownKind": {
			reason: "The scope has one word in all forms.", ref: corev1alpha2.WorkloadReference{APIVersion: "db.acme.io/v1", Kind: "Cluster", Name: "pg"},
			status: unknown, diagnosis: "the cluster does not serve it",
			scope: `{"healthStatus":"UNKNOWN","total":1,"unknownWorkloads":1}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withDeployments()
			if c.object != nil {
				w = withDeployments(*c.object)
			}
			s := statusIn(w, scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(c.ref)}), noon)
			got := only(t, s.HealthConditions)
			if got.HealthStatus != c.status || got.Diagnosis != c.diagnosis {
				t.Errorf("%s want %s %q, got %s %q", c.reason, c.status, c.diagnosis, got.HealthStatus, got.Diagnosis)
			}
			if diff := cmp.Diff(c.scope, wire(t, s.ScopeHealthCondition)); diff != "" {
				t.Errorf("%s -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestOAMCountsWhatCounts(t *testing.T) {
	t.Parallel()
	failedPDB := member(hub, "PodDisruptionBudget", "pdb", healthscope.Failed, healthscope.ReasonReadyFalse)
	crashing := owned(member(hub, "Pod", "web-1", healthscope.Failed, "CrashLoopBackOff"))
	pod := corev1alpha2.WorkloadReference{APIVersion: "v1", Kind: "Pod", Name: "web-1"}
	cases := map[string]struct {
		reason    string
		ref       corev1alpha2.WorkloadReference
		ignored   []corev1alpha2.MemberMatch
		status    corev1alpha2.HealthStatus
		diagnosis string
	}{
		"Bundle": {
			reason: "Pods explain, and do not count.", ref: bundleRef("1-sink"),
			status: corev1alpha2.StatusUnhealthy, diagnosis: "Ready:1/2 PodDisruptionBudget/pdb: ReadyFalse",
		},
		"Ignored": {
			reason: "What is ignored does not make a reference unhealthy.", ref: bundleRef("1-sink"), ignored: []corev1alpha2.MemberMatch{{Kind: "PodDisruptionBudget"}},
			status: corev1alpha2.StatusHealthy, diagnosis: "Ready:1/1 ",
		},
		"AllIgnored": {
			reason: "A reference has a health of its own.", ref: bundleRef("1-sink"), ignored: []corev1alpha2.MemberMatch{{}},
			status: corev1alpha2.StatusUnhealthy, diagnosis: "Ready:1/3 Pod/web-1: CrashLoopBackOff",
		},
		"OwnedPod": {
			reason: "The scope refers to this pod.", ref: pod,
			status: corev1alpha2.StatusUnhealthy, diagnosis: "Ready:0/1 Pod/web-1: CrashLoopBackOff",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world{bundles: []*fleet.Bundle{bundleOf(hub, "1-sink", readyWeb, failedPDB, crashing)}}
			w.objects = map[schema.GroupVersionKind]map[string]fleet.Lookup{{Version: "v1", Kind: "Pod"}: {"web-1": {Result: crashing.Result}}}
			spec := corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(c.ref), Rollup: &corev1alpha2.Rollup{Ignore: c.ignored}}
			if c.ref.Kind == "Pod" {
				spec.Apps = []corev1alpha2.ScopeApp{{Name: "sink", WorkloadReferences: refs(bundleRef("1-sink"))}}
			}
			for _, got := range statusIn(w, scopeOf(spec), noon).HealthConditions {
				if got.ComponentName == "" && (got.HealthStatus != c.status || got.Diagnosis != c.diagnosis) {
					t.Errorf("%s want %s %q, got %s %q", c.reason, c.status, c.diagnosis, got.HealthStatus, got.Diagnosis)
				}
			}
		})
	}
}

func TestEmptyScope(t *testing.T) {
	t.Parallel()
	s := statusIn(world{}, scopeOf(corev1alpha2.HealthScopeSpec{}), noon)
	want := corev1alpha2.HealthScopeStatus{
		Health: corev1alpha2.UnknownHealth, ScopeHealthCondition: corev1alpha2.ScopeHealthCondition{HealthStatus: corev1alpha2.StatusUnknown},
		Summary: corev1alpha2.MemberCounts{State: "Unknown"}, ResourcesReady: "0/0", ClustersReachable: "0/0", ObservedGeneration: 3,
	}
	if diff := cmp.Diff(want, s, cmpopts.IgnoreFields(corev1alpha2.HealthScopeStatus{}, "Conditions", "FirstCulprit"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, want := wire(t, s.ScopeHealthCondition), `{"healthStatus":"UNKNOWN"}`; got != want {
		t.Errorf("OAM leaves out zeros: want %s, got %s", want, got)
	}
	if got, want := wire(t, s.Summary), `{"state":"Unknown","total":0,"ready":0,"pending":0,"failed":0,"unknown":0}`; got != want {
		t.Errorf("a summary has its zeros: want %s, got %s", want, got)
	}
}

func TestReadyCondition(t *testing.T) {
	t.Parallel()
	failed, pending := deployment("failed", healthscope.Failed, 0, 1), deployment("pending", healthscope.Pending, 0, 1)
	ready := deployment("ready", healthscope.Ready, 1, 1)
	pg := corev1alpha2.WorkloadReference{APIVersion: "db.acme.io/v1", Kind: "Cluster", Name: "pg"}
	half := &corev1alpha2.Rollup{HealthyPercentage: new(int32(60))}
	cases := map[string]struct {
		spec    corev1alpha2.HealthScopeSpec
		status  metav1.ConditionStatus
		reason  string
		message string
		culprit string
	}{
		"Healthy": {
			corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("ready"))},
			metav1.ConditionTrue, "Healthy", "1/1 resources are ready", "",
		},
		"Failed": {
			corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("pending"), deploymentRef("failed"), deploymentRef("ready"))},
			metav1.ConditionFalse, "MembersFailed", "2 of 3 resources are not healthy: Deployment/failed in local: ProgressDeadlineExceeded", "Deployment/failed in local: ProgressDeadlineExceeded",
		},
		"Pending": {
			corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("pending"))},
			metav1.ConditionFalse, "MembersPending", "1 of 1 resources are not healthy: Deployment/pending in local: ReplicasNotReady", "Deployment/pending in local: ReplicasNotReady",
		},
		"Unknown": {
			corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(pg, deploymentRef("ready"))},
			metav1.ConditionUnknown, "MembersUnknown", "1 of 2 resources cannot be judged: Cluster/pg in local: KindNotFound", "Cluster/pg in local: KindNotFound",
		},
		"UnknownBesideAToleratedFailure": {
			corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(pg, deploymentRef("failed"), deploymentRef("ready")), Rollup: half},
			metav1.ConditionUnknown, "MembersUnknown", "1 of 3 resources cannot be judged: Cluster/pg in local: KindNotFound", "Deployment/failed in local: ProgressDeadlineExceeded",
		},
		"RequiredAppMissing": {
			corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("ready")), Rollup: &corev1alpha2.Rollup{Required: []string{"sink", "db"}}},
			metav1.ConditionFalse, "RequiredAppMissing", "no resources in required apps: db, sink", "no resources in required apps: db, sink",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := statusIn(withDeployments(failed, pending, ready), scopeOf(c.spec), noon)
			got := s.Conditions[0]
			if got.Type != "Ready" || got.Status != c.status || got.Reason != c.reason || got.Message != c.message || got.ObservedGeneration != 3 {
				t.Errorf("want %s %s %q, got %s %s %s %q for generation %d", c.status, c.reason, c.message, got.Type, got.Status, got.Reason, got.Message, got.ObservedGeneration)
			}
			if s.FirstCulprit != c.culprit {
				t.Errorf("first culprit: want %q, got %q", c.culprit, s.FirstCulprit)
			}
		})
	}
}
