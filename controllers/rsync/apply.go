package rsync

import (
	"cmp"
	"context"
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

// lastApplied is owned by who applied an object on the client's side: kubectl, and EMCO's rsync.
var lastApplied = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", corev1.LastAppliedConfigAnnotation))

// apply applies an object on the server's side; into becomes what the API server holds then, or its metadata. One that is being deleted
// would be gone afterwards: that fails as without an answer until it is gone.
func (c *cluster) apply(ctx context.Context, m *manifest, into client.Object) error {
	err := c.applyAnyway(ctx, m, into)
	if err == nil && into.GetDeletionTimestamp() != nil {
		return errors.Errorf("%s %q is being deleted, and is applied when it is gone", m.Kind, m.Name)
	}
	return err
}

// applyAnyway applies an object, whether or not it is being deleted. A field that
// another manager owns is a conflict, which is a refusal, with three exceptions. Replicas that were set through the subresource
// scale, as autoscalers do, are left alone. What was applied on the client's side is taken over, so that fields which the
// object has no more are removed. Where the context says so, fields that others have set are set back. All cost requests only where
// they apply.
func (c *cluster) applyAnyway(ctx context.Context, m *manifest, into client.Object) error {
	m, err := c.applyUnscaled(ctx, m, into)
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
		case !taken && m.mayCorrect(have):
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

// applyDry does what apply would do with an object that is there as have, without that anything is stored.
func (c *cluster) applyDry(ctx context.Context, m *manifest, have, into *unstructured.Unstructured) error {
	m, err := c.applyUnscaled(ctx, m, into, client.DryRunAll)
	if !apierrors.IsConflict(err) || len(clientSideManagers(have)) == 0 && !m.mayCorrect(have) {
		return err
	}
	return c.applyOnce(ctx, m, into, client.DryRunAll, client.ForceOwnership)
}

// applyUnscaled applies an object, without its replicas where these were set through the subresource scale, and returns what was
// applied.
func (c *cluster) applyUnscaled(ctx context.Context, m *manifest, into client.Object, options ...client.PatchOption) (*manifest, error) {
	err := c.applyOnce(ctx, m, into, options...)
	if !isScaled(err) {
		return m, err
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(m.data); err != nil {
		return m, err
	}
	unstructured.RemoveNestedField(o.Object, "spec", "replicas")
	unscaled, err := newManifest(o)
	if err != nil {
		return m, err
	}
	unscaled.corrects = m.corrects
	m = unscaled
	return m, c.applyOnce(ctx, m, into, options...)
}

// mayCorrect reports whether fields of an object that is there may be set back: the context says so, and the object is of its app.
func (m *manifest) mayCorrect(have client.Object) bool {
	return m.corrects && have.GetLabels()[deploymentLabel] == m.app
}

// applyOnce sends one request.
func (c *cluster) applyOnce(ctx context.Context, m *manifest, into client.Object, options ...client.PatchOption) error {
	err := c.client.Patch(ctx, into, client.RawPatch(types.ApplyPatchType, m.data), append(options, fieldManager)...)
	return redact(m.GroupKind(), m.Name, err)
}

// isScaled reports whether an object was refused because of replicas that were set through the subresource scale.
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

// takeOver makes the fields that were applied on the client's side ours, and reports whether there were any.
func (c *cluster) takeOver(ctx context.Context, m *manifest, have client.Object) (bool, error) {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(have, clientSideManagers(have), string(fieldManager))
	if err != nil || patch == nil {
		return false, errors.Wrapf(err, "cannot take over %q", m.Name)
	}
	return true, changedMeanwhile(c.client.Patch(ctx, m.metadata(), client.RawPatch(types.JSONPatchType, patch), fieldManager))
}

// clientSideManagers returns who applied an object on the client's side.
func clientSideManagers(have client.Object) sets.Set[string] {
	managers := sets.New[string]()
	if have.GetAnnotations()[corev1.LastAppliedConfigAnnotation] == "" {
		return managers // To decode the fields of all managers is expensive.
	}
	for _, entry := range csaupgrade.FindFieldsOwners(have.GetManagedFields(), metav1.ManagedFieldsOperationUpdate, lastApplied) {
		managers.Insert(entry.Manager)
	}
	return managers
}

// changedMeanwhile makes of a conflict an error that is no refusal: what is written is based on what was read.
func changedMeanwhile(err error) error {
	if apierrors.IsConflict(err) {
		return errors.Errorf("the object was changed meanwhile: %s", err.Error())
	}
	return err
}

// redact takes out of an error about a Secret what may quote its values: all that the API server, or a webhook, says, but for
// the names of fields and who may do what.
func redact(kind schema.GroupKind, name string, err error) error {
	status := (*apierrors.StatusError)(nil)
	if !errors.As(err, &status) || kind != (schema.GroupKind{Kind: "Secret"}) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || strings.Contains(status.ErrStatus.Message, ` is forbidden: User "`) {
		return err
	}
	hidden := status.ErrStatus
	if isMalformed(err) {
		return refusalError{errors.Errorf("Secret %q cannot be read by the API server; what it says of it is not shown", name)}
	}
	hidden.Message = fmt.Sprintf("Secret %q is refused: %s; what the API server says of it is not shown", name, cmp.Or(hidden.Reason, metav1.StatusReasonInternalError))
	if hidden.Details != nil {
		for _, cause := range hidden.Details.Causes {
			hidden.Message += "; " + cause.Field + ": " + string(cause.Type)
		}
	}
	hidden.Details = nil
	return &apierrors.StatusError{ErrStatus: hidden}
}
