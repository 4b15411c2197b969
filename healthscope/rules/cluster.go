package rules

import "github.com/healthscope/healthscope/healthscope"

// judgeDefinition is the rule for CustomResourceDefinitions: Ready as soon as the API serves the kind.
func judgeDefinition(o *object, verdict *healthscope.Result) {
	accepted, established := o.condition("NamesAccepted"), o.condition("Established")
	switch {
	case o.condition("Terminating").is("True"):
		verdict.State, verdict.Reason = healthscope.Terminating, healthscope.ReasonDeleting
		verdict.Message = join(": ", "the kind is being deleted", o.condition("Terminating").message)
	case accepted.is("False"):
		verdict.State, verdict.Reason, verdict.Message = healthscope.Failed, healthscope.ReasonNamesNotAccepted, accepted.detail()
	case established.is("True"):
		verdict.State = healthscope.Ready
	case !established.exists():
		pendingNotObserved(verdict)
	default:
		verdict.State, verdict.Reason, verdict.Progressing = healthscope.Pending, healthscope.ReasonConditionFalse, true
		verdict.Message = established.sentence()
	}
}

// judgeAPIService is the rule for APIServices.
func judgeAPIService(o *object, verdict *healthscope.Result) {
	if available := o.condition("Available"); available.exists() {
		o.judgeByCondition(verdict, available)
	} else {
		pendingNotObserved(verdict)
	}
}

// namespaceObstacles are the conditions by which a namespace says what holds up its deletion, the gravest first.
var namespaceObstacles = []string{
	"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
	"NamespaceFinalizersRemaining", "NamespaceContentRemaining",
}

// judgeNamespace is the rule for Namespaces: one that exists is Ready.
func judgeNamespace(o *object, verdict *healthscope.Result) {
	phase := o.text(o.status, "status.phase")
	verdict.State, verdict.Reason = healthscope.Ready, healthscope.ReasonExists
	if phase != "Terminating" && !o.deleting {
		return
	}
	for _, kind := range namespaceObstacles {
		if c := o.condition(kind); c.is("True") {
			o.obstacle = join(": ", kind, c.message)
			break
		}
	}
	o.override(verdict, healthscope.Terminating, healthscope.ReasonDeleting, o.deletion())
}
