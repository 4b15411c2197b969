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

// otherConditionByKind maps kinds to a condition whose type sounds as if it were about health, and is not: that of a Rollout is False during
// every update, also while it is paused and all its replicas serve.
var otherConditionByKind = map[groupKind]string{{"argoproj.io", "Rollout"}: "Healthy"}

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
func (o *object) judgeSpecial(phase phase) bool {
	switch o.groupKind() {
	case groupKind{"kubevirt.io", "VirtualMachineInstance"}: // Its condition Ready is False once it has ended.
		if phase.word != "Succeeded" {
			return false
		}
		o.set(healthscope.Ready, healthscope.ReasonCompleted, "the virtual machine has ended well")
	case groupKind{"autoscaling.internal.knative.dev", "PodAutoscaler"}:
		active := findCondition(o.conditions, "Active")
		if !active.is("False") || active.reason != "NoTraffic" || o.outdated(active) {
			return false
		}
		o.State, o.Message = healthscope.Ready, "it is scaled to zero, for lack of traffic"
	default:
		return false
	}
	return true
}

// isProviderConfig reports whether an object is the configuration of a Crossplane provider. The status of these only counts their users.
func (o *object) isProviderConfig() bool {
	if o.Kind != "ProviderConfig" && o.Kind != "ClusterProviderConfig" || len(o.status) != 1 {
		return false
	}
	_, counts := wholeNumber(o.status["users"])
	return counts
}

// judgeApplied is the rule for Databases of CloudNativePG, which report in status.applied whether they are applied to PostgreSQL.
func judgeApplied(o *object) {
	applied := o.flag(o.status, "status.applied")
	switch {
	case o.status["applied"] == nil:
		o.notObserved()
	case applied:
		o.State = healthscope.Ready
	default:
		o.set(healthscope.Failed, healthscope.ReasonFailed, join(": ", "it could not be applied", stringValue(o.status["message"])))
	}
}

// judgePodSet is the rule for StrimziPodSets, whose status counts the desired pods and the ready pods.
func judgePodSet(o *object) {
	desired, hasStatus := o.optionalNumber(o.status, "status.pods")
	if !hasStatus {
		o.notObserved()
		return
	}
	ready := o.number(o.status, "status.readyPods")
	desired = max(desired, int64(len(o.list(o.spec, "spec.pods"))))
	o.Serving = ready >= desired
	if o.Serving {
		o.State = healthscope.Ready
		return
	}
	o.set(healthscope.Pending, healthscope.ReasonReplicasNotReady, fmt.Sprintf("%d of %d pods are ready", ready, desired))
}
