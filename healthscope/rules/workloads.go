package rules

import (
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/healthscope/healthscope/healthscope"
)

// workload is what the rules for workloads with replicas go by.
type workload struct {
	// wanted is the number of replicas that the spec wants; nil when it does not say, as in bundles of monitors that keep no spec.
	wanted *int64
	// desired is the number that is wanted: that of the spec, else the one that exists, and no fewer than least.
	desired int64
	// least is the number that is wanted at least, as far as anything but spec.replicas tells.
	least int64
	// total, ready, updated and available are the numbers of replicas that exist and that are so.
	total, ready, updated, available int64
	// counts is true when available is to be relied on. StatefulSets before Kubernetes 1.22 have no such count, which in Go types is a 0.
	counts bool
	// resting is true when replicas are not updated by themselves; partition is the number of those that are not to be.
	resting   bool
	partition int64
	// seen is what only DaemonSets tell: nodes have been counted.
	seen bool
}

// judgeDeployment is the rule for Deployments: Ready when all replicas that
// exist are ready, and there are as many as are wanted.
func judgeDeployment(o *object, verdict *healthscope.Result) {
	var w workload
	var deadline int64
	if d, ok := o.typed.(*appsv1.Deployment); ok {
		w = o.typedWorkload(d.Spec.Replicas, d.Status.ObservedGeneration, d.Status.Replicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas)
		w.updated = o.typedNumber(int64(d.Status.UpdatedReplicas), "status.updatedReplicas")
		typedConditions(o, d.Status.Conditions, func(c *appsv1.DeploymentCondition) condition {
			return condition{string(c.Type), string(c.Status), c.Reason, c.Message, 0}
		})
		w.least = leastReplicas(d.Spec.Selector != nil, w.available, o.typedNumber(int64(d.Status.UnavailableReplicas), "status.unavailableReplicas"))
		verdict.Suspended = d.Spec.Paused
		if seconds := d.Spec.ProgressDeadlineSeconds; seconds != nil {
			deadline = o.typedNumber(int64(*seconds), "spec.progressDeadlineSeconds")
		}
	} else {
		w = o.workload()
		w.updated = o.number(o.status, "status.updatedReplicas")
		w.least = leastReplicas(o.spec["selector"] != nil, w.available, o.number(o.status, "status.unavailableReplicas"))
		verdict.Suspended = o.flag(o.spec, "spec.paused")
		deadline = o.number(o.spec, "spec.progressDeadlineSeconds")
	}
	w.counts = true
	verdict.ProgressDeadline = time.Duration(min(deadline, math.MaxInt32)) * time.Second
	w.judge(o, verdict)
	// Once a rollout is complete, Kubernetes does not look at its deadline again, whatever becomes of the pods.
	progressing := o.condition("Progressing")
	verdict.Timed = verdict.State == healthscope.Pending && progressing.is("True") && progressing.reason != "NewReplicaSetAvailable"
	if verdict.Suspended && verdict.State == healthscope.Ready && !verdict.Warning {
		verdict.Reason, verdict.Message = healthscope.ReasonPaused, "rollouts are paused"
	}
}

// leastReplicas returns how many replicas a Deployment without spec.replicas wants at least: those that its status
// says are available and are missing, and the default of 1 when the spec has not been cut off, so that it has a selector.
func leastReplicas(spec bool, available, unavailable int64) int64 {
	var least int64
	if spec {
		least = 1
	}
	if unavailable == 0 {
		return least
	}
	return max(least, available+min(unavailable, math.MaxInt64-available))
}

// judgeReplicaSet is the rule for ReplicaSets and ReplicationControllers. They
// update no replica: that is what Deployments are for.
func judgeReplicaSet(o *object, verdict *healthscope.Result) {
	var w workload
	switch r := o.typed.(type) {
	case *appsv1.ReplicaSet:
		w = o.typedWorkload(r.Spec.Replicas, r.Status.ObservedGeneration, r.Status.Replicas, r.Status.ReadyReplicas, r.Status.AvailableReplicas)
		typedConditions(o, r.Status.Conditions, func(c *appsv1.ReplicaSetCondition) condition {
			return condition{string(c.Type), string(c.Status), c.Reason, c.Message, 0}
		})
	case *corev1.ReplicationController:
		w = o.typedWorkload(r.Spec.Replicas, r.Status.ObservedGeneration, r.Status.Replicas, r.Status.ReadyReplicas, r.Status.AvailableReplicas)
		typedConditions(o, r.Status.Conditions, func(c *corev1.ReplicationControllerCondition) condition {
			return condition{string(c.Type), string(c.Status), c.Reason, c.Message, 0}
		})
	default:
		w = o.workload()
	}
	w.counts, w.resting = true, true
	w.judge(o, verdict)
}

