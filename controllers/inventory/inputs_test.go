package inventory

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/sync"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

func TestDesiredStateOfTenant(t *testing.T) {
	web, db, back := member("shop", "web", healthscope.Ready), member("shop", "db", healthscope.Failed), member("back", "web", healthscope.Ready)
	unknown, gone := member("shop", "unknown", healthscope.Unknown), member("shop", "gone", healthscope.NotPresent)
	both := judgedScopes{name("shop", "a"): judged(placed(web)...), name("shop", "b"): judged(placed(web, db)...)}
	cases := map[string]struct {
		judged  judgedScopes
		scopes  map[types.NamespacedName]int64 // the existing scopes; nil means the judged ones
		bundles bundleList
		selects configv1alpha1.InventorySelect
		// want are the documents as "name scope", with a question mark if the document is held.
		want []string
		// held are the parts, as cluster/namespace, in which nothing is deleted.
		held []string
		// partial is true when a scope has not been judged.
		partial bool
	}{
		"nothing": {},
		"each resource once, for the first by name":         {judged: both, want: []string{"db shop/b", "web shop/a"}},
		"other tenants are not this one's matter":           {judged: judgedScopes{name("back", "a"): judged(placed(back)...)}},
		"what is not known is held, what is not there goes": {judged: judgedScopes{name("shop", "a"): judged(placed(unknown, gone)...)}, want: []string{"unknown?"}},
		"what the first by name does not know and another does": {
			judged: judgedScopes{name("shop", "a"): judged(placed(in(web, healthscope.Unknown), in(db, healthscope.NotPresent))...), name("shop", "b"): judged(placed(web, db)...)},
			want:   []string{"db shop/a", "web shop/a"},
		},
		"what one takes for gone and another cannot see": {
			judged: judgedScopes{name("shop", "a"): judged(placed(in(web, healthscope.NotPresent))...), name("shop", "b"): judged(placed(in(web, healthscope.Unknown))...)},
			want:   []string{"web?"},
		},
		"bundles of no scope": {
			judged: judgedScopes{name("shop", "a"): judged(placed(web)...)}, bundles: bundleList{newBundle(web, db)},
			selects: configv1alpha1.SelectAll, want: []string{"db ?namespace=shop", "web shop/a"},
		},
		"bundles of no scope, which are not selected": {bundles: bundleList{newBundle(web, db)}},
		"a scope that is not judged at all": {
			judged: both, scopes: map[types.NamespacedName]int64{name("shop", "a"): 1, name("shop", "b"): 1, name("zoo", "c"): 1},
			want: []string{"db shop/b", "web shop/a"}, held: []string{"/zoo"}, partial: true,
		},
		"a scope that may claim what another has": {
			judged: both, scopes: map[types.NamespacedName]int64{name("shop", "a"): 1, name("shop", "aa"): 1, name("shop", "b"): 1},
			want: []string{"db shop/b?", "web shop/a"}, held: []string{"/shop"}, partial: true,
		},
		"a scope that may claim what bundles have": {
			scopes: map[types.NamespacedName]int64{name("shop", "a"): 1}, bundles: bundleList{newBundle(web)},
			selects: configv1alpha1.SelectAll, want: []string{"web ?namespace=shop?"}, held: []string{"/shop"}, partial: true,
		},
		"a scope of which an older spec is judged": {
			judged: both, scopes: map[types.NamespacedName]int64{name("shop", "a"): 2, name("shop", "b"): 1},
			want: []string{"db shop/b", "web shop/a"}, held: []string{"/shop"}, partial: true,
		},
		"a scope that was judged while its reading is still to come": {
			judged: judgedScopes{name("shop", "a"): judged(placed(web)...)}, scopes: map[types.NamespacedName]int64{name("shop", "a"): 0},
			want: []string{"web shop/a"},
		},
		"a scope that is gone and not yet forgotten": {
			judged: both, scopes: map[types.NamespacedName]int64{name("shop", "b"): 1}, want: []string{"db shop/b", "web shop/b"},
		},
		"a truncated bundle":             {bundles: bundleList{changed(func(b *fleet.Bundle) { b.Truncated = true })}, held: []string{"edge/shop"}},
		"a malformed bundle":             {bundles: bundleList{changed(func(b *fleet.Bundle) { b.Malformed = []string{"resources[0]"} })}, held: []string{"edge/shop"}},
		"an unfilled bundle of no scope": {bundles: bundleList{changed(func(b *fleet.Bundle) { b.Observed = false })}},
		"an unfilled bundle, of which all go": {
			bundles: bundleList{changed(func(b *fleet.Bundle) { b.Observed = false })}, selects: configv1alpha1.SelectAll, held: []string{"edge/shop"},
		},
		"an unfilled bundle of a scope": {
			judged: judgedScopes{name("shop", "a"): judged(placed(bundleMember(healthscope.ReasonNotObserved))...)}, held: []string{"edge/shop"},
		},
		"a bundle that has been mended since the scope was judged": {
			judged:  judgedScopes{name("shop", "a"): judged(placed(bundleMember(healthscope.ReasonMalformedBundle))...)},
			bundles: bundleList{newBundle(web)}, held: []string{"edge/shop"},
		},
		"a bundle that is not there": {judged: judgedScopes{name("shop", "a"): judged(placed(bundleMember(healthscope.ReasonNotFound))...)}},
		"a resource with a bundle's reason": {
			judged: judgedScopes{name("shop", "a"): judged(placed(withReason(web, healthscope.ReasonNotObserved))...)}, want: []string{"web shop/a"},
		},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			w := filled(c.judged, c.scopes, c.bundles, c.selects).take(tenant, oneCluster{})
			if diff := cmp.Diff(c.want, describe(w, web, db, unknown, gone)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(c.held, parts(w)); diff != "" {
				t.Errorf("deletions held, -want +got:\n%s", diff)
			}
			if w.partial != c.partial {
				t.Errorf("partial is %t, want %t", w.partial, c.partial)
			}
		})
	}
}

