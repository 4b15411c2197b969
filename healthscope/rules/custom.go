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
func (o *object) judgeByConditions() string {
	o.Suspended = o.isSuspended()
	failed, stale := o.failure()
	phase := readPhase(o)
	if aggregatingKinds[o.groupKind()] {
		phase.class = phaseNone
	}
	decisive := o.readinessCondition()
	reconciling, notReady := findCondition(o.conditions, "Reconciling"), findCondition(o.conditions, "NotReady")
	switch {
	case failed:
		return ruleConditions
	case phase.class == phaseFailed:
		phase.judge(o)
		return rulePhase
	case o.judgeSpecial(phase):
		return ruleConditions
	case reconciling.is("True") && !o.isSuspended():
		o.set(healthscope.Pending, healthscope.ReasonReconciling, reconciling.detail())
		return ruleConditions
	case decisive.exists():
		o.judgeByCondition(decisive)
		return ruleConditions
	case notReady.is("True"):
		o.set(healthscope.Pending, healthscope.ReasonReadyFalse, notReady.sentence())
		return ruleConditions
	case stale.exists():
		o.judgeByCondition(stale)
		return ruleConditions
	case phase.class != phaseNone:
		phase.judge(o)
		return rulePhase
	case o.isSuspended():
		o.requireConditions()
		o.State = healthscope.Ready
		return ruleConditions
	}
	return ""
}

// failure looks for a condition that means a failure. A condition of an older generation does not decide; failure returns it as stale, for the
// caller to use when nothing else decides.
func (o *object) failure() (failed bool, stale condition) {
	for _, sign := range slices.Concat(failureConditions, failureConditionsByKind[o.groupKind()]) {
		c := findCondition(o.conditions, sign.kind)
		switch {
		case !c.is(sign.status):
		case c.reason == reconcilePaused:
			o.Suspended = true
		case o.outdated(c):
			stale = c
		default:
			o.set(healthscope.Failed, sign.reason, cmp.Or(c.detail(), c.sentence()))
			return true, condition{}
		}
	}
	return false, stale
}

// readinessCondition returns the condition that reports whether the object is ready.
func (o *object) readinessCondition() condition {
	if c := findCondition(o.conditions, readinessConditions...); c.exists() {
		return c
	}
	return findCondition(o.conditions, readinessConditionByKind[o.groupKind()])
}

// judgeByCondition judges an object by a condition that is True when all is well, and reports whether it is Ready.
func (o *object) judgeByCondition(c condition) bool {
	outdated := o.outdated(c) && !o.isSuspended()
	isReady := c.conditionType == "Ready"
	switch {
	case outdated:
		o.setStaleCondition(c)
	case c.is("True"):
		o.State = healthscope.Ready
		return true
	case isReady && c.is("False"):
		o.set(healthscope.Pending, healthscope.ReasonReadyFalse, c.detail())
	case isReady && !c.hasInvalidStatus():
		o.set(healthscope.Pending, healthscope.ReasonReadyUnknown, c.detail())
	case isReady:
		o.set(healthscope.Pending, healthscope.ReasonReadyUnknown, c.sentence())
		o.Warning = true
	case c.conditionType == "Available" && c.is("False"):
		o.set(healthscope.Pending, healthscope.ReasonAvailableFalse, c.sentence())
	case c.is("False"):
		o.set(healthscope.Pending, healthscope.ReasonConditionFalse, c.sentence())
	default:
		o.set(healthscope.Pending, healthscope.ReasonConditionUnknown, c.sentence())
		o.Warning = c.hasInvalidStatus()
	}
	return false
}

// setStaleCondition sets the result of an object whose condition is of an older generation.
func (o *object) setStaleCondition(c condition) {
	o.set(healthscope.Pending, healthscope.ReasonStaleCondition, "condition "+c.conditionType+" is of an older generation")
}

// isSuspended reports whether the user has suspended the object: Flux and Argo Workflows have spec.suspend, Cluster API and Argo Rollouts have
// spec.paused, and Strimzi has a condition. The controller of a suspended object does not reconcile it, so its status may belong to an older
// generation.
func (o *object) isSuspended() bool {
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

// judgeByExistence judges an object of whose status no word is known, and returns the name of the rule. Many kinds
// have no status because nothing is to be said of them; others have none yet,
// for which healthscope.Judge gives them time from their creation.
func (o *object) judgeByExistence() string {
	o.requireConditions()
	switch {
	case builtIn(o.Group):
		o.set(healthscope.Ready, healthscope.ReasonExists, "")
		return ruleKstatus
	case len(o.status) == 0:
		o.set(healthscope.Ready, healthscope.ReasonNoStatus, "the object has no status")
		o.Since = o.created()
	case o.isProviderConfig():
		o.set(healthscope.Ready, healthscope.ReasonExists, "")
	case len(o.status) == 1 && o.status["conditions"] != nil && len(o.conditions) == 0:
		o.set(healthscope.Unknown, healthscope.ReasonNoStatus, "the status says nothing yet")
		o.Since = o.created()
	default:
		o.set(healthscope.Unknown, healthscope.ReasonNoRule,
			"no rule can tell the health of "+strings.TrimSuffix(o.Kind+"."+o.Group, ".")+" from its status")
	}
	return ruleNone
}
