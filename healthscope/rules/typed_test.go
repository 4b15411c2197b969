package rules_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope/rules"
)

// words are what strings are drawn from: words that rules know, one they do not, and none.
var words = []string{
	"", "True", "False", "Unknown", "true", "Sideways", "Ready", "ContainersReady", "PodScheduled", "DisruptionTarget", "Available", "Progressing", "ReplicaFailure",
	"Complete", "Failed", "FailureTarget", "Suspended", "AbleToScale", "ScalingActive", "ScalingDisabled", "DisruptionAllowed", "InsufficientPods", "SyncFailed",
	"NamespaceContentRemaining", "NamesAccepted", "Established", "Pending", "Running", "Succeeded", "Bound", "Lost", "Released", "Active", "Terminating",
	"CrashLoopBackOff", "ErrImagePull", "CreateContainerConfigError", "ContainerCreating", "NodeLost", "NodeStatusUnknown", "ReadinessGatesNotReady",
	"ContainersNotReady", "ProgressDeadlineExceeded", "LoadBalancer", "OnDelete", "RollingUpdate", "Deployment", "apps/v1", "web", "a\nb", "password=x",
}

// builtInTypes are the kinds of Kubernetes that client-go knows as Go types.
func builtInTypes() map[schema.GroupVersionKind]reflect.Type {
	types := map[schema.GroupVersionKind]reflect.Type{}
	for gvk, goType := range scheme.Scheme.AllKnownTypes() {
		_, isObject := reflect.TypeAssert[metav1.ObjectMetaAccessor](reflect.New(goType))
		if isObject && gvk.Version != runtime.APIVersionInternal && !strings.HasSuffix(gvk.Kind, "List") {
			types[gvk] = goType
		}
	}
	return types
}

// fill draws values for a Go value. Deep in an object, and in templates, nothing is set.
func fill(t *rapid.T, v reflect.Value, depth int) {
	switch v.Type().Name() {
	case "PodTemplateSpec", "Container", "Quantity", "IntOrString":
		return
	}
	if depth > 9 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[metav1.Time]() {
			v.Set(reflect.ValueOf(metav1.Unix(rapid.Int64Range(1_700_000_000, 1_700_000_003).Draw(t, "time"), 0)))
			return
		}
		for _, field := range v.Fields() {
			fill(t, field, depth+1)
		}
	case reflect.Pointer:
		if rapid.IntRange(0, 2).Draw(t, "is there") == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		n := rapid.IntRange(0, 2).Draw(t, "entries")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth+1)
		}
	case reflect.String:
		v.SetString(rapid.SampledFrom(words).Draw(t, "word"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	case reflect.Int32, reflect.Int64:
		v.SetInt(rapid.Int64Range(-1, 3).Draw(t, "number"))
	default: // Maps, and what no rule looks at.
	}
}

// TestTypedAndUntypedAgree: for every kind of Kubernetes, whatever is in an
// object, its Go type and its JSON have the same verdict by the same rule.
func TestTypedAndUntypedAgree(t *testing.T) {
	types := builtInTypes()
	if len(types) < 60 {
		t.Fatalf("only %d kinds are known", len(types))
	}
	for gvk, goType := range types {
		t.Run(gvk.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				value := reflect.New(goType)
				for _, field := range []string{"ObjectMeta", "Spec", "Status"} {
					if part := value.Elem().FieldByName(field); part.IsValid() {
						fill(t, part, 0)
					}
				}
				typed, ok := reflect.TypeAssert[runtime.Object](value)
				if !ok {
					t.Fatalf("%s is no object", goType)
				}
				typed.GetObjectKind().SetGroupVersionKind(gvk)
				root, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
				if err != nil {
					t.Fatalf("cannot convert: %v", err)
				}
				want, wantRule := rules.Explain(&unstructured.Unstructured{Object: root}, rules.Options{})
				got, rule := rules.Explain(typed, rules.Options{})
				if diff := cmp.Diff(want, got); diff != "" || rule != wantRule {
					t.Fatalf("%v\nas JSON by %q, typed by %q (-JSON +typed):\n%s", root, wantRule, rule, diff)
				}
			})
		})
	}
}

// TestTypedObjectsAreNotConverted: the rules read the kinds that there are most of as they are, which this sees by what a conversion would cost.
func TestTypedObjectsAreNotConverted(t *testing.T) {
	for _, tc := range readObjects(t) {
		typed := typedForm(t, tc.object)
		if typed == nil || tc.Rule != "" { // Kinds without a rule are converted.
			continue
		}
		t.Run(tc.Case, func(t *testing.T) {
			converting := testing.AllocsPerRun(10, func() { _, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(typed) })
			judging := testing.AllocsPerRun(10, func() { rules.Evaluate(typed, rules.Options{}) })
			if judging >= converting {
				t.Errorf("%.0f allocations to judge it, %.0f to convert it", judging, converting)
			}
		})
	}
}
