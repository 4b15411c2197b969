package rsync

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// lastApplied is the field that client-side appliers own, such as kubectl and EMCO's rsync.
var lastApplied = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", corev1.LastAppliedConfigAnnotation))

// apply applies an object with server-side apply, and stores the result, or its metadata, in into. While the object is being
// deleted, it fails with an error that is retried, because the object would be gone afterwards.
func (c *cluster) apply(ctx context.Context, m *manifest, into client.Object) error {
	err := c.applyResolvingConflicts(ctx, m, into)
	if err == nil && into.GetDeletionTimestamp() != nil {
		return errors.Errorf("%s %q is being deleted, and is applied when it is gone", m.Kind, m.Name)
	}
	return err
}

// applyResolvingConflicts applies an object, even while it is being deleted. A field that another manager owns is a conflict, which
// is a refusal, with three exceptions. Replicas that were set through the scale subresource, as by autoscalers, are left as they
// are. Fields that were applied client-side are taken over, so that fields that the manifest no longer has are removed. With
// correctDrift, fields that others have set are overwritten. Each exception costs requests only where it applies.
func (c *cluster) applyResolvingConflicts(ctx context.Context, m *manifest, into client.Object) error {
	m, err := c.applyRespectingScale(ctx, m, into)
	switch {
	case apierrors.IsConflict(err):
		have := m.metadata()
		if failed := c.client.Get(ctx, m.ObjectKey, have); failed != nil {
			return failed
		}
		taken, failed := c.takeOver(ctx, m, have)
		switch {
		case failed != nil:
			return failed
		case !taken && m.mayForce(have):
			return c.applyOnce(ctx, m, into, client.ForceOwnership)
		case !taken:
			return err
		}
	case err != nil:
		return err
	default:
		if taken, failed := c.takeOver(ctx, m, into); failed != nil || !taken {
			return failed
		}
	}
	return c.applyOnce(ctx, m, into)
}

// dryRunApply does a dry run of apply. have is the current object.
func (c *cluster) dryRunApply(ctx context.Context, m *manifest, have, into *unstructured.Unstructured) error {
	m, err := c.applyRespectingScale(ctx, m, into, client.DryRunAll)
	if !apierrors.IsConflict(err) || len(clientSideManagers(have)) == 0 && !m.mayForce(have) {
		return err
	}
	return c.applyOnce(ctx, m, into, client.DryRunAll, client.ForceOwnership)
}

// applyRespectingScale applies an object, without its replicas if they were set through the scale subresource, and returns the
// manifest that was applied.
func (c *cluster) applyRespectingScale(ctx context.Context, m *manifest, into client.Object, options ...client.PatchOption) (*manifest, error) {
	err := c.applyOnce(ctx, m, into, options...)
	if !isScaled(err) {
		return m, err
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(m.data); err != nil {
		return m, err
	}
	unstructured.RemoveNestedField(o.Object, "spec", "replicas")
	withoutReplicas := *m
	if withoutReplicas.data, err = o.MarshalJSON(); err != nil {
		return m, err
	}
	return &withoutReplicas, c.applyOnce(ctx, &withoutReplicas, into, options...)
}

// mayForce reports whether fields of an existing object may be overwritten: the manifest has correctDrift, and the object carries
// the label of the app.
func (m *manifest) mayForce(have client.Object) bool {
	return m.correctDrift && have.GetLabels()[deploymentLabel] == m.app
}

// applyOnce sends one request.
func (c *cluster) applyOnce(ctx context.Context, m *manifest, into client.Object, options ...client.PatchOption) error {
	err := c.client.Patch(ctx, into, client.RawPatch(types.ApplyPatchType, m.data), append(options, fieldManager)...)
	return redact(m.GroupKind(), m.Name, err)
}

// isScaled reports whether an error is a conflict about replicas that were set through the scale subresource.
func isScaled(err error) bool {
	status := (*apierrors.StatusError)(nil)
	if !errors.As(err, &status) || status.ErrStatus.Details == nil {
		return false
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict && cause.Field == ".spec.replicas" && strings.Contains(cause.Message, `with subresource "scale"`) {
			return true
		}
	}
	return false
}

// takeOver makes rsync the owner of the fields that were applied client-side, and reports whether there were any.
func (c *cluster) takeOver(ctx context.Context, m *manifest, have client.Object) (bool, error) {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(have, clientSideManagers(have), string(fieldManager))
	if err != nil || patch == nil {
		return false, errors.Wrapf(err, "cannot take over %q", m.Name)
	}
	return true, retryableConflict(c.client.Patch(ctx, m.metadata(), client.RawPatch(types.JSONPatchType, patch), fieldManager))
}

// clientSideManagers returns the field managers that applied an object client-side.
func clientSideManagers(have client.Object) sets.Set[string] {
	managers := sets.New[string]()
	if have.GetAnnotations()[corev1.LastAppliedConfigAnnotation] == "" {
		return managers // Decoding the fields of all managers is expensive.
	}
	for _, entry := range csaupgrade.FindFieldsOwners(have.GetManagedFields(), metav1.ManagedFieldsOperationUpdate, lastApplied) {
		managers.Insert(entry.Manager)
	}
	return managers
}

// retryableConflict turns a conflict into an error that is retried: the write was based on an outdated read.
func retryableConflict(err error) error {
	if apierrors.IsConflict(err) {
		return errors.Errorf("the object was changed meanwhile: %s", err.Error())
	}
	return err
}

// redact removes the texts that may quote values from an error about a Secret. It keeps field names, conflicts, not-found errors
// and RBAC denials, and removes every other text of the API server or a webhook.
func redact(kind schema.GroupKind, name string, err error) error {
	status := (*apierrors.StatusError)(nil)
	if !errors.As(err, &status) || kind != (schema.GroupKind{Kind: "Secret"}) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || strings.Contains(status.ErrStatus.Message, ` is forbidden: User "`) {
		return err
	}
	redacted := status.ErrStatus
	if isMalformed(err) {
		return refusalError{errors.Errorf("Secret %q cannot be read by the API server; what it says of it is not shown", name)}
	}
	redacted.Message = fmt.Sprintf("Secret %q is refused: %s; what the API server says of it is not shown", name, cmp.Or(redacted.Reason, metav1.StatusReasonInternalError))
	if redacted.Details != nil {
		for _, cause := range redacted.Details.Causes {
			redacted.Message += "; " + cause.Field + ": " + string(cause.Type)
		}
	}
	redacted.Details = nil
	return &apierrors.StatusError{ErrStatus: redacted}
}

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
