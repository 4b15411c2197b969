package rules

import "github.com/healthscope/healthscope/healthscope"

// judgeDefinition is the rule for CustomResourceDefinitions: Ready as soon as the API serves the kind.
func judgeDefinition(o *object) {
	accepted, established := o.condition("NamesAccepted"), o.condition("Established")
	switch {
	case o.condition("Terminating").is("True"):
		o.set(healthscope.Terminating, healthscope.ReasonDeleting, join(": ", "the kind is being deleted", o.condition("Terminating").message))
	case accepted.is("False"):
		o.set(healthscope.Failed, healthscope.ReasonNamesNotAccepted, accepted.detail())
	case established.is("True"):
		o.State = healthscope.Ready
	case !established.exists():
		o.notObserved()
	default:
		o.set(healthscope.Pending, healthscope.ReasonConditionFalse, established.sentence())
	}
}

// judgeAPIService is the rule for APIServices.
func judgeAPIService(o *object) {
	if available := o.condition("Available"); available.exists() {
		o.judgeByCondition(available)
	} else {
		o.notObserved()
	}
}

// namespaceDeletionBlockers are the condition types of a Namespace that report what blocks its deletion, the most severe first.
var namespaceDeletionBlockers = []string{
	"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
	"NamespaceFinalizersRemaining", "NamespaceContentRemaining",
}

// judgeNamespace is the rule for Namespaces: a Namespace that exists is Ready.
func judgeNamespace(o *object) {
	phase := o.text(o.status, "status.phase")
	o.State, o.Reason = healthscope.Ready, healthscope.ReasonExists
	if phase != "Terminating" && !o.deleting {
		return
	}
	for _, kind := range namespaceDeletionBlockers {
		if c := o.condition(kind); c.is("True") {
			o.deletionBlocker = join(": ", kind, c.message)
			break
		}
	}
	o.override(healthscope.Terminating, healthscope.ReasonDeleting, o.deletion())
}
