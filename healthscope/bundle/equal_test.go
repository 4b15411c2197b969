package bundle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// selectorItem returns a selector by labels.
func selectorItem(labels map[string]string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels}
}

func TestEqual(t *testing.T) {
	at := func(offset time.Duration) *metav1.Time {
		return new(metav1.NewTime(noon.Truncate(time.Second).Add(offset)))
	}
	entry := func(change func(*k8spluginv1alpha1.ResourceHealth)) k8spluginv1alpha1.ResourceBundleStateStatus {
		r := k8spluginv1alpha1.ResourceHealth{
			Kind: "Pod", Name: "p", State: "Ready", Since: at(0), Owner: &k8spluginv1alpha1.ResourceOwner{Kind: "Job", Name: "j"},
			Labels: map[string]string{"a": "b"}, Desired: new(int32(1)), Available: new(int32(1)), ProgressDeadlineSeconds: new(int32(60)),
		}
		change(&r)
		return k8spluginv1alpha1.ResourceBundleStateStatus{Resources: []k8spluginv1alpha1.ResourceHealth{r}}
	}
	unchanged := func(*k8spluginv1alpha1.ResourceHealth) {}
	pods := func(list string) k8spluginv1alpha1.ResourceBundleStateStatus {
		return k8spluginv1alpha1.ResourceBundleStateStatus{PodStatuses: k8spluginv1alpha1.RawList(list)}
	}
	type status = k8spluginv1alpha1.ResourceBundleStateStatus
	cases := map[string]struct {
		a, b status
		want bool
	}{
		"nothing":                    {status{}, status{}, true},
		"ready":                      {status{Ready: true}, status{}, false},
		"count":                      {status{ResourceCount: 1}, status{}, false},
		"truncated":                  {status{Truncated: true}, status{}, false},
		"malformed":                  {status{Malformed: []string{"ready"}}, status{}, false},
		"no summary":                 {status{Summary: &k8spluginv1alpha1.ResourceCounts{}}, status{}, false},
		"other summary":              {status{Summary: &k8spluginv1alpha1.ResourceCounts{Total: 1}}, status{Summary: &k8spluginv1alpha1.ResourceCounts{}}, false},
		"same summary":               {status{Summary: &k8spluginv1alpha1.ResourceCounts{Total: 1}}, status{Summary: &k8spluginv1alpha1.ResourceCounts{Total: 1}}, true},
		"same entry":                 {entry(unchanged), entry(unchanged), true},
		"one entry more":             {entry(unchanged), status{}, false},
		"other state":                {entry(unchanged), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.State = "Failed" }), false},
		"other message":              {entry(unchanged), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Message = "m" }), false},
		"other second":               {entry(unchanged), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Since = at(time.Second) }), false},
		"other fraction of a second": {entry(unchanged), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Since = at(time.Millisecond) }), true},
		"other zone": {entry(unchanged), entry(func(r *k8spluginv1alpha1.ResourceHealth) {
			r.Since = new(metav1.NewTime(noon.In(time.FixedZone("elsewhere", 3600))))
		}), true},
		"no since":                 {entry(unchanged), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Since = nil }), false},
		"since null, since absent": {entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Since = &metav1.Time{} }), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Since = nil }), true},
		"no owner":                 {entry(unchanged), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Owner = nil }), false},
		"other label":              {entry(unchanged), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Labels = map[string]string{"a": "c"} }), false},
		"no labels, empty labels": {
			entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Labels = nil }), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Labels = map[string]string{} }), true,
		},
		"other replicas":                  {entry(unchanged), entry(func(r *k8spluginv1alpha1.ResourceHealth) { r.Available = new(int32(0)) }), false},
		"list absent, null or empty":      {pods(``), pods(`null`), true},
		"list absent or empty":            {pods(``), pods(`[]`), true},
		"list with another order of keys": {pods(`[{"a":1,"b":[{"c":"d","e":null}]}]`), pods(`[ {"b" : [{"c":"d"}], "a":1} ]`), true},
		"list with another order":         {pods(`[1,2]`), pods(`[2,1]`), false},
		"numbers written otherwise":       {pods(`[1.0,1e3]`), pods(`[1,1000]`), true},
		"numbers that floats confuse":     {pods(`[9007199254740993]`), pods(`[9007199254740992]`), false},
		"number and string":               {pods(`[1]`), pods(`["1"]`), false},
		"object and list":                 {pods(`[{}]`), pods(`[[]]`), false},
		"a field more":                    {pods(`[{"a":1}]`), pods(`[{"a":1,"b":false}]`), false},
		"a list that is broken":           {pods(`[{"a":1}]`), pods(`[{"a":1}`), false},
		"a list, the other not":           {pods(`[{"a":1}]`), pods(``), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := bundle.Equal(&tc.a, &tc.b); got != tc.want {
				t.Errorf("Equal is %v", got)
			}
			if got := bundle.Equal(&tc.b, &tc.a); got != tc.want {
				t.Errorf("Equal the other way round is %v", got)
			}
		})
	}
}

func TestEqualToNothing(t *testing.T) {
	some := &k8spluginv1alpha1.ResourceBundleStateStatus{}
	if bundle.Equal(some, nil) || bundle.Equal(nil, some) || !bundle.Equal(nil, nil) {
		t.Error("a status and none are not the same; none and none are")
	}
}
