package rules

import (
	"fmt"
	"math"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// workload is what the rules for workloads with replicas go by.
type workload struct {
	// desired is the number of replicas that are wanted; that of the status when the spec does not say, as in bundles of monitors that keep no spec.
	desired int64
	// total, ready are the numbers of replicas that exist and that are ready.
	total, ready int64
	// progressing is true while a rollout or a scaling is under way.
	progressing bool
	// observed is true when the controller has written anything.
	observed bool
}

// judgeDeployment is the rule for Deployments: Ready when all replicas that
// exist are ready, and there are as many as are wanted.
func judgeDeployment(o *object, verdict *healthscope.Result) {
	w := replicated(o)
	updated, _ := o.count(o.status, "status.updatedReplicas")
	available, _ := o.count(o.status, "status.availableReplicas")
	w.progressing = w.progressing || updated < w.desired || available < w.desired
	if seconds, ok := o.count(o.spec, "spec.progressDeadlineSeconds"); ok {
		verdict.ProgressDeadline = time.Duration(min(seconds, math.MaxInt32)) * time.Second
	}
	verdict.Suspended = o.flag(o.spec, "spec.paused")
	w.judge(o, verdict)
	if verdict.Suspended && verdict.State == healthscope.Ready && !verdict.Warning {
		verdict.Reason, verdict.Message = healthscope.ReasonPaused, "rollouts are paused"
	}
}

// judgeReplicaSet is the rule for ReplicaSets.
func judgeReplicaSet(o *object, verdict *healthscope.Result) {
	w := replicated(o)
	available, _ := o.count(o.status, "status.availableReplicas")
	w.progressing = w.progressing || available < w.desired
	w.judge(o, verdict)
}

// judgeStatefulSet is the rule for StatefulSets. Replicas below the partition
// are not to be updated, and with OnDelete none is by itself. Before Kubernetes
// 1.22 there is no count of available replicas.
func judgeStatefulSet(o *object, verdict *healthscope.Result) {
	w := replicated(o)
	strategy := o.child(o.spec, "spec.updateStrategy")
	rolling := o.child(strategy, "spec.updateStrategy.rollingUpdate")
	partition, _ := o.count(rolling, "spec.updateStrategy.rollingUpdate.partition")
	updated, _ := o.count(o.status, "status.updatedReplicas")
	if word(strategy["type"]) != "OnDelete" && updated < w.desired-partition {
		w.progressing = true
	}
	if available, ok := o.count(o.status, "status.availableReplicas"); ok && available < w.desired {
		w.progressing = true
	}
	w.judge(o, verdict)
}

// judgeDaemonSet is the rule for DaemonSets, which are wanted on as many nodes as the status says.
func judgeDaemonSet(o *object, verdict *healthscope.Result) {
	var w workload
	w.desired, _ = o.count(o.status, "status.desiredNumberScheduled")
	w.ready, _ = o.count(o.status, "status.numberReady")
	w.total = w.ready
	current, _ := o.count(o.status, "status.currentNumberScheduled")
	updated, _ := o.count(o.status, "status.updatedNumberScheduled")
	available, _ := o.count(o.status, "status.numberAvailable")
	w.progressing = current < w.desired || available < w.desired
	if word(o.child(o.spec, "spec.updateStrategy")["type"]) != "OnDelete" && updated < w.desired {
		w.progressing = true
	}
	w.observed = observed(o, w.desired, w.ready, current)
	w.judge(o, verdict)
}

// replicated reads what Deployments, ReplicaSets and StatefulSets have in common.
func replicated(o *object) workload {
	var w workload
	w.total, _ = o.count(o.status, "status.replicas")
	w.ready, _ = o.count(o.status, "status.readyReplicas")
	desired, known := o.count(o.spec, "spec.replicas")
	if !known {
		desired = w.total
	}
	w.desired = desired
	w.progressing = w.total != w.desired
	w.observed = observed(o, w.total, w.ready)
	return w
}

// observed says whether a controller has written the status. A new object has a
// status too, with zeros in it.
func observed(o *object, counts ...int64) bool {
	for _, n := range counts {
		if n > 0 {
			return true
		}
	}
	generation, _ := o.count(o.status, "status.observedGeneration")
	return generation > 0 || len(o.children(o.status, "status.conditions")) > 0
}

// judge gives the verdict that the numbers and conditions of a workload lead to.
func (w workload) judge(o *object, verdict *healthscope.Result) {
	if !w.observed {
		verdict.State, verdict.Reason = healthscope.Pending, healthscope.ReasonNotObserved
		verdict.Message = "no controller has reported on it yet"
		return
	}
	verdict.Replicas = &healthscope.Replicas{Ready: clamp(w.ready), Desired: clamp(w.desired)}
	verdict.Serving = w.ready >= w.desired
	verdict.Progressing = w.progressing
	failure := failureOf(o)
	ready := w.text()
	switch {
	case w.total == w.ready && w.ready >= w.desired:
		verdict.State = healthscope.Ready
		if failure.reason != "" {
			verdict.Reason, verdict.Message, verdict.Warning = failure.reason, join("; ", ready, failure.message), true
		} else if w.progressing {
			verdict.Reason, verdict.Message = healthscope.ReasonRolloutInProgress, ready+", a rollout is in progress"
		}
	case failure.reason != "":
		verdict.State, verdict.Reason, verdict.Message = healthscope.Failed, failure.reason, join("; ", ready, failure.message)
	case verdict.Serving:
		verdict.State, verdict.Reason = healthscope.Pending, healthscope.ReasonRolloutInProgress
		verdict.Message = fmt.Sprintf("%s, %d exist", ready, w.total)
	default:
		verdict.State, verdict.Reason, verdict.Message = healthscope.Pending, healthscope.ReasonReplicasNotReady, ready
	}
}

// text says how many replicas are ready.
func (w workload) text() string {
	if w.ready > w.desired {
		return fmt.Sprintf("%d replicas are ready, %d wanted", w.ready, w.desired)
	}
	return fmt.Sprintf("%d of %d replicas are ready", w.ready, w.desired)
}

// failure is what a workload's conditions say has failed; its reason is empty when nothing has.
type failure struct {
	reason  healthscope.Reason
	message string
}

// failureOf reads the conditions by which Deployments and ReplicaSets say that they do not get on.
func failureOf(o *object) failure {
	if c := o.condition("Progressing"); c.is("False") && c.reason == string(healthscope.ReasonProgressDeadlineExceeded) {
		return failure{healthscope.ReasonProgressDeadlineExceeded, c.message}
	}
	if c := o.condition("ReplicaFailure"); c.is("True") {
		return failure{healthscope.ReasonReplicaFailure, c.detail()}
	}
	return failure{}
}

// clamp makes a count fit for the wire.
func clamp(n int64) int32 { return int32(min(n, math.MaxInt32)) }
