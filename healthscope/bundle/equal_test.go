package bundle_test

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// full returns a status in which every field is set, also in its only entry.
func full() *k8spluginv1alpha1.ResourceBundleStateStatus {
	at := metav1.NewTime(noon.Truncate(time.Second))
	status := &k8spluginv1alpha1.ResourceBundleStateStatus{
		Ready: true, ResourceCount: 1, Truncated: true, Malformed: []string{"ready"}, Summary: &k8spluginv1alpha1.ResourceCounts{Total: 1},
		Resources: []k8spluginv1alpha1.ResourceHealth{{
			Group: "batch", Version: "v1", Kind: "Pod", Namespace: "store", Name: "p", UID: "u", State: "Ready", Reason: "r", Message: "m",
			Since: &at, Owner: &k8spluginv1alpha1.ResourceOwner{Kind: "Job", Name: "j"}, Labels: map[string]string{"a": "b"},
			Desired: new(int32(1)), Available: new(int32(1)), ProgressDeadlineSeconds: new(int32(60)),
			Progress: &k8spluginv1alpha1.ResourceProgress{Ready: 1}, ProgressedAt: &at, Timed: true, Serving: true, Suspended: true, Warning: true,
		}},
	}
	for _, list := range status.Lists() {
		*list = k8spluginv1alpha1.RawList(`[1]`)
	}
	return status
}

// checkEqual checks Equal in both directions.
func checkEqual(t *testing.T, a, b *k8spluginv1alpha1.ResourceBundleStateStatus, want bool) {
	t.Helper()
	if there, back := bundle.Equal(a, b), bundle.Equal(b, a); there != want || back != want {
		t.Errorf("Equal is %t, and %t the other way round, want %t", there, back, want)
	}
}

func TestEqualComparesEveryField(t *testing.T) {
	checkEqual(t, full(), full(), true)
	for name, of := range map[string]func(*k8spluginv1alpha1.ResourceBundleStateStatus) reflect.Value{
		"status": func(s *k8spluginv1alpha1.ResourceBundleStateStatus) reflect.Value { return reflect.ValueOf(s).Elem() },
		"entry": func(s *k8spluginv1alpha1.ResourceBundleStateStatus) reflect.Value {
			return reflect.ValueOf(&s.Resources[0]).Elem()
		},
	} {
		for i := range of(full()).NumField() {
			t.Run(name+" "+of(full()).Type().Field(i).Name, func(t *testing.T) {
				changed := full()
				if of(changed).Field(i).IsZero() {
					t.Fatal("full does not set it")
				}
				of(changed).Field(i).SetZero()
				checkEqual(t, full(), changed, false)
			})
		}
	}
}

func TestEqual(t *testing.T) {
	entry := func(change func(*k8spluginv1alpha1.ResourceHealth)) *k8spluginv1alpha1.ResourceBundleStateStatus {
		status := full()
		change(&status.Resources[0])
		return status
	}
	since := func(at time.Time) *k8spluginv1alpha1.ResourceBundleStateStatus {
		return entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Since = new(metav1.NewTime(at)) })
	}
	pods := func(list string) *k8spluginv1alpha1.ResourceBundleStateStatus {
		return &k8spluginv1alpha1.ResourceBundleStateStatus{PodStatuses: k8spluginv1alpha1.RawList(list)}
	}
	none := &k8spluginv1alpha1.ResourceBundleStateStatus{}
	cases := map[string]struct {
		a, b *k8spluginv1alpha1.ResourceBundleStateStatus
		want bool
	}{
		"nothing":                    {none, none, true},
		"no status":                  {nil, none, false},
		"neither":                    {nil, nil, true},
		"other second":               {full(), since(noon.Add(time.Second)), false},
		"other fraction of a second": {full(), since(noon), true},
		"other zone":                 {full(), since(noon.In(time.FixedZone("elsewhere", 3600))), true},
		"since null, since absent":   {since(time.Time{}), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Since = nil }), true},
		"other label":                {full(), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Labels = map[string]string{"a": "c"} }), false},
		"no labels, empty labels": {
			entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Labels = nil }), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Labels = map[string]string{} }), true,
		},
		"other replicas":                  {full(), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Available = new(int32(0)) }), false},
		"list absent, null or empty":      {pods(``), pods(`null`), true},
		"list absent or empty":            {pods(``), pods(`[]`), true},
		"list with another order of keys": {pods(`[{"a":1,"b":[{"c":"d","e":null}]}]`), pods(`[ {"b" : [{"c":"d"}], "a":1} ]`), true},
		"list with another order":         {pods(`[1,2]`), pods(`[2,1]`), false},
		"numbers that floats confuse":     {pods(`[9007199254740993]`), pods(`[9007199254740992]`), false},
		"number and string":               {pods(`[1]`), pods(`["1"]`), false},
		"object and list":                 {pods(`[{}]`), pods(`[[]]`), false},
		"a field more":                    {pods(`[{"a":1}]`), pods(`[{"a":1,"b":false}]`), false},
		"a list that is broken":           {pods(`[{"a":1}]`), pods(`[{"a":1}`), false},
		"a list, the other not":           {pods(`[{"a":1}]`), pods(``), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { checkEqual(t, tc.a, tc.b, tc.want) })
	}
}

// TestNumbersAreEqualAfterARoundTrip asserts that a bundle with numbers that JSON can write in several ways is not written again and again.
func TestNumbersAreEqualAfterARoundTrip(t *testing.T) {
	built := bundle.Build(parseAll(`{apiVersion: acme.example/v1, kind: Gadget, metadata: {name: g, namespace: store}, spec: {numbers: [1.0, 1e3, 1.5, 1e21, 1e-7, 9007199254740993, 9223372036854775808]}}`), nil, noon, bundle.Options{})
	stored := roundTrip(built)
	checkEqual(t, &built, &stored, true)
}
