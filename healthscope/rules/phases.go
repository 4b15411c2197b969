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

// phase is a word for the phase or the health of an object.
type phase struct {
	class phaseClass
	// field is the field of the status that holds word, and detail what the status says about it.
	field, word, detail string
}

// readPhase reads the phase of an object: the word with the highest class among the fields in phaseFields. It ignores values that are not
// strings, because some kinds use these fields for other things.
func readPhase(o *object) phase {
	var found phase
	for _, field := range phaseFields {
		word := stringValue(o.status[field])
		if class := phases[normalize(word)]; class > found.class {
			found = phase{class: class, field: field, word: word, detail: join(": ", stringValue(o.status["reason"]), stringValue(o.status["message"]))}
		}
	}
	return found
}

// sentence describes the phase.
func (p phase) sentence() string { return join(": ", "status."+p.field+" is "+p.word, p.detail) }

// judge sets the result that the phase implies.
func (p phase) judge(o *object) {
	switch p.class {
	case phaseReady:
		o.set(healthscope.Ready, "", "")
		if runToCompletionKinds[o.groupKind()] && strings.EqualFold(p.word, "running") {
			o.set(healthscope.Pending, healthscope.ReasonRunning, p.sentence())
			o.Serving = true // It may run as long as it takes, as a Job may.
		}
	case phaseFailed:
		o.set(healthscope.Failed, healthscope.ReasonPhaseFailed, p.sentence())
	case phasePending:
		o.set(healthscope.Pending, healthscope.ReasonInProgress, p.sentence())
	case phaseWarning:
		o.set(healthscope.Pending, healthscope.ReasonNotHealthy, p.sentence())
		o.Serving = true
	case phaseSuspended:
		o.suspend(p.sentence())
	case phaseNone:
	}
}

// judgeAlone sets the result of an object that reports its health in this phase only.
func (p phase) judgeAlone(o *object) {
	switch {
	case p.word == "":
		o.notObserved()
	case p.class == phaseNone:
		o.unknownPhase(p.word)
	default:
		p.judge(o)
	}
}
