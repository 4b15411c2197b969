package oam

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// TestConditionThatOthersExtendIsNotWritten checks that a field that another writer adds to the condition does not lead to writes
// by turns.
func TestConditionThatOthersExtendIsNotWritten(t *testing.T) {
	t.Parallel()
	writes := 0
	r := &reconciler{client: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			writes++
			return nil
		},
	}).Build()}
	u := newObject(ApplicationConfigurationKind)
	u.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": ConditionJoined, "status": "True", "reason": reasonJoined, "message": "", "observedGeneration": int64(3),
	}}}
	if err := r.report(t.Context(), u, decision{status: conditionStatusTrue, reason: reasonJoined}); err != nil || writes > 0 {
		t.Errorf("%d writes, %v", writes, err)
	}
	if err := r.report(t.Context(), u, decision{status: conditionStatusTrue, reason: eventScopeNotFound}); err != nil || writes != 1 {
		t.Errorf("%d writes after a change, %v", writes, err)
	}
}

// TestLabelOfAnotherOwnerIsAnError has a Service with a label that another owner has set to another value. To read the Service again does
// not help.
func TestLabelOfAnotherOwnerIsAnError(t *testing.T) {
	t.Parallel()
	const label = corev1alpha2.LabelScopePrefix + "shop"
	r := &reconciler{client: fake.NewClientBuilder().WithReturnManagedFields().Build()}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web", Labels: map[string]string{label: "false"}}}
	if err := r.client.Create(t.Context(), service, client.FieldOwner("jane")); err != nil {
		t.Fatal(err)
	}
	err := r.apply(t.Context(), types.NamespacedName{Namespace: "demo", Name: "front"}, decision{labels: []labelChange{
		{service: &watchedObject{name: "web", uid: service.UID}, scopes: []string{"shop"}},
	}})
	if err == nil || isOutdated(err) || !strings.Contains(err.Error(), `conflict with "jane" using v1: .metadata.labels.`+label) {
		t.Errorf("got error %v", err)
	}
}

// TestLabelThatAnotherOwnerRemovesIsAChange: what was an error before must be tried again at once.
func TestLabelThatAnotherOwnerRemovesIsAChange(t *testing.T) {
	t.Parallel()
	var changed []string
	w := watches{changed: func(_ schema.GroupVersionKind, _ string, o *watchedObject) { changed = append(changed, o.name) }}
	store := w.newKindWatch(serviceKind, nil).store
	for _, labels := range []map[string]string{{corev1alpha2.LabelScopePrefix + "shop": "false"}, nil} {
		changed = nil
		entry, err := store.Transformer()(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels}})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Add(entry); err != nil || len(changed) == 0 {
			t.Errorf("with labels %v: no change, %v", labels, err)
		}
	}
}
