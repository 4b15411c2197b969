package client

import (
	"context"
	"net/http"
	"slices"

	"github.com/healthscope/healthscope/aai"
)

// ListVFModules returns the status of each module of a VNF. It returns none if the VNF does not exist.
//
// It does not read relationships, because a module has one to each of its k8s-resources.
func (c *Client) ListVFModules(ctx context.Context, vnfID string) (map[aai.VFModule]aai.VFModuleStatus, error) {
	type module struct {
		ID              string                `json:"vf-module-id"`
		Status          aai.OperationalStatus `json:"operational-status"`
		ResourceVersion string                `json:"resource-version"`
	}
	req := request{op: aai.OpModules, method: http.MethodGet, path: aai.VFModulesPath(vnfID), parameters: []string{"nodes-only", "true"}}
	var list struct {
		Modules []module `json:"vf-module"`
	}
	_, err := c.read(ctx, req, &list, func() error {
		if list.Modules == nil || slices.ContainsFunc(list.Modules, func(m module) bool { return m.ID == "" || m.ResourceVersion == "" }) {
			return errInvalidModule
		}
		return nil
	})
	if err != nil && !isAbsent(err) {
		return nil, err
	}
	modules := make(map[aai.VFModule]aai.VFModuleStatus, len(list.Modules))
	for _, m := range list.Modules {
		modules[aai.VFModule{GenericVNFID: vnfID, ID: m.ID}] = aai.VFModuleStatus{Status: m.Status, ResourceVersion: m.ResourceVersion}
	}
	return modules, nil
}

// SetOperationalStatus changes only the operational-status of a module. The resource-version is the one that was read. A&AI does not check it in a PATCH, but other servers may. The error is Conflict if the module does not exist, or if the server reports that it has changed.
func (c *Client) SetOperationalStatus(ctx context.Context, m aai.VFModule, status aai.OperationalStatus, resourceVersion string) error {
	return c.write(ctx, request{op: aai.OpStatus, method: http.MethodPatch, path: m.Path(), contentType: "application/merge-patch+json", body: struct {
		Status          aai.OperationalStatus `json:"operational-status"`
		ResourceVersion string                `json:"resource-version"`
	}{status, resourceVersion}})
}
