package rules_test

import (
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// of returns counts of replicas.
func of(ready, desired int32) *healthscope.Replicas {
	return &healthscope.Replicas{Ready: ready, Desired: desired}
}

// notObserved is the result for an object on which no controller has reported.
var notObserved = healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonNotObserved, Message: "no controller has reported on it yet"}

func TestDeployments(t *testing.T) {
	checkResults(t, map[string]resultCase{
		"status only, as monitors without spec report it": {
			`{apiVersion: apps/v1, kind: Deployment, status: {observedGeneration: 1, replicas: 5, readyReplicas: 5, updatedReplicas: 5, availableReplicas: 5}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(5, 5)},
		},
		"a spec that says nothing of replicas": {
			`{apiVersion: apps/v1, kind: Deployment, spec: {selector: null, template: {spec: {containers: null}}, strategy: {}},
			  status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(2, 2)},
		},
		"extensions, of old clusters": {
			`{apiVersion: extensions/v1beta1, kind: Deployment, status: {observedGeneration: 1, replicas: 1, readyReplicas: 0}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Message: "0 of 1 replicas are ready", Replicas: of(0, 1)},
		},
		"rolling out, 1 of 4 not ready": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 4, progressDeadlineSeconds: 120},
			  status: {observedGeneration: 1, replicas: 4, readyReplicas: 3, updatedReplicas: 4, availableReplicas: 3, conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated}]}}`,
			healthscope.Result{
				State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Message: "3 of 4 replicas are ready",
				Replicas: of(3, 4), ProgressDeadline: 120 * time.Second,
			},
		},
		"surge, old and new pods all ready": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2},
			  status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, updatedReplicas: 1, availableReplicas: 3}}`,
			healthscope.Result{
				State: healthscope.Ready, Reason: healthscope.ReasonRolloutInProgress, Message: "3 replicas are ready, 2 wanted, a rollout is in progress",
				Serving: true, Replicas: of(3, 2),
			},
		},
		"surge, the new pod is starting and the wanted ones serve": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2},
			  status: {observedGeneration: 2, replicas: 3, readyReplicas: 2, updatedReplicas: 1, availableReplicas: 2}}`,
			healthscope.Result{
				State: healthscope.Pending, Reason: healthscope.ReasonRolloutInProgress, Message: "2 of 2 replicas are ready, 3 exist",
				Serving: true, Replicas: of(2, 2),
			},
		},
		"past its deadline while old pods serve": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2, progressDeadlineSeconds: 60},
			  status: {observedGeneration: 2, replicas: 3, readyReplicas: 2, updatedReplicas: 1, availableReplicas: 2,
			    conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: ReplicaSet shop-2 has timed out}]}}`,
			healthscope.Result{
				State: healthscope.Failed, Reason: healthscope.ReasonProgressDeadlineExceeded, Message: "2 of 2 replicas are ready; ReplicaSet shop-2 has timed out",
				Serving: true, Replicas: of(2, 2), ProgressDeadline: time.Minute,
			},
		},
		"past its deadline with all that exists ready is a warning": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 2},
			  status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, availableReplicas: 2,
			    conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate}, {type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`,
			healthscope.Result{
				State: healthscope.Ready, Reason: healthscope.ReasonProgressDeadlineExceeded, Message: "2 of 2 replicas are ready",
				Serving: true, Warning: true, Replicas: of(2, 2),
			},
		},
		"paused, all ready": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 3}, spec: {replicas: 2, paused: true},
			  status: {observedGeneration: 3, replicas: 2, readyReplicas: 2, updatedReplicas: 2, availableReplicas: 2, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused}]}}`,
			healthscope.Result{State: healthscope.Ready, Reason: healthscope.ReasonPaused, Message: "rollouts are paused", Serving: true, Suspended: true, Replicas: of(2, 2)},
		},
		"paused, one pod down": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 3}, spec: {replicas: 2, paused: true},
			  status: {observedGeneration: 3, replicas: 2, readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1}}`,
			healthscope.Result{
				State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Message: "1 of 2 replicas are ready",
				Suspended: true, Replicas: of(1, 2),
			},
		},
		"scaled to zero": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 4}, spec: {replicas: 0}, status: {observedGeneration: 4, conditions: [{type: Available, status: "True"}]}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(0, 0)},
		},
		"no status yet":                         {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 2}}`, notObserved},
		"no status yet, none wanted":            {`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 0}, status: {}}`, notObserved},
		"no replica where three are wanted":     {`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3}, status: {replicas: 0, readyReplicas: 0}}`, notObserved},
		"a status of nulls is no status either": {`{apiVersion: apps/v1, kind: Deployment, spec: null, status: {replicas: null, readyReplicas: null, conditions: null}}`, notObserved},
		"quota leaves no pod": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3},
			  status: {observedGeneration: 1, unavailableReplicas: 3, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: exceeded quota}]}}`,
			healthscope.Result{
				State: healthscope.Failed, Reason: healthscope.ReasonReplicaFailure, Message: "0 of 3 replicas are ready; FailedCreate: exceeded quota",
				Replicas: of(0, 3),
			},
		},
		"ready but not yet available": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 2, minReadySeconds: 30},
			  status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 2}}`,
			healthscope.Result{
				State: healthscope.Ready, Reason: healthscope.ReasonRolloutInProgress, Message: "2 of 2 replicas are ready, a rollout is in progress",
				Serving: true, Replicas: of(2, 2),
			},
		},
		"scaling down": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, spec: {replicas: 1},
			  status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 4, availableReplicas: 4}}`,
			healthscope.Result{
				State: healthscope.Ready, Reason: healthscope.ReasonRolloutInProgress, Message: "4 replicas are ready, 1 wanted, a rollout is in progress",
				Serving: true, Replicas: of(4, 1),
			},
		},
		"a deadline beyond all counting": {
			`{apiVersion: apps/v1, kind: Deployment, spec: {progressDeadlineSeconds: 99999999999}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, updatedReplicas: 1, availableReplicas: 1}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(1, 1), ProgressDeadline: 2147483647 * time.Second},
		},
	})
}

func TestReplicaSets(t *testing.T) {
	checkResults(t, map[string]resultCase{
		"all ready": {
			`{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(2, 2)},
		},
		"of an older revision, without pods": {
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 3}, spec: {replicas: 0}, status: {observedGeneration: 3, replicas: 0}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(0, 0)},
		},
		"quota": {
			`{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 0, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate}]}}`,
			healthscope.Result{
				State: healthscope.Failed, Reason: healthscope.ReasonReplicaFailure, Message: "0 of 2 replicas are ready; FailedCreate",
				Replicas: of(0, 2),
			},
		},
		"just created": {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 1}, spec: {replicas: 2}, status: {replicas: 0}}`, notObserved},
	})
}

func TestStatefulSets(t *testing.T) {
	checkResults(t, map[string]resultCase{
		"all ready": {
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}},
			  status: {observedGeneration: 1, replicas: 3, readyReplicas: 3, currentReplicas: 3, updatedReplicas: 3, availableReplicas: 3}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(3, 3)},
		},
		"OnDelete with no pod ready": {
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, replicas: 2, currentReplicas: 2}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Message: "0 of 2 replicas are ready", Replicas: of(0, 2)},
		},
		"OnDelete with pods of the old revision is at rest": {
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, availableReplicas: 2}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(2, 2)},
		},
		"a canary that is done": {
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 4, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 3}}},
			  status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 1}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(4, 4)},
		},
		"an update under way with all pods ready": {
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 4}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 4, updatedReplicas: 2}}`,
			healthscope.Result{
				State: healthscope.Ready, Reason: healthscope.ReasonRolloutInProgress, Message: "4 of 4 replicas are ready, a rollout is in progress",
				Serving: true, Replicas: of(4, 4),
			},
		},
		"an update that is stuck": {
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 4}, status: {observedGeneration: 2, replicas: 4, readyReplicas: 3, updatedReplicas: 1}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Message: "3 of 4 replicas are ready", Replicas: of(3, 4)},
		},
		"just created": {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 3}, status: {replicas: 0, availableReplicas: 0}}`, notObserved},
		"scaled to zero": {
			`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 0}, status: {observedGeneration: 1, replicas: 0, availableReplicas: 0}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(0, 0)},
		},
	})
}

