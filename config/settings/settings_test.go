package settings

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestAll: what is found is what the types and the validation say, one field of each sort.
func TestAll(t *testing.T) {
	all, err := All()
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
		if diff := cmp.Diff(want, all[i], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// TestTryingLeavesNothing: the fields are the same each time, and so trying values has changed none.
func TestTryingLeavesNothing(t *testing.T) {
	first, err := All()
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for _, s := range first {
		if paths[s.Path] {
			t.Errorf("%s is there twice", s.Path)
		}
		paths[s.Path] = true
		for _, d := range s.Default {
			if s.Kind == String && len(s.Values) > 0 && !slices.Contains(s.Values, d) {
				t.Errorf("the default of %s, %q, is none of %q", s.Path, d, s.Values)
			}
		}
	}
	second, err := All()
	if diff := cmp.Diff(first, second); err != nil || diff != "" {
		t.Errorf("%v, -first +second:\n%s", err, diff)
	}
}
