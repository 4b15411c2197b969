package oam

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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