// TestMissingJudgementsCauseNoDeletions drops judgements, as after a restart. Everything that is desired with all judgements
// must be desired or held, for any missing judgements.
func TestMissingJudgementsCauseNoDeletions(t *testing.T) {
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
		before := filled(full, scopes, nil, configv1alpha1.SelectScoped).take(tenant, oneCluster{})
		after := filled(known, scopes, nil, configv1alpha1.SelectScoped).take(tenant, oneCluster{})
		for _, op := range planned(before, after) {
			t.Errorf("%s would be done to %s: %+v", op.Verb, op.Key.ID, op)
		}
	})
}

// filled returns inputs with these judgements, scopes and bundles.
func filled(j judgedScopes, scopes map[types.NamespacedName]int64, bundles bundleList, selects configv1alpha1.InventorySelect) *inputs {
	if scopes == nil {
		scopes = map[types.NamespacedName]int64{}
		for n := range j {
			scopes[n] = 1
		}
	}
	i := newInputs(options(), selects, j, nil)
	for _, b := range bundles {
		bundleChange{New: b}.to(i)
	}
	for n, generation := range scopes {
		i.scopeUpdated(n, noon, generation)
	}
	for n := range j {
		i.scopeJudged(n)
	}
	return i
}

// in returns the member in another state.
func in(m healthscope.Member, state healthscope.State) healthscope.Member {
	m.State = state
	return m
}

