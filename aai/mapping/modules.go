package mapping

import (
	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/healthscope"
)

// OperationalStatus returns the operational-status of a module that does what an app's members do; empty when that cannot
// be said: none of them is known to be out of service, and not all are known to be in it. The words come from the A&AI
// schema, which has no more of them.
//
// A member that is Pending and serves is in service, as a rolling update is no outage.
func OperationalStatus(app healthscope.Summary) aai.OperationalStatus {
	switch {
	case app.Healthy+app.Unknown < app.Total:
		return aai.OutOfServicePath
	case app.Unknown > 0, app.Total == 0:
		return ""
	default:
		return aai.InServicePath
	}
}

// Worse returns the worse of what two apps make of the same module: out of service before what cannot be said, and that before in service.
func Worse(a, b aai.OperationalStatus) aai.OperationalStatus {
	for _, status := range []aai.OperationalStatus{aai.OutOfServicePath, ""} {
		if a == status || b == status {
			return status
		}
	}
	return aai.InServicePath
}

// Module returns the module that an app of a scope in a namespace names, and false when it names none, or one of a VNF that the namespace may not link to.
func Module(namespace, genericVNFID, vfModuleID string, o Options) (aai.VFModule, bool) {
	if genericVNFID == "" || vfModuleID == "" || !o.mayLink(namespace, genericVNFID) {
		return aai.VFModule{}, false
	}
	return aai.VFModule{GenericVNFID: genericVNFID, ID: vfModuleID}, true
}
