package rsync

import (
	"context"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// approve adds the condition that a context has for a CertificateSigningRequest, given as the API server holds it.
func (c cluster) approve(ctx context.Context, o *unstructured.Unstructured, approval string) error {
	var condition map[string]any
	if err := json.Unmarshal([]byte(approval), &condition); err != nil {
		return refusalError{errors.Wrapf(err, "cannot read the approval of %q", o.GetName())}
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
	return changedMeanwhile(c.client.SubResource("approval").Update(ctx, o, fieldManager))
}