// TestOldestScopeOwnsResource: the oldest scope by time of creation owns a resource. Scopes of the same age are ordered by name.
func TestOldestScopeOwnsResource(t *testing.T) {
	web := member("shop", "web", healthscope.Ready)
	j := judgedScopes{name("shop", "a"): judged(placed(web)...), name("shop", "b"): judged(placed(web)...), name("shop", "c"): judged(placed(web)...)}
	i := newInputs(options(), configv1alpha1.SelectScoped, j, nil)
	owner := func(want string) {
		t.Helper()
		n := i.take(tenant, oneCluster{})
		w, changed := n.Desired[keyOf(web)]
		if !changed || !strings.HasSuffix(w.Document.Selflink, "/"+want) {
			t.Errorf("desired is %+v", w)
		}
	}
	for n, age := range map[string]time.Duration{"a": time.Hour, "b": 3 * time.Hour, "c": 3 * time.Hour} {
		i.scopeUpdated(name("shop", n), noon.Add(-age), 1)
		i.scopeJudged(name("shop", n))
	}
	owner("b")
	delete(j, name("shop", "b"))
	i.scopeDeleted(name("shop", "b"))
	i.scopeJudged(name("shop", "b"))
	owner("c")
	delete(j, name("shop", "c"))
	i.scopeJudged(name("shop", "c"))
	i.scopeDeleted(name("shop", "c"))
	owner("a")
}

// TestDisputedResourceIsDecidedAgain: a resource that an older scope may own waits until that scope is judged, and no longer,
// even if another scope is not judged yet.
func TestDisputedResourceIsDecidedAgain(t *testing.T) {
	web := member("shop", "web", healthscope.Ready)
	j := judgedScopes{name("shop", "b"): judged(placed(web)...)}
	i := filled(j, map[types.NamespacedName]int64{name("shop", "a"): 1, name("shop", "b"): 1, name("shop", "z"): 1}, nil, configv1alpha1.SelectScoped)
	if w := i.take(tenant, oneCluster{}).Desired[keyOf(web)]; !w.Held {
		t.Fatalf("desired is %+v", w)
	}
	var woken []aai.Tenant
	i.onChange(func(tenant aai.Tenant) { woken = append(woken, tenant) })
	j[name("shop", "a")] = judged()
	i.scopeJudged(name("shop", "a"))
	if w := i.take(tenant, oneCluster{}).Desired[keyOf(web)]; !slices.Contains(woken, tenant) || w.Held || w.Document == nil {
		t.Errorf("%v are woken, desired is %+v", woken, w)
	}
}

// TestOnlyChangedResourcesAreDecidedAgain: resources that are the same in a new judgement are not decided again, and wake no
// tenant.
func TestOnlyChangedResourcesAreDecidedAgain(t *testing.T) {
	t.Parallel()
	j := judgedScopes{}
	for s := range 100 {
		var members []healthscope.Member
		for m := range 10 {
			each := member("shop", fmt.Sprintf("%d-%d", s, m), healthscope.Ready)
			each.Cluster = fmt.Sprint("edge", s%20)
			members = append(members, each)
		}
		j[name("shop", fmt.Sprint(s))] = judged(placed(members...)...)
	}
	i := filled(j, nil, nil, configv1alpha1.SelectScoped)
	if n := i.take(tenant, oneCluster{}); len(n.Desired) != 1000 {
		t.Fatalf("%d are desired at first", len(n.Desired))
	}
	var woken []aai.Tenant
	i.onChange(func(tenant aai.Tenant) { woken = append(woken, tenant) })
	for n, same := range j {
		again := slices.Clone(same.Members)
		for m := range again {
			again[m].Member = new(*again[m].Member)
		}
		j[n] = judged(again...)
		i.scopeJudged(n)
	}
	guards := i.guards
	if n := i.take(tenant, oneCluster{}); len(n.Desired) > 0 || len(woken) > 0 {
		t.Errorf("%d objects are decided, %d tenants woken, though nothing has changed", len(n.Desired), len(woken))
	}
	changed := slices.Clone(j[name("shop", "7")].Members)
	changed[3].Member = new(in(*changed[3].Member, healthscope.Failed))
	j[name("shop", "7")] = judged(changed...)
	i.scopeJudged(name("shop", "7"))
	if n := i.take(tenant, oneCluster{}); len(n.Desired) != 1 || len(woken) != 1 || woken[0] != tenant {
		t.Errorf("%d objects are decided, tenants %v woken; want one of each", len(n.Desired), woken)
	}
	if guards == nil || i.guards != guards {
		t.Error("the guards are computed again from all scopes, though none of them has changed")
	}
}

