package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// unfold returns a document in JSON without the line feeds that make it readable in a test.
func unfold(document string) string { return strings.ReplaceAll(document, "\n", "") + "\n" }

// TestScopeOnTheWire asserts the document of a scope, and that a Go client decodes it into the same document.
func TestScopeOnTheWire(t *testing.T) {
	tests := map[string]struct {
		scope corev1alpha2.HealthScope
		want  string
	}{
		"every field": {
			scope: broken(),
			want: `{"name":"vfw","namespace":"default","health":"unhealthy","state":"Failed","reason":"MembersFailed","resourcesReady":"3/7","clustersReachable":"1/2",
"firstCulprit":"Deployment/fw0-sink in provider+edge01: CrashLoopBackOff","stale":false,"message":"4 of 7 resources are not healthy",
"summary":{"total":7,"ready":3,"pending":1,"failed":1,"unknown":2},
"apps":[{"name":"sink","state":"Failed","total":7,"ready":3,"clusters":[
{"name":"provider+edge01","state":"Failed","total":5,"ready":3},
{"name":"provider+edge02","state":"Unknown","total":2,"ready":0,"lastSeen":"2026-05-01T10:00:00Z"}]}],
"culprits":[
{"cluster":"provider+edge01","app":"sink","group":"apps","kind":"Deployment","namespace":"default","name":"fw0-sink","state":"Failed","reason":"CrashLoopBackOff","cause":"Pod fw0-sink-0: exit code 1 & <again>","since":"2026-05-01T10:00:00Z"},
{"cluster":"provider+edge02","app":"","group":"","kind":"Node","namespace":"","name":"n1","state":"Unknown","reason":"","cause":""}],
"conditions":[
{"type":"ClustersReachable","status":"False","reason":"ClusterUnknown","message":"1 clusters are not known","lastTransitionTime":"2026-05-01T10:00:00Z","observedGeneration":3},
{"type":"Ready","status":"False","reason":"MembersFailed","message":"4 of 7 resources are not healthy","lastTransitionTime":"2026-05-01T10:00:00Z","observedGeneration":3}],
"inventory":{"synced":5,"pending":1,"failed":1},"generation":3,"observedGeneration":3,"truncated":true}`,
		},
		"no status yet": {
			scope: newTestScope("default", "new", 1, corev1alpha2.HealthScopeStatus{ObservedGeneration: -1}), // The default of the CRD.
			want: `{"name":"new","namespace":"default","health":"unknown","state":"Unknown","reason":"NotObserved","resourcesReady":"0/0","clustersReachable":"0/0","stale":true,
"message":"the controller has not written a status for this scope yet","summary":{"total":0,"ready":0,"pending":0,"failed":0,"unknown":0},
"apps":[],"culprits":[],"conditions":[],"generation":1,"observedGeneration":0,"truncated":false}`,
		},
		"status of an older controller, which counts only": {
			scope: newTestScope("default", "old", 1, corev1alpha2.HealthScopeStatus{ScopeHealthCondition: corev1alpha2.ScopeHealthCondition{HealthStatus: corev1alpha2.StatusHealthy, Total: 1, HealthyWorkloads: 1}}),
			want: `{"name":"old","namespace":"default","health":"unknown","state":"Unknown","reason":"NotObserved","resourcesReady":"0/0","clustersReachable":"0/0","stale":true,
"message":"the controller has not written a status for this scope yet","summary":{"total":0,"ready":0,"pending":0,"failed":0,"unknown":0},
"apps":[],"culprits":[],"conditions":[],"generation":1,"observedGeneration":0,"truncated":false}`,
		},
		"status of an older generation": {
			scope: wellScope("default", "edited", 1),
			want: `{"name":"edited","namespace":"default","health":"unknown","state":"Ready","reason":"StaleGeneration","resourcesReady":"1/1","clustersReachable":"1/1","stale":true,
"message":"the controller has not evaluated this scope since its spec changed","summary":{"total":1,"ready":1,"pending":0,"failed":0,"unknown":0},
"apps":[],"culprits":[],"conditions":[{"type":"Ready","status":"True","reason":"Healthy","message":"1/1 resources are ready","lastTransitionTime":"2026-05-01T10:00:00Z","observedGeneration":2}],
"generation":3,"observedGeneration":2,"truncated":false}`,
		},
		"words nobody knows": {
			scope: newTestScope("default", "odd", 1, corev1alpha2.HealthScopeStatus{
				Health: "superb", Summary: corev1alpha2.MemberCounts{State: "Superb"}, ObservedGeneration: 1,
				Apps:     []corev1alpha2.AppStatus{{State: "ready", Clusters: []corev1alpha2.ClusterStatus{{Name: "c"}}}},
				Culprits: []corev1alpha2.Culprit{{State: "Bad"}},
			}),
			want: `{"name":"odd","namespace":"default","health":"unknown","state":"Unknown","resourcesReady":"0/0","clustersReachable":"0/0","stale":false,
"summary":{"total":0,"ready":0,"pending":0,"failed":0,"unknown":0},"apps":[{"name":"","state":"Unknown","total":0,"ready":0,"clusters":[{"name":"c","state":"Unknown","total":0,"ready":0}]}],
"culprits":[{"cluster":"","app":"","group":"","kind":"","namespace":"","name":"","state":"Unknown","reason":"","cause":""}],
"conditions":[],"generation":1,"observedGeneration":1,"truncated":false}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := tt.scope.DeepCopy()
			document := NewScope(&tt.scope)
			got, err := encode(document)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(unfold(tt.want), string(got)); diff != "" {
				t.Errorf("document (-want +got):\n%s", diff)
			}
			var decoded Scope
			if err := json.Unmarshal(got, &decoded); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(document, decoded); diff != "" {
				t.Errorf("(-served +decoded):\n%s", diff)
			}
			if diff := cmp.Diff(before, &tt.scope); diff != "" {
				t.Errorf("the scope, which is the cache's, was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestListOnTheWire(t *testing.T) {
	for want, scopes := range map[string]memory{
		`{"items":[],"total":0}`: nil,
		`{"items":[
{"name":"edited","namespace":"default","health":"unknown","state":"Ready","reason":"StaleGeneration","resourcesReady":"1/1","clustersReachable":"1/1","stale":true},
{"name":"new","namespace":"default","health":"unknown","state":"Unknown","reason":"NotObserved","resourcesReady":"0/0","clustersReachable":"0/0","stale":true},
{"name":"vfw","namespace":"default","health":"unhealthy","state":"Failed","reason":"MembersFailed","resourcesReady":"3/7","clustersReachable":"1/2","firstCulprit":"Deployment/fw0-sink in provider+edge01: CrashLoopBackOff","stale":false},
{"name":"lost","namespace":"telco","health":"unknown","state":"Unknown","resourcesReady":"0/1","clustersReachable":"0/1","stale":false},
{"name":"web","namespace":"telco","health":"healthy","state":"Ready","reason":"Healthy","resourcesReady":"1/1","clustersReachable":"1/1","stale":false}],"total":5}`: manyScopes(),
	} {
		if diff := cmp.Diff(unfold(want), get(t, NewHandler(Options{Scopes: scopes}), "/scopes", nil).Body.String()); diff != "" {
			t.Errorf("document (-want +got):\n%s", diff)
		}
	}
}