// judgeStatefulSet is the rule for StatefulSets. Replicas below the partition
// are not to be updated, and with OnDelete none is by itself.
func judgeStatefulSet(o *object, verdict *healthscope.Result) {
	var w workload
	if s, ok := o.typed.(*appsv1.StatefulSet); ok {
		w = o.typedWorkload(s.Spec.Replicas, s.Status.ObservedGeneration, s.Status.Replicas, s.Status.ReadyReplicas, s.Status.AvailableReplicas)
		w.updated = o.typedNumber(int64(s.Status.UpdatedReplicas), "status.updatedReplicas")
		w.counts = w.available > 0 || o.typedNumber(int64(s.Spec.MinReadySeconds), "spec.minReadySeconds") > 0
		typedConditions(o, s.Status.Conditions, func(c *appsv1.StatefulSetCondition) condition {
			return condition{string(c.Type), string(c.Status), c.Reason, c.Message, 0}
		})
		w.resting = s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
		if rolling := s.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
			w.partition = o.typedNumber(int64(*rolling.Partition), "spec.updateStrategy.rollingUpdate.partition")
		}
	} else {
		w = o.workload()
		w.updated = o.number(o.status, "status.updatedReplicas")
		w.counts = w.available > 0 || o.number(o.spec, "spec.minReadySeconds") > 0
		strategy := o.child(o.spec, "spec.updateStrategy")
		w.resting = word(strategy["type"]) == "OnDelete"
		w.partition = o.number(o.child(strategy, "spec.updateStrategy.rollingUpdate"), "spec.updateStrategy.rollingUpdate.partition")
	}
	w.judge(o, verdict)
}

// judgeDaemonSet is the rule for DaemonSets, which are wanted on as many nodes as the status says.
func judgeDaemonSet(o *object, verdict *healthscope.Result) {
	w := workload{counts: true}
	var desired, current int64
	if d, ok := o.typed.(*appsv1.DaemonSet); ok {
		o.observedTyped(d.Status.ObservedGeneration)
		desired = o.typedNumber(int64(d.Status.DesiredNumberScheduled), "status.desiredNumberScheduled")
		w.ready = o.typedNumber(int64(d.Status.NumberReady), "status.numberReady")
		current = o.typedNumber(int64(d.Status.CurrentNumberScheduled), "status.currentNumberScheduled")
		w.updated = o.typedNumber(int64(d.Status.UpdatedNumberScheduled), "status.updatedNumberScheduled")
		w.available = o.typedNumber(int64(d.Status.NumberAvailable), "status.numberAvailable")
		w.resting = d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
		typedConditions(o, d.Status.Conditions, func(c *appsv1.DaemonSetCondition) condition {
			return condition{string(c.Type), string(c.Status), c.Reason, c.Message, 0}
		})
	} else {
		desired = o.number(o.status, "status.desiredNumberScheduled")
		w.ready = o.number(o.status, "status.numberReady")
		current = o.number(o.status, "status.currentNumberScheduled")
		w.updated = o.number(o.status, "status.updatedNumberScheduled")
		w.available = o.number(o.status, "status.numberAvailable")
		w.resting = word(o.child(o.spec, "spec.updateStrategy")["type"]) == "OnDelete"
	}
	w.total, w.wanted = w.ready, &desired
	w.seen = desired > 0 || current > 0
	w.judge(o, verdict)
}

// workload reads what Deployments, ReplicaSets and StatefulSets in JSON have in common.
func (o *object) workload() workload {
	w := workload{
		total:     o.number(o.status, "status.replicas"),
		ready:     o.number(o.status, "status.readyReplicas"),
		available: o.number(o.status, "status.availableReplicas"),
	}
	if wanted, ok := o.count(o.spec, "spec.replicas"); ok {
		w.wanted = &wanted
	}
	return w
}

// typedWorkload reads the same from Go types.
func (o *object) typedWorkload(wanted *int32, observed int64, total, ready, available int32) workload {
	o.observedTyped(observed)
	w := workload{
		total:     o.typedNumber(int64(total), "status.replicas"),
		ready:     o.typedNumber(int64(ready), "status.readyReplicas"),
		available: o.typedNumber(int64(available), "status.availableReplicas"),
	}
	if wanted != nil {
		if n := o.typedNumber(int64(*wanted), "spec.replicas"); n == int64(*wanted) {
			w.wanted = &n
		}
	}
	return w
}

// judge gives the verdict that the numbers and conditions of a workload lead to.
func (w workload) judge(o *object, verdict *healthscope.Result) {
	o.needConditions()
	w.desired = max(w.total, w.least)
	if w.wanted != nil {
		w.desired = *w.wanted
	}
	if !w.observed(o) {
		pendingNotObserved(verdict)
		return
	}
	verdict.Replicas = &healthscope.Replicas{Ready: clamp(w.ready), Desired: clamp(w.desired)}
	verdict.Serving = w.ready >= w.desired
	verdict.Progress = &healthscope.Progress{
		Generation: o.generation, Updated: clamp(w.updated), Ready: clamp(w.ready), Available: clamp(w.available),
	}
	verdict.Progressing = w.changing()
	failure := failureOf(o)
	ready := w.text()
	switch {
	case w.total == w.ready && w.ready >= w.desired:
		verdict.State = healthscope.Ready
		if failure.reason != "" {
			verdict.Reason, verdict.Message, verdict.Warning = failure.reason, join("; ", ready, failure.message), true
		} else if verdict.Progressing {
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

// observed says whether a controller has written the status. A new object has a status too, with zeros in it.
func (w workload) observed(o *object) bool {
	return w.seen || w.total > 0 || w.ready > 0 || o.observed > 0 || len(o.conditions) > 0
}

// changing says whether a rollout or a scaling is under way.
func (w workload) changing() bool {
	return w.total != w.desired || w.counts && w.available < w.desired || !w.resting && w.updated < w.desired-w.partition
}

// pendingNotObserved gives the verdict on an object that its controller has not reported on.
func pendingNotObserved(verdict *healthscope.Result) {
	verdict.State, verdict.Reason = healthscope.Pending, healthscope.ReasonNotObserved
	verdict.Message = "no controller has reported on it yet"
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
