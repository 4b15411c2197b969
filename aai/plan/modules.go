package plan

import (
	"maps"
	"slices"

	"github.com/healthscope/healthscope/aai"
)

// StatusChange is a change of a module's operational-status.
type StatusChange struct {
	// Module is the module.
	Module aai.VFModule
	// From is the status that A&AI has; empty for none.
	From aai.OperationalStatus
	// To is the status that it is to have.
	To aai.OperationalStatus
	// ResourceVersion is the version of the module that is known; empty when none is: read the module first.
	ResourceVersion string
}

// Modules returns, sorted by module, what gives the modules that A&AI has the desired status, and which it does not have.
// Modules are never created, and nothing is done about those that are not desired.
func Modules(desired map[aai.VFModule]aai.OperationalStatus, current map[aai.VFModule]aai.VFModuleStatus) (changes []StatusChange, missing []aai.VFModule) {
	for _, m := range slices.SortedFunc(maps.Keys(desired), aai.VFModule.Compare) {
		have, exists := current[m]
		switch {
		case !exists:
			missing = append(missing, m)
		case have.Status != desired[m]:
			changes = append(changes, StatusChange{Module: m, From: have.Status, To: desired[m], ResourceVersion: have.ResourceVersion})
		}
	}
	return changes, missing
}
