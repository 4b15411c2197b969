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
	// To is the desired status.
	To aai.OperationalStatus
	// ResourceVersion is the known version of the module. If it is empty, the caller must read the module first.
	ResourceVersion string
}

// Modules returns the changes that give existing modules their desired status, and the desired modules that A&AI does not
// have, both sorted by module. It never creates a module, and ignores modules that are not desired.
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