// TestStateOfRemovedNamespacesIsDropped adds and removes scopes.
func TestStateOfRemovedNamespacesIsDropped(t *testing.T) {
	t.Parallel()
	j := judgedScopes{}
	i := newInputs(options(), configv1alpha1.SelectScoped, j, nil)
	web := member("shop", "web", healthscope.Ready)
	for n := range 10 {
		web.Cluster = fmt.Sprint("edge", n)
		j[shop] = judged(placed(web)...)
		i.scopeUpdated(shop, noon, 1)
		i.scopeJudged(shop)
		i.take(tenant, oneCluster{})
	}
	delete(j, shop)
	i.scopeDeleted(shop)
	i.scopeJudged(shop)
	if gone := i.take(tenant, oneCluster{}).Desired; len(gone) != 1 || !reflect.DeepEqual(i.tenant(tenant), newInputs(options(), configv1alpha1.SelectScoped, nil, nil).tenant(tenant)) || len(i.scopes) > 0 {
		t.Errorf("%v is to go, and %+v, %v are kept", gone, i.tenant(tenant), i.scopes)
	}
}

// scenario is inputs with random changes, and everything that was taken from them.
type scenario struct {
	*inputs
	judgements  judgedScopes
	ages        map[types.NamespacedName]time.Time
	generations map[types.NamespacedName]int64
	bundles     map[string]*fleet.Bundle
	clusters    several
	taken       map[aai.Key]sync.Desired
}

// take takes the changes.
func (s *scenario) take() change {
	n := s.inputs.take(tenant, s.clusters)
	for k, w := range n.Desired {
		w.Seen = time.Time{}
		s.taken[k] = w
		if w.Document == nil && !w.Held {
			delete(s.taken, k)
		}
	}
	return n
}

func anyMembers(t *rapid.T) (list []healthscope.Member) {
	states := rapid.SampledFrom([]healthscope.State{healthscope.Ready, healthscope.Failed, healthscope.Unknown, healthscope.NotPresent})
	for _, m := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p", "q", "r"}), 0, 3, rapid.ID).Draw(t, "members") {
		list = append(list, member("shop", m, states.Draw(t, "state")))
	}
	return list
}

func anyScope(t *rapid.T) types.NamespacedName {
	return name("shop", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "scope"))
}

func anyBundle(t *rapid.T) string { return rapid.SampledFrom([]string{"x", "y"}).Draw(t, "bundle") }

func (s *scenario) exists(t *rapid.T) {
	n := anyScope(t)
	if _, ok := s.ages[n]; !ok {
		s.ages[n] = noon.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Hour)
	}
	s.generations[n] = rapid.Int64Range(1, 2).Draw(t, "generation")
	s.scopeUpdated(n, s.ages[n], s.generations[n])
}

func (s *scenario) judge(t *rapid.T) {
	n := anyScope(t)
	j := judged(placed(anyMembers(t)...)...)
	j.FirstSyncs = rapid.Uint64Range(1, 2).Draw(t, "arrivals")
	if rapid.Bool().Draw(t, "partial") {
		j.Partial = []string{"edge"}
	}
	s.judgements[n] = j
	s.scopeJudged(n)
}

func (s *scenario) goes(t *rapid.T) {
	n := anyScope(t)
	delete(s.ages, n)
	s.scopeDeleted(n)
	delete(s.judgements, n)
	s.scopeJudged(n)
}

