package rules

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

// failureCondition is a condition type with the status that means a failure.
type failureCondition struct {
	kind, status string
	reason       healthscope.Reason
}

// failureConditions are the conditions that mean a failure, the most severe first: kstatus and Flux define Stalled; Failed and Degraded are
// common among operators; Crossplane defines Synced and LastAsyncOperation.
var failureConditions = []failureCondition{
	{"Stalled", "True", healthscope.ReasonStalled},
	{"Failed", "True", healthscope.ReasonFailed},
	{"Degraded", "True", healthscope.ReasonDegraded},
	{"Synced", "False", healthscope.ReasonSyncedFalse},
	{"LastAsyncOperation", "False", healthscope.ReasonSyncedFalse},
}

// readinessConditions are the conditions that report whether an object is ready. The first of them that an object has decides.
var readinessConditions = []string{"Ready", "Available", "Healthy", "Established", "Succeeded"}

// reconcilePaused is the reason of Crossplane's condition Synced while an annotation pauses an object.
const reconcilePaused = "ReconcilePaused"

// judgeByConditions judges an object by the conditions and phases that most controllers write. It returns the name of the rule that decided;
// empty when none did.
func judgeByConditions(o *object, result *healthscope.Result) string {
	result.Suspended = isSuspended(o)
	failed, stale := o.failure(result)
	phase := readPhase(o)
	if aggregatingKinds[groupKind{result.Group, result.Kind}] {
		phase.class = phaseNone
	}
	decisive := o.readinessCondition(result)
	reconciling := findCondition(o.conditions, "Reconciling")
	switch {
	case failed:
		return ruleConditions
	case phase.class == phaseFailed:
		phase.judge(o, result)
		return rulePhase
	case judgeSpecial(o, result, phase):
		return ruleConditions
	case reconciling.is("True") && !isSuspended(o):
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonReconciling
		result.Message = reconciling.detail()
		return ruleConditions
	case decisive.exists():
		o.judgeByCondition(result, decisive)
		return ruleConditions
	case findCondition(o.conditions, "NotReady").is("True"):
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonReadyFalse
		result.Message = findCondition(o.conditions, "NotReady").sentence()
		return ruleConditions
	case stale.exists():
		o.judgeByCondition(result, stale)
		return ruleConditions
	case phase.class != phaseNone:
		phase.judge(o, result)
		return rulePhase
	case isSuspended(o):
		o.requireConditions()
		result.State = healthscope.Ready
		return ruleConditions
	}
	return ""
}

// failure looks for a condition that means a failure. A condition of an older generation does not decide; failure returns it as stale, for the
// caller to use when nothing else decides.
func (o *object) failure(result *healthscope.Result) (failed bool, stale condition) {
	for _, sign := range slices.Concat(failureConditions, failureConditionsByKind[groupKind{result.Group, result.Kind}]) {
		c := findCondition(o.conditions, sign.kind)
		switch {
		case !c.is(sign.status):
		case c.reason == reconcilePaused:
			result.Suspended = true
		case o.outdated(c):
			stale = c
		default:
			result.State, result.Reason, result.Message = healthscope.Failed, sign.reason, cmp.Or(c.detail(), c.sentence())
			return true, condition{}
		}
	}
	return false, stale
}

// readinessCondition returns the condition that reports whether the object is ready.
func (o *object) readinessCondition(result *healthscope.Result) condition {
	for _, kind := range readinessConditions {
		if c := findCondition(o.conditions, kind); c.exists() {
			return c
		}
	}
	return findCondition(o.conditions, readinessConditionByKind[groupKind{result.Group, result.Kind}])
}

// judgeByCondition judges an object by a condition that is True when all is well, and reports whether it is Ready.
func (o *object) judgeByCondition(result *healthscope.Result, c condition) bool {
	outdated := o.outdated(c) && !isSuspended(o)
	if c.is("True") && !outdated {
		result.State = healthscope.Ready
		return true
	}
	result.State, result.Message = healthscope.Pending, c.sentence()
	isReady := c.conditionType == "Ready"
	switch {
	case outdated:
		result.Reason, result.Message = healthscope.ReasonStaleCondition, "condition "+c.conditionType+" is of an older generation"
	case isReady && c.is("False"):
		result.Reason, result.Message = healthscope.ReasonReadyFalse, c.detail()
	case isReady && !c.hasInvalidStatus():
		result.Reason, result.Message = healthscope.ReasonReadyUnknown, c.detail()
	case isReady:
		result.Reason, result.Warning = healthscope.ReasonReadyUnknown, true
	case c.conditionType == "Available" && c.is("False"):
		result.Reason = healthscope.ReasonAvailableFalse
	case c.is("False"):
		result.Reason = healthscope.ReasonConditionFalse
	default:
		result.Reason, result.Warning = healthscope.ReasonConditionUnknown, c.hasInvalidStatus()
	}
	return false
}

// isSuspended reports whether the user has suspended the object: Flux and Argo Workflows have spec.suspend, Cluster API and Argo Rollouts have
// spec.paused, and Strimzi has a condition. The controller of a suspended object does not reconcile it, so its status may belong to an older
// generation.
func isSuspended(o *object) bool {
	for _, field := range [...]string{"suspend", "paused"} {
		if suspended, _ := boolean(o.spec[field]); suspended {
			return true
		}
	}
	return findCondition(o.conditions, "ReconciliationPaused").is("True")
}

// created returns the creation time of the object; the zero time when it is not known.
func (o *object) created() time.Time {
	created, err := time.Parse(time.RFC3339, stringValue(o.metadata["creationTimestamp"]))
	if err != nil {
		return time.Time{}
	}
	return created.UTC()
}

// judgeWithoutRule judges an object that no rule can judge. Many kinds
// have no status because nothing is to be said of them; others have none yet,
// for which healthscope.Judge gives them time from their creation.
func judgeWithoutRule(o *object, result *healthscope.Result) {
	switch {
	case len(o.status) == 0:
		result.State, result.Reason = healthscope.Ready, healthscope.ReasonNoStatus
		result.Message, result.Since = "the object has no status", o.created()
	case isProviderConfig(o, result.Kind):
		result.State, result.Reason = healthscope.Ready, healthscope.ReasonExists
	case len(o.status) == 1 && o.status["conditions"] != nil && len(o.conditions) == 0:
		result.State, result.Reason = healthscope.Unknown, healthscope.ReasonNoStatus
		result.Message, result.Since = "the status says nothing yet", o.created()
	default:
		result.State, result.Reason = healthscope.Unknown, healthscope.ReasonNoRule
		result.Message = "no rule can tell the health of " + strings.TrimSuffix(result.Kind+"."+result.Group, ".") + " from its status"
	}
}
