package inventory

import (
	"fmt"
	"testing"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// askedIndex returns an index as it is on the replica that leads: somebody takes away what is new.
func askedIndex(o mapping.Options, selects configv1alpha1.InventorySelect, registry judgements, trusted []string) *index {
	i := newIndex(o, selects, registry, trusted)
	i.onChange(func(aai.Tenant) {})
	return i
}

// noted counts what an index keeps for who takes it away.
func (i *index) noted() int {
	n := len(i.rivals)
	for _, dirty := range i.dirty {
		n += len(dirty)
	}
	return n
}

func TestAStandbyKeepsWhatThereIsAndNotAllThatEverWas(t *testing.T) {
	i := newIndex(options(), configv1alpha1.SelectAll, judgedScopes{}, nil)
	const generations, resources = 100, 10
	var before *fleet.Bundle
	for g := range generations {
		b := &fleet.Bundle{BundleKey: fleet.BundleKey{Cluster: "edge", Namespace: "shop", Name: "1-web"}, Observed: true}
		for r := range resources {
			b.Members = append(b.Members, member("shop", fmt.Sprintf("web-%d-%d", g, r), healthscope.Ready))
		}
		i.bundleChanged(fleet.Change{Old: before, New: b})
		before = b
	}
	if got := i.noted(); got != 0 {
		t.Errorf("a standby keeps %d resources that have changed", got)
	}
	if got := len(i.claims); got != resources {
		t.Errorf("a standby knows %d resources, want %d", got, resources)
	}
	var told int
	i.onChange(func(aai.Tenant) { told++ })
	if got := i.noted(); got != resources || told == 0 {
		t.Errorf("who leads at last is told of %d resources, and %d times of a tenant, want %d", got, told, resources)
	}
}