func (s *scenario) bundle(t *rapid.T) {
	n := anyBundle(t)
	b := newBundle(anyMembers(t)...)
	b.Name, b.Truncated = n, rapid.Bool().Draw(t, "truncated")
	bundleChange{Old: s.bundles[n], New: b}.to(s.inputs)
	s.bundles[n] = b
}

func (s *scenario) bundleGoes(t *rapid.T) {
	n := anyBundle(t)
	if s.bundles[n] != nil {
		bundleChange{Old: s.bundles[n]}.to(s.inputs)
	}
	delete(s.bundles, n)
}

// cluster changes the state of the cluster. The inputs are not notified.
func (s *scenario) cluster(t *rapid.T) {
	s.clusters = several{complete: rapid.Bool().Draw(t, "complete"), states: []fleet.ClusterState{{
		Name: "edge", Reachability: rapid.SampledFrom(fleet.Reachabilities()).Draw(t, "reachability"), FirstSync: rapid.Uint64Range(1, 2).Draw(t, "arrival"),
	}}}
}

// replay returns inputs that receive the state of the scenario at once, instead of in steps.
func (s *scenario) replay() *inputs {
	fresh := newInputs(options(), configv1alpha1.SelectAll, s.judgements, nil)
	for _, b := range s.bundles {
		bundleChange{New: b}.to(fresh)
	}
	for n := range s.judgements {
		fresh.scopeJudged(n)
	}
	for n, age := range s.ages {
		fresh.scopeUpdated(n, age, s.generations[n])
	}
	return fresh
}

// TestIncrementalInputsEqualFullReplay changes scopes and bundles at random. It checks that the changes taken in steps result in
// the same as inputs that receive everything at once.
func TestIncrementalInputsEqualFullReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := judgedScopes{}
		s := &scenario{
			inputs: newInputs(options(), configv1alpha1.SelectAll, j, nil), judgements: j,
			clusters: several{complete: true}, ages: map[types.NamespacedName]time.Time{}, generations: map[types.NamespacedName]int64{}, bundles: map[string]*fleet.Bundle{},
			taken: map[aai.Key]sync.Desired{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"exists": s.exists, "judged": s.judge, "gone": s.goes, "bundle": s.bundle, "bundle gone": s.bundleGoes,
			"cluster": s.cluster,
			"take":    func(*rapid.T) { s.take() },
		})
		for n := range s.ages { // A scope that is not judged holds resources, but only those decided since.
			if j[n] == nil {
				j[n] = judged()
				s.scopeJudged(n)
			}
		}
		last, all := s.take(), s.replay().take(tenant, s.clusters)
		want := map[aai.Key]sync.Desired{}
		for k, w := range all.Desired {
			if w.Seen = (time.Time{}); w.Document != nil || w.Held {
				want[k] = w
			}
		}
		if diff := cmp.Diff(want, s.taken); diff != "" {
			t.Fatalf("-want +taken:\n%s", diff)
		}
		if diff := cmp.Diff(all.Deletions, last.Deletions); diff != "" {
			t.Fatalf("deletions held, -want +got:\n%s", diff)
		}
		if all.partial != last.partial {
			t.Fatalf("partial is %t, want %t", last.partial, all.partial)
		}
	})
}

// describe returns the desired documents of some members as text.
func describe(n change, members ...healthscope.Member) []string {
	keys := map[aai.Key]string{}
	for _, m := range members {
		keys[keyOf(m)] = m.Name
	}
	all := map[aai.Key]string{}
	for key, w := range n.Desired {
		switch {
		case w.Document != nil:
			all[key] = fmt.Sprintf("%s %s", w.Document.Name, strings.TrimLeft(strings.TrimPrefix(w.Document.Selflink, "http://hs/scopes"), "/"))
		case w.Held:
			all[key] = keys[key]
		}
		if w.Held {
			all[key] += "?"
		}
	}
	return slices.Sorted(maps.Values(all))
}
