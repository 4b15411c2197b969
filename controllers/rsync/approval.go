package rsync

import (
	"context"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// approve applies a CertificateSigningRequest, and adds the approval, a condition from the context, unless the object has a
// condition of that type.
func (c *cluster) approve(ctx context.Context, m *manifest, approval string) error {
	var condition map[string]any
	if err := json.Unmarshal([]byte(approval), &condition); err != nil {
		return refusalError{errors.Wrapf(err, "cannot read the approval of %q", m.Name)}
	}
	o := m.object()
	if err := c.apply(ctx, m, o); err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return refusalError{errors.Wrapf(err, "cannot read the conditions of %q", o.GetName())}
	}
	for _, have := range conditions {
		if m, ok := have.(map[string]any); ok && m["type"] == condition["type"] {
			return nil
		}
	}
	if err := unstructured.SetNestedSlice(o.Object, append(conditions, condition), "status", "conditions"); err != nil {
		return refusalError{errors.Wrapf(err, "cannot approve %q", o.GetName())}
	}
	return retryableConflict(c.client.SubResource("approval").Update(ctx, o, fieldManager))
}
