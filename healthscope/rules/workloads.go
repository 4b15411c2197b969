package rules

import (
	"fmt"
	"math"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// workload holds the fields that the rules for workloads with replicas read.
type workload struct {
	// specReplicas is spec.replicas; nil when it is missing, as in bundles of monitors that keep no spec.
	specReplicas *int64
	// desired is the desired number: that of the spec, else the number that exists, but at least minDesired.
	desired int64
	// minDesired is the lower bound of the desired number that fields other than spec.replicas imply.
	minDesired int64
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
func judgeDeployment(o *object, result *healthscope.Result) {
	w := o.workload()
	w.updated = o.number(o.status, "status.updatedReplicas")
	w.minDesired = minDesiredReplicas(o.spec["selector"] != nil, w.available, o.number(o.status, "status.unavailableReplicas"))
	w.hasAvailable = true
	result.Suspended = o.flag(o.spec, "spec.paused")
	result.ProgressDeadline = time.Duration(min(o.number(o.spec, "spec.progressDeadlineSeconds"), math.MaxInt32)) * time.Second
	w.judge(o, result)
	// After a rollout has completed, Kubernetes does not check its deadline again, even if pods fail.
	progressing := o.condition("Progressing")
	result.Timed = result.State == healthscope.Pending && progressing.is("True") && progressing.reason != "NewReplicaSetAvailable"
	if result.Suspended && result.State == healthscope.Ready && !result.Warning {
		result.Reason, result.Message = healthscope.ReasonPaused, "rollouts are paused"
	}
}

// minDesiredReplicas returns the lower bound of the desired number of a Deployment without spec.replicas: the sum of the available and the
// unavailable replicas, and at least the default of 1 when the object has a spec, which a selector shows.
func minDesiredReplicas(hasSpec bool, available, unavailable int64) int64 {
	var minimum int64
	if hasSpec {
		minimum = 1
	}
	if unavailable == 0 {
		return minimum
	}
	return max(minimum, available+min(unavailable, math.MaxInt64-available))
}

// judgeReplicaSet is the rule for ReplicaSets and ReplicationControllers. They do not update replicas: Deployments do.
func judgeReplicaSet(o *object, result *healthscope.Result) {
	w := o.workload()
	w.hasAvailable, w.manualUpdate = true, true
	w.judge(o, result)
}

// judgeStatefulSet is the rule for StatefulSets. Replicas below the partition are not updated, and with OnDelete no replica is updated
// automatically.
func judgeStatefulSet(o *object, result *healthscope.Result) {
	w := o.workload()
	w.updated = o.number(o.status, "status.updatedReplicas")
	w.hasAvailable = w.available > 0 || o.number(o.spec, "spec.minReadySeconds") > 0
	strategy := o.child(o.spec, "spec.updateStrategy")
	w.manualUpdate = stringValue(strategy["type"]) == "OnDelete"
	w.partition = o.number(o.child(strategy, "spec.updateStrategy.rollingUpdate"), "spec.updateStrategy.rollingUpdate.partition")
	w.judge(o, result)
}

// judgeDaemonSet is the rule for DaemonSets, whose desired number of pods is in the status.
func judgeDaemonSet(o *object, result *healthscope.Result) {
	desired := o.number(o.status, "status.desiredNumberScheduled")
	ready := o.number(o.status, "status.numberReady")
	current := o.number(o.status, "status.currentNumberScheduled")
	w := workload{
		specReplicas: &desired, total: ready, ready: ready, hasAvailable: true,
		updated:      o.number(o.status, "status.updatedNumberScheduled"),
		available:    o.number(o.status, "status.numberAvailable"),
		manualUpdate: stringValue(o.child(o.spec, "spec.updateStrategy")["type"]) == "OnDelete",
		nodesCounted: desired > 0 || current > 0,
	}
	w.judge(o, result)
}

// workload reads the fields that Deployments, ReplicaSets and StatefulSets have in common.
func (o *object) workload() workload {
	w := workload{
		total:     o.number(o.status, "status.replicas"),
		ready:     o.number(o.status, "status.readyReplicas"),
		available: o.number(o.status, "status.availableReplicas"),
	}
	if wanted, ok := o.optionalNumber(o.spec, "spec.replicas"); ok {
		w.specReplicas = &wanted
	}
	return w
}

// judge sets the result from the numbers and conditions of a workload.
func (w workload) judge(o *object, result *healthscope.Result) {
	o.requireConditions()
	w.desired = max(w.total, w.minDesired)
	if w.specReplicas != nil {
		w.desired = *w.specReplicas
	}
	if !w.observed(o) {
		pendingNotObserved(result)
		return
	}
	result.Replicas = &healthscope.Replicas{Ready: toInt32(w.ready), Desired: toInt32(w.desired)}
	result.Serving = w.ready >= w.desired
	result.Progress = &healthscope.Progress{
		Generation: o.generation, Updated: toInt32(w.updated), Ready: toInt32(w.ready), Available: toInt32(w.available),
	}
	failure := failureOf(o)
	ready := w.text()
	switch {
	case w.total == w.ready && w.ready >= w.desired:
		result.State = healthscope.Ready
		if failure.reason != "" {
			result.Reason, result.Message, result.Warning = failure.reason, join("; ", ready, failure.message), true
		} else if w.rollingOut() {
			result.Reason, result.Message = healthscope.ReasonRolloutInProgress, ready+", a rollout is in progress"
		}
	case failure.reason != "":
		result.State, result.Reason, result.Message = healthscope.Failed, failure.reason, join("; ", ready, failure.message)
	case result.Serving:
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonRolloutInProgress
		result.Message = fmt.Sprintf("%s, %d exist", ready, w.total)
	default:
		result.State, result.Reason, result.Message = healthscope.Pending, healthscope.ReasonReplicasNotReady, ready
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

// pendingNotObserved sets the result of an object whose controller has not written a status.
func pendingNotObserved(result *healthscope.Result) {
	result.State, result.Reason = healthscope.Pending, healthscope.ReasonNotObserved
	result.Message = "no controller has reported on it yet"
}

// text returns how many replicas are ready, as text.
func (w workload) text() string {
	if w.ready > w.desired {
		return fmt.Sprintf("%d replicas are ready, %d wanted", w.ready, w.desired)
	}
	return fmt.Sprintf("%d of %d replicas are ready", w.ready, w.desired)
}

// failure is a failure that the conditions of a workload report; its reason is empty when there is none.
type failure struct {
	reason  healthscope.Reason
	message string
}

// failureOf reads the conditions by which Deployments and ReplicaSets report that they cannot progress.
func failureOf(o *object) failure {
	if c := o.condition("Progressing"); c.is("False") && c.reason == string(healthscope.ReasonProgressDeadlineExceeded) {
		return failure{healthscope.ReasonProgressDeadlineExceeded, c.message}
	}
	if c := o.condition("ReplicaFailure"); c.is("True") {
		return failure{healthscope.ReasonReplicaFailure, c.detail()}
	}
	return failure{}
}

// toInt32 converts a count, up to the largest int32.
func toInt32(n int64) int32 { return int32(min(n, math.MaxInt32)) }
