package inventory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

func TestGather(t *testing.T) {
	web, db, back := member("shop", "web", healthscope.Ready), member("shop", "db", healthscope.Failed), member("back", "web", healthscope.Ready)
	unknown, gone := member("shop", "unknown", healthscope.Unknown), member("shop", "gone", healthscope.NotPresent)
	both := judgedScopes{name("shop", "a"): judged(placed(web)...), name("shop", "b"): judged(placed(web, db)...)}
	cases := map[string]struct {
		judged  judgedScopes
		scopes  map[types.NamespacedName]int64 // those that exist; without any, those that are judged
		bundles bundleList
		selects configv1alpha1.InventorySelect
		// want are the documents as "name scope", with a question mark where the document is held.
		want []string
		// held are the clusters from which nothing is deleted; all is true for every one.
		held []string
		all  bool
	}{
		"nothing": {},
		"each resource once, for the first by name":         {judged: both, want: []string{"db shop/b", "web shop/a"}},
		"other tenants are not this one's matter":           {judged: judgedScopes{name("back", "a"): judged(placed(back)...)}},
		"what is not known is held, what is not there goes": {judged: judgedScopes{name("shop", "a"): judged(placed(unknown, gone)...)}, want: []string{"unknown?"}},
		"bundles of no scope": {
			judged: judgedScopes{name("shop", "a"): judged(placed(web)...)}, bundles: bundleList{newBundle(web, db)},
			selects: configv1alpha1.SelectAll, want: []string{"db ?namespace=shop", "web shop/a"},
		},
		"bundles of no scope, which nobody asked for": {bundles: bundleList{newBundle(web, db)}},
		"a scope that is not judged at all": {
			judged: both, scopes: map[types.NamespacedName]int64{name("shop", "a"): 1, name("shop", "b"): 1, name("back", "c"): 1},
			want: []string{"db shop/b", "web shop/a"}, all: true,
		},
		"a scope that may claim what another has": {
			judged: both, scopes: map[types.NamespacedName]int64{name("shop", "a"): 1, name("shop", "aa"): 1, name("shop", "b"): 1},
			want: []string{"db shop/b?", "web shop/a"}, all: true,
		},
		"a scope that may claim what bundles have": {
			scopes: map[types.NamespacedName]int64{name("shop", "a"): 1}, bundles: bundleList{newBundle(web)},
			selects: configv1alpha1.SelectAll, want: []string{"web ?namespace=shop?"}, all: true,
		},
		"a scope of which an older spec is judged": {
			judged: both, scopes: map[types.NamespacedName]int64{name("shop", "a"): 2, name("shop", "b"): 1},
			want: []string{"db shop/b", "web shop/a"}, all: true,
		},
		"a scope that was judged while its reading is still to come": {
			judged: judgedScopes{name("shop", "a"): judged(placed(web)...)}, scopes: map[types.NamespacedName]int64{name("shop", "a"): 0},
			want: []string{"web shop/a"},
		},
		"a scope that is gone and not yet forgotten": {
			judged: both, scopes: map[types.NamespacedName]int64{name("shop", "b"): 1}, want: []string{"db shop/b", "web shop/a"},
		},
		"a truncated bundle":             {bundles: bundleList{changed(func(b *fleet.Bundle) { b.Truncated = true })}, held: []string{"edge"}},
		"a malformed bundle":             {bundles: bundleList{changed(func(b *fleet.Bundle) { b.Malformed = []string{"resources[0]"} })}, held: []string{"edge"}},
		"an unfilled bundle of no scope": {bundles: bundleList{changed(func(b *fleet.Bundle) { b.Observed = false })}},
		"an unfilled bundle, of which all go": {
			bundles: bundleList{changed(func(b *fleet.Bundle) { b.Observed = false })}, selects: configv1alpha1.SelectAll, held: []string{"edge"},
		},
		"an unfilled bundle of a scope": {
			judged: judgedScopes{name("shop", "a"): judged(placed(bundleMember(healthscope.ReasonNotObserved))...)}, held: []string{"edge"},
		},
		"a bundle that has been mended since the scope was judged": {
			judged:  judgedScopes{name("shop", "a"): judged(placed(bundleMember(healthscope.ReasonMalformedBundle))...)},
			bundles: bundleList{newBundle(web)}, held: []string{"edge"},
		},
		"a bundle that is not there": {judged: judgedScopes{name("shop", "a"): judged(placed(bundleMember(healthscope.ReasonNotFound))...)}},
		"a resource with a bundle's reason": {
			judged: judgedScopes{name("shop", "a"): judged(placed(withReason(web, healthscope.ReasonNotObserved))...)}, want: []string{"web shop/a"},
		},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			w, err := newGatherer(c.judged, c.scopes, c.bundles, c.selects).gather(t.Context(), tenant)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, describe(w, web, db, unknown, gone)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, cluster := range []string{"edge", "other"} {
				if want := c.all || slices.Contains(c.held, cluster); w.holds.Source(cluster) != want {
					t.Errorf("cluster %q is held: %t, want %t", cluster, !want, want)
				}
			}
			if w.partial != c.all {
				t.Errorf("partial is %t, want %t", w.partial, c.all)
			}
		})
	}
}

