package rules

import "github.com/healthscope/healthscope/healthscope"

// judgeDefinition is the rule for CustomResourceDefinitions: Ready as soon as the API serves the kind.
func judgeDefinition(o *object, result *healthscope.Result) {
	accepted, established := o.condition("NamesAccepted"), o.condition("Established")
	switch {
	case o.condition("Terminating").is("True"):
		result.State, result.Reason = healthscope.Terminating, healthscope.ReasonDeleting
		result.Message = join(": ", "the kind is being deleted", o.condition("Terminating").message)
	case accepted.is("False"):
		result.State, result.Reason, result.Message = healthscope.Failed, healthscope.ReasonNamesNotAccepted, accepted.detail()
	case established.is("True"):
		result.State = healthscope.Ready
	case !established.exists():
		pendingNotObserved(result)
	default:
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonConditionFalse
		result.Message = established.sentence()
	}
}

// judgeAPIService is the rule for APIServices.
func judgeAPIService(o *object, result *healthscope.Result) {
	if available := o.condition("Available"); available.exists() {
		o.judgeByCondition(result, available)
	} else {
		pendingNotObserved(result)
	}
}

// namespaceDeletionBlockers are the condition types of a Namespace that report what blocks its deletion, the most severe first.
var namespaceDeletionBlockers = []string{
	"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
	"NamespaceFinalizersRemaining", "NamespaceContentRemaining",
}

// judgeNamespace is the rule for Namespaces: a Namespace that exists is Ready.
func judgeNamespace(o *object, result *healthscope.Result) {
	phase := o.text(o.status, "status.phase")
	result.State, result.Reason = healthscope.Ready, healthscope.ReasonExists
	if phase != "Terminating" && !o.deleting {
		return
	}
	for _, kind := range namespaceDeletionBlockers {
		if c := o.condition(kind); c.is("True") {
			o.deletionBlocker = join(": ", kind, c.message)
			break
		}
	}
	o.override(result, healthscope.Terminating, healthscope.ReasonDeleting, o.deletion())
}
