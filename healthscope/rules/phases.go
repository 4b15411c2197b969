package rules

import (
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// phaseClass is the meaning of a word for a phase or for health.
type phaseClass int

// The classes, in the order of precedence, the lowest first.
const (
	phaseNone phaseClass = iota
	phaseReady
	phaseSuspended
	phaseWarning
	phasePending
	phaseFailed
)

// phases maps the known words to their class; case, spaces, hyphens and underscores do not matter. All other words are ignored: controllers use
// words such as "Failing over" or "Waiting for Approval" with many meanings.
var phases = map[string]phaseClass{
	"failed": phaseFailed, "failure": phaseFailed, "error": phaseFailed, "errored": phaseFailed, "degraded": phaseFailed,
	"inconclusive": phaseFailed, "unhealthy": phaseFailed, "critical": phaseFailed, "red": phaseFailed, "healtherr": phaseFailed,
	"faulted": phaseFailed, "failing": phaseFailed, "unavailable": phaseFailed, "unreachable": phaseFailed, "lost": phaseFailed,
	"broken": phaseFailed, "down": phaseFailed, "offline": phaseFailed, "crashloopbackoff": phaseFailed,

	"yellow": phaseWarning, "warning": phaseWarning, "healthwarn": phaseWarning,

	"pending": phasePending, "progressing": phasePending, "inprogress": phasePending, "processing": phasePending, "creating": phasePending,
	"provisioning": phasePending, "initializing": phasePending, "initialising": phasePending, "installing": phasePending, "deploying": phasePending,
	"updating": phasePending, "upgrading": phasePending, "starting": phasePending, "scaling": phasePending, "scheduling": phasePending,
	"scheduled": phasePending, "waiting": phasePending, "reconciling": phasePending, "restarting": phasePending, "queued": phasePending,
	"deleting": phasePending, "terminating": phasePending, "scalingup": phasePending, "scalingdown": phasePending, "notready": phasePending,
	"settingupprimary": phasePending, "unknown": phasePending,

	"suspended": phaseSuspended, "paused": phaseSuspended,

	"ready": phaseReady, "running": phaseReady, "active": phaseReady, "available": phaseReady, "healthy": phaseReady, "bound": phaseReady,
	"succeeded": phaseReady, "success": phaseReady, "successful": phaseReady, "complete": phaseReady, "completed": phaseReady, "provisioned": phaseReady,
	"deployed": phaseReady, "established": phaseReady, "clusterinhealthystate": phaseReady,
	"green": phaseReady, "healthok": phaseReady,
}

// separators removes the separators from a word before it is looked up.
var separators = strings.NewReplacer(" ", "", "-", "", "_", "")

// phaseFields are the fields of the status that hold the phase of an object, or a word for its health. Their values may have any type.
var phaseFields = [...]string{"phase", "state", "health", "healthStatus", "status"}

// normalize returns the form of a word that phases has as a key.
func normalize(text string) string { return strings.ToLower(separators.Replace(text)) }

// phase is the word with the highest class among the fields in phaseFields.
type phase struct {
	class       phaseClass
	field, word string
}

// readPhase reads the phase of an object. It ignores values that are not strings, because some kinds use these fields for other things.
func readPhase(o *object) phase {
	var found phase
	for _, field := range phaseFields {
		text := stringValue(o.status[field])
		if text == "" {
			continue
		}
		if class := phases[normalize(text)]; class > found.class {
			found = phase{class: class, field: field, word: text}
		}
	}
	return found
}

// judge sets the result that the phase implies.
func (p phase) judge(o *object, result *healthscope.Result) {
	result.Message = join(": ", "status."+p.field+" is "+p.word, stringValue(o.status["reason"]), stringValue(o.status["message"]))
	switch p.class {
	case phaseReady:
		if runToCompletionKinds[groupKind{result.Group, result.Kind}] && strings.EqualFold(p.word, "running") {
			result.State, result.Reason = healthscope.Pending, healthscope.ReasonRunning
			result.Serving = true // It may run as long as it takes, as a Job may.
			return
		}
		result.State, result.Message = healthscope.Ready, ""
	case phaseFailed:
		result.State, result.Reason = healthscope.Failed, healthscope.ReasonPhaseFailed
	case phasePending:
		result.State, result.Reason = healthscope.Pending, healthscope.ReasonInProgress
	case phaseWarning:
		result.State, result.Reason, result.Serving = healthscope.Pending, healthscope.ReasonNotHealthy, true
	case phaseSuspended:
		result.State, result.Reason, result.Suspended = healthscope.Ready, healthscope.ReasonSuspended, true
	case phaseNone:
		result.State, result.Message = healthscope.Ready, ""
	}
}
