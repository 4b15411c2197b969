package rules

import (
	"fmt"

	"github.com/healthscope/healthscope/healthscope"
)

// failureConditionsByKind are conditions that mean a failure of some kinds only: their controllers do not retry a request that was rejected.
var failureConditionsByKind = map[groupKind][]failureCondition{
	{"cert-manager.io", "CertificateRequest"}: {
		{"InvalidRequest", "True", healthscope.ReasonFailed}, {"Denied", "True", healthscope.ReasonFailed},
	},
	{"certificates.k8s.io", "CertificateSigningRequest"}: {{"Denied", "True", healthscope.ReasonFailed}},
}

// readinessConditionByKind maps kinds that have none of the usual readinessConditions to the condition that reports whether their objects are
// ready. Their other conditions count too.
var readinessConditionByKind = map[groupKind]string{
	{"rabbitmq.com", "RabbitmqCluster"}: "ClusterAvailable",
	{"core.gardener.cloud", "Shoot"}:    "APIServerAvailable",
}

// aggregatingKinds are the kinds whose status lists other objects, not all of which count. Only the conditions of such an object decide.
var aggregatingKinds = map[groupKind]bool{{"core.oam.dev", "HealthScope"}: true}

// runToCompletionKinds are the kinds whose objects run to completion. An object of such a kind that runs has not completed yet.
var runToCompletionKinds = map[groupKind]bool{
	{"argoproj.io", "Workflow"}:                        true,
	{"argoproj.io", "AnalysisRun"}:                     true,
	{"postgresql.cnpg.io", "Backup"}:                   true,
	{"kubevirt.io", "VirtualMachineInstanceMigration"}: true,
}

// judgeSpecial judges an object of a kind whose conditions have another meaning than usual, if it has not failed, and reports whether it did.
func judgeSpecial(o *object, result *healthscope.Result, phase phase) bool {
	switch (groupKind{result.Group, result.Kind}) {
	case groupKind{"kubevirt.io", "VirtualMachineInstance"}: // Its condition Ready is False once it has ended.
		if phase.word != "Succeeded" {
			return false
		}
		result.State, result.Reason, result.Message = healthscope.Ready, healthscope.ReasonCompleted, "the virtual machine has ended well"
	case groupKind{"autoscaling.internal.knative.dev", "PodAutoscaler"}:
		active := findCondition(o.conditions, "Active")
		if !active.is("False") || active.reason != "NoTraffic" || o.outdated(active) {
			return false
		}
		result.State, result.Message = healthscope.Ready, "it is scaled to zero, for lack of traffic"
	default:
		return false
	}
	return true
}

// isProviderConfig reports whether an object is the configuration of a Crossplane provider. The status of these only counts their users.
func isProviderConfig(o *object, kind string) bool {
	if kind != "ProviderConfig" && kind != "ClusterProviderConfig" || len(o.status) != 1 {
		return false
	}
	_, counts := wholeNumber(o.status["users"])
	return counts
}

// judgeACME is the rule for Orders and Challenges of cert-manager. RFC 8555, section 7.1.6, defines the values of status.state: an order that is
// ready has not been finalized yet.
func judgeACME(o *object, result *healthscope.Result) {
	state := o.text(o.status, "status.state")
	result.Message = join(": ", "status.state is "+state, stringValue(o.status["reason"]))
	switch state {
	case "valid":
		result.State, result.Message = healthscope.Ready, ""
	case "invalid", "expired", "errored":
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonPhaseFailed
	case "pending", "processing", "ready":
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonInProgress
	case "":
		pendingNotObserved(result)
	default:
		pendingUnknownPhase(result, state)
	}
}

// judgeApplied is the rule for Databases of CloudNativePG, which report in status.applied whether they are applied to PostgreSQL.
func judgeApplied(o *object, result *healthscope.Result) {
	applied := o.flag(o.status, "status.applied")
	switch {
	case o.status["applied"] == nil:
		pendingNotObserved(result)
	case applied:
		result.State = healthscope.Ready
	default:
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonFailed
		result.Message = join(": ", "it could not be applied", stringValue(o.status["message"]))
	}
}

// judgePodSet is the rule for StrimziPodSets, whose status counts the desired pods and the ready pods.
func judgePodSet(o *object, result *healthscope.Result) {
	desired, hasStatus := o.optionalNumber(o.status, "status.pods")
	if !hasStatus {
		pendingNotObserved(result)
		return
	}
	ready := o.number(o.status, "status.readyPods")
	desired = max(desired, int64(len(o.list(o.spec, "spec.pods"))))
	result.Serving = ready >= desired
	if result.Serving {
		result.State = healthscope.Ready
		return
	}
	result.State, result.Reason = healthscope.Pending, healthscope.ReasonReplicasNotReady
	result.Message = fmt.Sprintf("%d of %d pods are ready", ready, desired)
}