func TestDaemonSets(t *testing.T) {
	checkResults(t, map[string]resultCase{
		"on all nodes": {
			`{apiVersion: apps/v1, kind: DaemonSet, status: {observedGeneration: 1, desiredNumberScheduled: 5, currentNumberScheduled: 5, updatedNumberScheduled: 5, numberAvailable: 5, numberReady: 5}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(5, 5)},
		},
		"just created, with the zeros of a new status": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {desiredNumberScheduled: 0, currentNumberScheduled: 0, numberReady: 0, numberMisscheduled: 0}}`,
			notObserved,
		},
		"OnDelete, one node down": {
			`{apiVersion: apps/v1, kind: DaemonSet, spec: {updateStrategy: {type: OnDelete}},
			  status: {observedGeneration: 1, desiredNumberScheduled: 5, currentNumberScheduled: 5, updatedNumberScheduled: 5, numberAvailable: 4, numberReady: 4}}`,
			healthscope.Result{State: healthscope.Pending, Reason: healthscope.ReasonReplicasNotReady, Message: "4 of 5 replicas are ready", Replicas: of(4, 5)},
		},
		"updating, all ready": {
			`{apiVersion: apps/v1, kind: DaemonSet, status: {observedGeneration: 2, desiredNumberScheduled: 5, currentNumberScheduled: 5, updatedNumberScheduled: 2, numberAvailable: 5, numberReady: 5}}`,
			healthscope.Result{
				State: healthscope.Ready, Reason: healthscope.ReasonRolloutInProgress, Message: "5 of 5 replicas are ready, a rollout is in progress",
				Serving: true, Replicas: of(5, 5),
			},
		},
		"no node matches": {
			`{apiVersion: apps/v1, kind: DaemonSet, status: {observedGeneration: 1, desiredNumberScheduled: 0, numberReady: 0}}`,
			healthscope.Result{State: healthscope.Ready, Serving: true, Replicas: of(0, 0)},
		},
		"older status": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 9}, status: {observedGeneration: 8, desiredNumberScheduled: 5, currentNumberScheduled: 5, updatedNumberScheduled: 5, numberAvailable: 5, numberReady: 5}}`,
			healthscope.Result{
				State: healthscope.Pending, Reason: healthscope.ReasonStaleGeneration, Message: "the status is older than the spec",
				Serving: true, Replicas: of(5, 5),
			},
		},
	})
}
