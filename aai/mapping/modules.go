package mapping

import (
	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/healthscope"
)

// OperationalStatus returns the operational-status of a module that an app implements. It is empty when the status is not
// known: no member of the app is known to be out of service, and not all members are known to be in service. The A&AI schema
// has only these two values.
//
// A member that is Pending and serves is in service, because a rolling update is not an outage.
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

// Worse returns the worse of the statuses of two apps with the same module: out of service is the worst, then unknown (empty), then in service.
func Worse(a, b aai.OperationalStatus) aai.OperationalStatus {
	for _, status := range []aai.OperationalStatus{aai.OutOfServicePath, ""} {
		if a == status || b == status {
			return status
		}
	}
	return aai.InServicePath
}

// Module returns the module that an app of a scope in a namespace names, and false when it names none, or when the namespace may not link to its VNF.
func Module(namespace, genericVNFID, vfModuleID string, o Options) (aai.VFModule, bool) {
	if genericVNFID == "" || vfModuleID == "" || !o.mayLink(namespace, genericVNFID) {
		return aai.VFModule{}, false
	}
	return aai.VFModule{GenericVNFID: genericVNFID, ID: vfModuleID}, true
}
