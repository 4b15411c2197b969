package enrol

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// Change says in a line what was done to an object, in kubectl's terms, such as "member: serviceaccount/x -n y created".
type Change string

// target is one of the two clusters.
type target struct {
	where  string
	client client.Client
	report func(Change)
	// dryRun means that nothing is deleted.
	dryRun bool
}

// apply creates or updates an object, and returns the result. It uses an existing Namespace or ServiceAccount as it is. An
// existing object of another kind that this package has not created is an error: it grants rights or is a Secret.
func (t target) apply(ctx context.Context, desired client.Object) (client.Object, error) {
	existing, ok := desired.DeepCopyObject().(client.Object)
	if !ok {
		return nil, errors.Errorf("cannot copy %s", t.name(desired))
	}
	err := t.client.Get(ctx, client.ObjectKeyFromObject(desired), existing)
	if apierrors.IsNotFound(err) {
		if err := t.client.Create(ctx, desired); err != nil {
			return nil, errors.Wrapf(err, "%s: cannot create %s", t.where, t.name(desired))
		}
		t.reportChange(desired, "created")
		return desired, nil
	}
	if err != nil {
		return nil, errors.Wrapf(err, "%s: cannot read %s", t.where, t.name(desired))
	}
	before := existing.DeepCopyObject()
	if err := update(existing, desired); err != nil {
		return nil, errors.Wrapf(err, "%s: cannot use %s", t.where, t.name(desired))
	}
	if equality.Semantic.DeepEqual(before, existing) {
		t.reportChange(existing, "unchanged")
		return existing, nil
	}
	if err := t.client.Update(ctx, existing); err != nil {
		return nil, errors.Wrapf(err, "%s: cannot change %s", t.where, t.name(desired))
	}
	t.reportChange(existing, "configured")
	return existing, nil
}

// update changes an existing object to the desired one. It keeps what others own: annotations, labels and aggregated rules.
func update(existing, desired client.Object) error {
	switch w := desired.(type) {
	case *corev1.Namespace, *corev1.ServiceAccount:
		return nil
	case *rbacv1.Role:
		if h, ok := existing.(*rbacv1.Role); ok {
			h.Rules = w.Rules
		}
	case *rbacv1.ClusterRole:
		if h, ok := existing.(*rbacv1.ClusterRole); ok {
			h.AggregationRule = w.AggregationRule
			if w.AggregationRule == nil {
				h.Rules = w.Rules
			}
		}
	case *rbacv1.RoleBinding:
		if h, ok := existing.(*rbacv1.RoleBinding); ok {
			h.RoleRef, h.Subjects = w.RoleRef, w.Subjects
		}
	case *rbacv1.ClusterRoleBinding:
		if h, ok := existing.(*rbacv1.ClusterRoleBinding); ok {
			h.RoleRef, h.Subjects = w.RoleRef, w.Subjects
		}
	case *corev1.Secret:
		if h, ok := existing.(*corev1.Secret); ok {
			h.Data = w.Data
			delete(h.Annotations, corev1alpha2.AnnotationNamespaces) // Without it the hub may read all namespaces.
		}
	}
	if existing.GetLabels()[LabelManagedBy] != ManagedBy {
		return errors.Errorf("it was not created by this command: delete it, or give it the label %s=%s", LabelManagedBy, ManagedBy)
	}
	existing.SetLabels(merged(existing.GetLabels(), desired.GetLabels()))
	existing.SetAnnotations(merged(existing.GetAnnotations(), desired.GetAnnotations()))
	return nil
}

// merged returns the entries of both maps. Those of more take precedence.
func merged(base, more map[string]string) map[string]string {
	if len(more) == 0 {
		return base
	}
	all := map[string]string{}
	maps.Copy(all, base)
	maps.Copy(all, more)
	return all
}

// prune deletes the objects that this package has created in the member, except the namespace and the objects whose names are in keep.
func (t target) prune(ctx context.Context, keep map[string]bool) error {
	for _, list := range memberLists() {
		if err := t.client.List(ctx, list, client.MatchingLabels{LabelManagedBy: ManagedBy}); err != nil {
			return errors.Wrapf(err, "%s: cannot find what is to be deleted", t.where)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			o, ok := item.(client.Object)
			if !ok || !slices.Contains(memberNames, o.GetName()) || keep[t.name(o)] {
				return nil
			}
			return t.delete(ctx, o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// delete deletes an object unless it was recreated since it was read.
func (t target) delete(ctx context.Context, o client.Object) error {
	if t.dryRun {
		t.reportChange(o, "to be deleted")
		return nil
	}
	uid := o.GetUID()
	err := t.client.Delete(ctx, o, client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrapf(err, "%s: cannot delete %s", t.where, t.name(o))
	}
	t.reportChange(o, "deleted")
	return nil
}

func (t target) reportChange(o client.Object, action string) {
	t.report(Change(t.where + ": " + t.name(o) + " " + action))
}

// name returns the name of an object as kubectl prints it.
func (t target) name(o client.Object) string {
	kind := "object"
	if gvk, err := apiutil.GVKForObject(o, t.client.Scheme()); err == nil {
		kind = strings.ToLower(gvk.GroupKind().String())
	}
	name := kind + "/" + o.GetName()
	if o.GetNamespace() != "" {
		name += " -n " + o.GetNamespace()
	}
	return name
}
