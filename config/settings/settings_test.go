package settings

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/util/validation/field"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
)

// root is the root of the source tree.
const root = "../.."

// TestAll checks one field of each kind against the types and their markers.
func TestAll(t *testing.T) {
	all, err := All(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Setting{
		{Path: "kind", Field: "TypeMeta.Kind", Kind: String, Required: true, Default: []string{"Configuration"}, Values: []string{"Configuration"}},
		{Path: "clusterName", Field: "Configuration.ClusterName", Kind: String, Default: []string{"local"}},
		{Path: "policy", Field: "Configuration.Policy", Kind: Object},
		{Path: "policy.pendingTimeoutSeconds", Field: "Policy.PendingTimeoutSeconds", Kind: Integer, Default: []string{"600"}, Minimum: 0, Maximum: math.MaxInt32},
		{Path: "monitor.limitKiB", Field: "Monitor.LimitKiB", Kind: Integer, Default: []string{"1024"}, Minimum: 16, Maximum: 1400},
		{Path: "monitor.discover", Field: "Monitor.Discover", Kind: Boolean, Default: []string{"false"}},
		{Path: "monitor.labelKeys", Field: "Monitor.LabelKeys", Kind: Strings, Default: []string{"emco/deployment-id"}},
		{Path: "tracing.samplingPercent", Field: "Tracing.SamplingPercent", Kind: Integer, Default: []string{"100"}, Minimum: 0, Maximum: 100},
		{Path: "appContext.endpoints", Field: "AppContext.Endpoints", Kind: Strings, Required: true},
		{Path: "recorder", Field: "Configuration.Recorder", Kind: Object},
		{Path: "inventory.policy", Field: "Inventory.Policy", Kind: String, Default: []string{"sync"}, Values: []string{"sync", "upsert-only"}},
		{Path: "inventory.regions", Field: "Inventory.Regions", Kind: Objects},
		{Path: "inventory.regions[].tenantId", Field: "Region.TenantID", Kind: String, Required: true},
		{Path: "inventory.links[].genericVnfIds", Field: "LinkPolicy.GenericVNFIDs", Kind: Strings, EmptyEntries: true},
		{Path: "healthCheckExprs[].match.labelSelector", Field: "ObjectMatch.LabelSelector", Kind: String},
	} {
		i := slices.IndexFunc(all, func(s Setting) bool { return s.Path == want.Path })
		if i < 0 {
			t.Errorf("%s is not found", want.Path)
			continue
		}
		if diff := cmp.Diff(want, all[i], cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Setting{}, "Comment")); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// TestMarkersSayWhatValidateSays asserts that Validate accepts the bounds, values and entries that the markers allow, and that
// it rejects missing values of required fields.
func TestMarkersSayWhatValidateSays(t *testing.T) {
	all, err := All(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.Path, func(t *testing.T) {
			switch {
			case s.Kind == Integer:
				expect(t, s, true, s.Minimum, s.Maximum)
				for _, n := range []int64{int64(s.Minimum) - 1, int64(s.Maximum) + 1} {
					if n == int64(int32(n)) {
						expect(t, s, false, int32(n))
					}
				}
			case len(s.Values) > 0:
				for _, value := range s.Values {
					expect(t, s, true, value)
				}
				expect(t, s, false, "no such value")
			case s.Kind == String:
				if s.Required {
					expect(t, s, false, "")
				}
				if errs := refusals(t, s, "no such value", s.Path); slices.ContainsFunc(errs, func(e *field.Error) bool { return e.Type == field.ErrorTypeNotSupported }) {
					t.Errorf("it has some values only, which no marker says: %v", errs)
				}
			case s.Kind == Strings:
				if errs := refusals(t, s, []string{""}, s.Path+"[0]"); s.EmptyEntries != (len(errs) == 0) {
					t.Errorf("an empty entry is allowed: %t; Validate says %v", s.EmptyEntries, errs)
				}
				if s.Required {
					expect(t, s, false, []string(nil))
				}
			}
		})
	}
}

// expect asserts that Validate accepts values of a field, or that it rejects them.
func expect[T any](t *testing.T, s Setting, valid bool, values ...T) {
	t.Helper()
	for _, value := range values {
		if errs := refusals(t, s, value, s.Path); valid != (len(errs) == 0) {
			t.Errorf("%v is allowed: %t; Validate says %v", value, valid, errs)
		}
	}
}

// refusals returns the errors of Validate for a path, after a field of a complete configuration is set to a value.
func refusals(t *testing.T, s Setting, value any, path string) field.ErrorList {
	t.Helper()
	c := Complete()
	at := reflect.ValueOf(&c).Elem()
	for name := range strings.SplitSeq(s.Path, ".") {
		name, list := strings.CutSuffix(name, "[]")
		if at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		at = at.FieldByIndex(indexOf(t, at.Type(), name))
		if list {
			at = at.Index(0)
		}
	}
	if at.Kind() == reflect.Pointer {
		at = at.Elem()
	}
	at.Set(reflect.ValueOf(value).Convert(at.Type()))
	var errs field.ErrorList
	for _, err := range configv1alpha1.Validate(&c) {
		if err.Field == strings.ReplaceAll(path, "[].", "[0].") {
			errs = append(errs, err)
		}
	}
	return errs
}

// indexOf returns the index of the field of a struct that has a name in JSON.
func indexOf(t *testing.T, in reflect.Type, name string) []int {
	t.Helper()
	for _, f := range reflect.VisibleFields(in) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag == name {
			return f.Index
		}
	}
	t.Fatalf("%s has no field %q", in, name)
	return nil
}
