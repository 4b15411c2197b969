package client

import (
	"context"
	"net/http"
	"slices"

	"github.com/healthscope/healthscope/aai"
)

// ListVFModules returns what a VNF's modules are said to be, by vf-module-id. A VNF that does not exist has none.
//
// Relationships are left out: a module has one to each of its k8s-resources.
func (c *Client) ListVFModules(ctx context.Context, vnfID string) (map[string]aai.VFModuleStatus, error) {
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
	modules := make(map[string]aai.VFModuleStatus, len(list.Modules))
	for _, m := range list.Modules {
		modules[m.ID] = aai.VFModuleStatus{Status: m.Status, ResourceVersion: m.ResourceVersion}
	}
	return modules, nil
}

// SetOperationalStatus changes the operational-status of a module, and nothing else of it. The resource-version is the one that was read; A&AI does not check it in a PATCH, other servers may. When the module does not exist, or is known to have changed, the error is Conflict.
func (c *Client) SetOperationalStatus(ctx context.Context, m aai.VFModule, status aai.OperationalStatus, resourceVersion string) error {
	req := request{op: aai.OpStatus, method: http.MethodPatch, path: m.Path(), contentType: contentTypeMergePatch}
	return c.write(ctx, req, struct {
		Status          aai.OperationalStatus `json:"operational-status"`
		ResourceVersion string                `json:"resource-version"`
	}{status, resourceVersion})
}