func TestGatherSaysWhatItCannotRead(t *testing.T) {
	g := newGatherer(nil, nil, nil, "")
	g.scopes = existing{err: errors.New("the cache is gone")}
	if _, err := g.gather(t.Context(), tenant); err == nil || err.Error() != "cannot list HealthScopes: the cache is gone" {
		t.Errorf("got %v", err)
	}
}

// TestNothingIsDeletedForWantOfKnowledge drops judgements from a full picture, as
// after a restart: what is in the full picture must be desired or held, whatever is missing.
func TestNothingIsDeletedForWantOfKnowledge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		full := judgedScopes{}
		scopes := map[types.NamespacedName]int64{}
		for _, scope := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 4, rapid.ID).Draw(t, "scopes") {
			members := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p", "q", "r"}), 0, 3, rapid.ID).Draw(t, "members of "+scope)
			j := judged()
			for _, m := range members {
				j.Members = append(j.Members, placed(member("shop", m, healthscope.Ready))...)
			}
			full[name("shop", scope)], scopes[name("shop", scope)] = j, 1
		}
		known := maps.Clone(full)
		for n := range full {
			if rapid.Bool().Draw(t, "forget "+n.Name) {
				delete(known, n)
			}
		}
		before, err := newGatherer(full, scopes, nil, configv1alpha1.SelectScoped).gather(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		after, err := newGatherer(known, scopes, nil, configv1alpha1.SelectScoped).gather(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		for key, d := range before.documents {
			now, ok := after.documents[key]
			switch {
			case !ok && !after.holds.Source(d.DataSource):
				t.Errorf("%s would be deleted", d.Name)
			case ok && !after.holds.Keys[key] && cmp.Diff(d, now) != "":
				t.Errorf("%s would be written:\n%s", d.Name, cmp.Diff(d, now))
			}
		}
	})
}

func newGatherer(j judgedScopes, scopes map[types.NamespacedName]int64, bundles bundleList, selects configv1alpha1.InventorySelect) *gatherer {
	if scopes == nil {
		scopes = map[types.NamespacedName]int64{}
		for n := range j {
			scopes[n] = 1
		}
	}
	return &gatherer{scopes: existing{scopes: scopes}, bundles: bundles, registry: j, mapping: options(), selects: selects}
}

// describe puts what is wanted of some members into words.
func describe(w wanted, members ...healthscope.Member) []string {
	keys := map[aai.Key]string{}
	for _, m := range members {
		keys[keyOf(m)] = m.Name
	}
	all := map[aai.Key]string{}
	for key, d := range w.documents {
		all[key] = fmt.Sprintf("%s %s", d.Name, strings.TrimLeft(strings.TrimPrefix(d.Selflink, "http://hs/scopes"), "/"))
	}
	for key := range w.holds.Keys {
		if all[key] == "" {
			all[key] = keys[key]
		}
		all[key] += "?"
	}
	return slices.Sorted(maps.Values(all))
}

func changed(change func(*fleet.Bundle)) *fleet.Bundle {
	b := newBundle()
	change(b)
	return b
}

func withReason(m healthscope.Member, reason healthscope.Reason) healthscope.Member {
	m.Reason = reason
	return m
}
