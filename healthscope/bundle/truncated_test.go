package bundle_test

import (
	"testing"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// A bundle over its budget leaves out lists first, and entries only when that is not enough. What is not named may
// still exist, so readers must know of the second; the first takes nothing from them.
func TestOnlyMissingEntriesMakeContentsTruncated(t *testing.T) {
	tests := map[string]struct {
		entries, count int32
		truncated      bool
		want           bool
	}{
		"whole":                     {entries: 2, count: 2},
		"lists are left out":        {entries: 2, count: 2, truncated: true},
		"entries are left out":      {entries: 1, count: 2, truncated: true, want: true},
		"another monitor's count":   {entries: 1, count: 7},
		"all entries are left out":  {count: 2, truncated: true, want: true},
		"no entries and none there": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := &k8spluginv1alpha1.ResourceBundleState{Status: k8spluginv1alpha1.ResourceBundleStateStatus{
				Summary: &k8spluginv1alpha1.Summary{}, ResourceCount: tt.count, Truncated: tt.truncated,
			}}
			for i := range tt.entries {
				b.Status.Resources = append(b.Status.Resources, k8spluginv1alpha1.ResourceHealth{Kind: "Pod", Name: string('a' + i), State: "Ready"})
			}
			if got := bundle.Read("edge", b).Truncated; got != tt.want {
				t.Errorf("Read: truncated is %t, want %t", got, tt.want)
			}
			bundle.Slim(b)
			if got := bundle.Read("edge", b).Truncated; got != tt.want {
				t.Errorf("Read after Slim: truncated is %t, want %t", got, tt.want)
			}
		})
	}
}
