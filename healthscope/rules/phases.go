package rules

import (
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// phaseClass is what a word for a phase or for health says.
type phaseClass int

// The classes, the one that counts least first.
const (
	phaseNone phaseClass = iota
	phaseReady
	phaseSuspended
	phaseWarning
	phasePending
	phaseFailed
)

// phases are the words that are understood, without regard to case, spaces, hyphens and underscores. A word that is
// not among them says nothing: controllers have words like "Failing over" or "Waiting for Approval" for all sorts of things.
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

// separators are left out of words before they are looked up.
var separators = strings.NewReplacer(" ", "", "-", "", "_", "")

// phaseFields are the fields of status that hold an object's phase, or its word for health. They may be of any type.
var phaseFields = [...]string{"phase", "state", "health", "healthStatus", "status"}

// normalize returns a word as it is looked up.
func normalize(text string) string { return strings.ToLower(separators.Replace(text)) }

// phase is the word that says most of those in phaseFields.
type phase struct {
	class       phaseClass
	field, word string
}

// readPhase reads an object's phase. It may be in a field of any name and type, so what is no string is none.
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

// judge gives the result that a phase leads to.
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
