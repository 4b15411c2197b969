package rules

import (
	"fmt"
	"math"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// workload holds the fields that the rules for workloads with replicas read.
type workload struct {
	// desired is the desired number: that of the spec, else the number that exists. hasDesired is true when the spec has it; monitors may keep
	// no spec.
	desired    int64
	hasDesired bool
	// total is the number of replicas; ready, updated and available are the numbers of those in the state of that name.
	total, ready, updated, available int64
	// hasAvailable is true when available is reliable. StatefulSets before Kubernetes 1.22 do not have that count.
	hasAvailable bool
	// manualUpdate is true when replicas are not updated automatically; partition is the number of replicas that must not be updated.
	manualUpdate bool
	partition    int64
	// nodesCounted is true for a DaemonSet whose controller has counted nodes.
	nodesCounted bool
}

// judgeDeployment is the rule for Deployments: Ready when all existing replicas are ready, and their number is the desired one.
func judgeDeployment(o *object) {
	w := o.workload()
	w.updated = o.number(o.status, "status.updatedReplicas")
	unavailable := o.number(o.status, "status.unavailableReplicas")
	if !w.hasDesired { // At least the default of 1, when a selector shows that there is a spec, and what is counted.
		if o.spec["selector"] != nil {
			w.desired = max(w.desired, 1)
		}
		if unavailable > 0 {
			w.desired = max(w.desired, w.available+min(unavailable, math.MaxInt64-w.available))
		}
	}
	w.hasAvailable = true
	o.Suspended = o.flag(o.spec, "spec.paused")
	o.ProgressDeadline = time.Duration(min(o.number(o.spec, "spec.progressDeadlineSeconds"), math.MaxInt32)) * time.Second
	w.judge(o)
	// After a rollout has completed, Kubernetes does not check its deadline again, even if pods fail.
	progressing := o.condition("Progressing")
	o.Timed = o.State == healthscope.Pending && progressing.is("True") && progressing.reason != "NewReplicaSetAvailable"
	if o.Suspended && o.State == healthscope.Ready && !o.Warning {
		o.set(healthscope.Ready, healthscope.ReasonPaused, "rollouts are paused")
	}
}

// judgeReplicaSet is the rule for ReplicaSets and ReplicationControllers. They do not update replicas: Deployments do.
func judgeReplicaSet(o *object) {
	w := o.workload()
	w.hasAvailable, w.manualUpdate = true, true
	w.judge(o)
}

// judgeStatefulSet is the rule for StatefulSets. Replicas below the partition are not updated, and with OnDelete no replica is updated
// automatically.
func judgeStatefulSet(o *object) {
	w := o.workload()
	w.updated = o.number(o.status, "status.updatedReplicas")
	w.hasAvailable = w.available > 0 || o.number(o.spec, "spec.minReadySeconds") > 0
	strategy := o.child(o.spec, "spec.updateStrategy")
	w.manualUpdate = stringValue(strategy["type"]) == "OnDelete"
	w.partition = o.number(o.child(strategy, "spec.updateStrategy.rollingUpdate"), "spec.updateStrategy.rollingUpdate.partition")
	w.judge(o)
}

// judgeDaemonSet is the rule for DaemonSets, whose desired number of pods is in the status.
func judgeDaemonSet(o *object) {
	desired := o.number(o.status, "status.desiredNumberScheduled")
	ready := o.number(o.status, "status.numberReady")
	current := o.number(o.status, "status.currentNumberScheduled")
	w := workload{
		desired: desired, hasDesired: true, total: ready, ready: ready, hasAvailable: true,
		updated:      o.number(o.status, "status.updatedNumberScheduled"),
		available:    o.number(o.status, "status.numberAvailable"),
		manualUpdate: stringValue(o.child(o.spec, "spec.updateStrategy")["type"]) == "OnDelete",
		nodesCounted: desired > 0 || current > 0,
	}
	w.judge(o)
}

// workload reads the fields that Deployments, ReplicaSets and StatefulSets have in common.
func (o *object) workload() workload {
	w := workload{
		total:     o.number(o.status, "status.replicas"),
		ready:     o.number(o.status, "status.readyReplicas"),
		available: o.number(o.status, "status.availableReplicas"),
	}
	if w.desired, w.hasDesired = o.optionalNumber(o.spec, "spec.replicas"); !w.hasDesired {
		w.desired = w.total
	}
	return w
}

// judge sets the result from the numbers and conditions of a workload.
func (w workload) judge(o *object) {
	o.requireConditions()
	if !w.observed(o) {
		o.notObserved()
		return
	}
	o.Replicas = &healthscope.Replicas{Ready: toInt32(w.ready), Desired: toInt32(w.desired)}
	o.Serving = w.ready >= w.desired
	o.Progress = &healthscope.Progress{
		Generation: o.generation, Updated: toInt32(w.updated), Ready: toInt32(w.ready), Available: toInt32(w.available),
	}
	reason, message := o.workloadFailure()
	ready := w.text()
	switch {
	case w.total == w.ready && w.ready >= w.desired:
		o.State = healthscope.Ready
		if reason != "" {
			o.warn(reason, join("; ", ready, message))
		} else if w.rollingOut() {
			o.set(healthscope.Ready, healthscope.ReasonRolloutInProgress, ready+", a rollout is in progress")
		}
	case reason != "":
		o.set(healthscope.Failed, reason, join("; ", ready, message))
	case o.Serving:
		o.set(healthscope.Pending, healthscope.ReasonRolloutInProgress, fmt.Sprintf("%s, %d exist", ready, w.total))
	default:
		o.set(healthscope.Pending, healthscope.ReasonReplicasNotReady, ready)
	}
}

// observed reports whether a controller has written the status. The status of a new object contains zeros.
func (w workload) observed(o *object) bool {
	return w.nodesCounted || w.total > 0 || w.ready > 0 || o.observed > 0 || len(o.conditions) > 0
}

// rollingOut reports whether a rollout or a scaling is under way.
func (w workload) rollingOut() bool {
	return w.total != w.desired || w.hasAvailable && w.available < w.desired || !w.manualUpdate && w.updated < w.desired-w.partition
}

// text returns how many replicas are ready, as text.
func (w workload) text() string {
	if w.ready > w.desired {
		return fmt.Sprintf("%d replicas are ready, %d wanted", w.ready, w.desired)
	}
	return fmt.Sprintf("%d of %d replicas are ready", w.ready, w.desired)
}

// workloadFailure returns why a Deployment or ReplicaSet cannot progress, as its conditions report it; empty when it can.
func (o *object) workloadFailure() (reason healthscope.Reason, message string) {
	if c := o.condition("Progressing"); c.is("False") && c.reason == string(healthscope.ReasonProgressDeadlineExceeded) {
		return healthscope.ReasonProgressDeadlineExceeded, c.message
	}
	if c := o.condition("ReplicaFailure"); c.is("True") {
		return healthscope.ReasonReplicaFailure, c.detail()
	}
	return "", ""
}

// toInt32 converts a count, up to the largest int32.
func toInt32(n int64) int32 { return int32(min(n, math.MaxInt32)) }
