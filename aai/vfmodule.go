package aai

import (
	"cmp"
	"strings"
)

// VFModule identifies a module of a VNF in A&AI.
type VFModule struct {
	// GenericVNFID is the vnf-id of the VNF.
	GenericVNFID string
	// ID is the vf-module-id.
	ID string
}

// Path returns the path of the module below /aai/vN, percent-encoded as A&AI requires.
func (m VFModule) Path() string {
	return VFModulesPath(m.GenericVNFID) + path("vf-module", m.ID)
}

// Compare sorts modules by VNF and id.
func (m VFModule) Compare(o VFModule) int {
	return cmp.Or(strings.Compare(m.GenericVNFID, o.GenericVNFID), strings.Compare(m.ID, o.ID))
}

// String returns vnf-id/vf-module-id, for messages.
func (m VFModule) String() string { return m.GenericVNFID + "/" + m.ID }

// VFModulesPath returns the path of the container of a VNF's modules, in the same form as VFModule.Path.
func VFModulesPath(vnfID string) string { return vnfPath(vnfID) + path("vf-modules") }

// OperationalStatus is a value of the property operational-status. This project uses the values that the A&AI schema lists for generic-vnf; A&AI accepts any text.
type OperationalStatus string

// The values of OperationalStatus that this project writes.
const (
	// InServicePath means that the module works.
	InServicePath OperationalStatus = "in-service-path"
	// OutOfServicePath means that the module does not work.
	OutOfServicePath OperationalStatus = "out-of-service-path"
)

// VFModuleStatus is the part of a module in A&AI that this project uses.
type VFModuleStatus struct {
	// Status is the operational-status; empty when the module has none.
	Status OperationalStatus
	// ResourceVersion is the version that was read; empty when it is no longer known.
	ResourceVersion string
}
