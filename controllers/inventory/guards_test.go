package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

func TestIncompleteBundleGuardsItsNamespaces(t *testing.T) {
	truncated := func(namespace string, members ...healthscope.Member) *fleet.Bundle {
		b := newBundle(members...)
		b.Namespace, b.Truncated = namespace, true
		return b
	}
	whole := newBundle(member("back", "db", healthscope.Ready))
	cases := map[string]struct {
		trusted []string
		changes []bundleChange
		want    []string
	}{
		"its own namespace": {changes: []bundleChange{{New: truncated("shop")}}, want: []string{"edge/shop"}},
		"its own namespace, as its members show": {
			changes: []bundleChange{{New: truncated("shop", member("shop", "web", healthscope.Ready))}}, want: []string{"edge/shop"},
		},
		"each namespace that has one": {
			changes: []bundleChange{{New: truncated("shop")}, {New: truncated("back")}}, want: []string{"edge/back", "edge/shop"},
		},
		"the whole cluster, as the configuration says": {trusted: []string{"shop"}, changes: []bundleChange{{New: truncated("shop")}}, want: []string{"edge/"}},
		"the whole cluster, as a member shows": {
			changes: []bundleChange{{New: truncated("shop", member("back", "db", healthscope.Ready))}}, want: []string{"edge/"},
		},
		"the whole cluster, as a member without a namespace shows": {
			changes: []bundleChange{{New: truncated("shop", member("", "role", healthscope.Ready))}}, want: []string{"edge/"},
		},
		"the whole cluster, as a member has shown": {
			changes: []bundleChange{{New: whole}, {Old: whole, New: truncated("shop")}}, want: []string{"edge/"},
		},
		"the whole cluster, as another bundle of the namespace shows": {
			changes: []bundleChange{{New: func() *fleet.Bundle { b := *whole; b.Cluster, b.Name = "core", "8-db"; return &b }()}, {New: truncated("shop")}}, want: []string{"edge/"},
		},
		"nothing when it is gone": {
			changes: []bundleChange{{New: truncated("shop", member("back", "db", healthscope.Ready))}, {Old: truncated("shop")}},
		},
		"its own namespace, when the one that showed more is gone": {
			changes: []bundleChange{{New: whole}, {Old: whole}, {New: truncated("shop")}}, want: []string{"edge/shop"},
		},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			i := newInputs(options(), configv1alpha1.SelectScoped, judgedScopes{}, c.trusted)
			for _, change := range c.changes {
				change.to(i)
			}
			if diff := cmp.Diff(c.want, parts(i.take(tenant, oneCluster{}))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestPartialJudgementGuardsDeletions has a bundle that is truncated, and complete again before the scope has been judged by it.
func TestPartialJudgementGuardsDeletions(t *testing.T) {
	t.Parallel()
	web, db := member("shop", "web", healthscope.Ready), member("shop", "db", healthscope.Ready)
	whole, cut := newBundle(web, db), newBundle(web)
	whole.Namespace, cut.Namespace, cut.Truncated = "shop", "shop", true
	shop, j := name("shop", "s"), judgedScopes{}
	i := newInputs(options(), configv1alpha1.SelectScoped, j, nil)
	i.scopeUpdated(shop, noon, 1)
	judge := func(b *fleet.Bundle, partial ...string) {
		j[shop] = judged(placed(b.Members...)...)
		j[shop].Partial = partial
		i.scopeJudged(shop)
	}
	deletions := func() []string { return parts(i.take(tenant, oneCluster{})) }
	bundleChange{New: whole}.to(i)
	judge(whole)
	if got := deletions(); len(got) > 0 {
		t.Errorf("deletions are held in %q while all is known", got)
	}
	bundleChange{Old: whole, New: cut}.to(i)
	judge(cut, whole.Cluster)
	bundleChange{Old: cut, New: whole}.to(i)
	if got := deletions(); !slices.Equal(got, []string{whole.Cluster + "/shop"}) {
		t.Errorf("deletions are held in %q before the scope is judged by the whole bundle", got)
	}
	judge(whole)
	if got := deletions(); len(got) > 0 {
		t.Errorf("deletions are held in %q when the scope has been judged by the whole bundle", got)
	}
}

// fact is a bundle of a namespace, with its scope and its members.
type fact struct {
	scope   types.NamespacedName
	members []string // namespace/name
}

// facts draws bundles. Those of namespace shop, which is trusted, contain resources of all namespaces. Those of the other
// namespace contain only its own.
func facts(t *rapid.T, shared bool) []fact {
	var all []fact
	taken := map[string]bool{}
	for n := range rapid.IntRange(1, 5).Draw(t, "bundles") {
		f := fact{scope: name(rapid.SampledFrom([]string{"shop", "back"}).Draw(t, "namespace"), fmt.Sprint("s", n))}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			namespace := f.scope.Namespace
			if namespace == "shop" {
				namespace = rapid.SampledFrom([]string{"shop", "back"}).Draw(t, "namespace of a member")
			}
			m := namespace + "/" + rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "member")
			if !slices.Contains(f.members, m) && (shared || !taken[m]) {
				f.members, taken[m] = append(f.members, m), true
			}
		}
		all = append(all, f)
	}
	return all
}

// learn returns inputs with facts. With cut, some bundles are truncated and marked as such, and some scopes are not judged yet.
func learn(t *rapid.T, all []fact, cut bool, trusted []string) *inputs {
	j := judgedScopes{}
	i := newInputs(options(), configv1alpha1.SelectScoped, j, trusted)
	for n, f := range all {
		b := newBundle()
		b.Namespace, b.Name = f.scope.Namespace, fmt.Sprint("b", n)
		b.Truncated = cut && rapid.Bool().Draw(t, "truncated")
		for _, m := range f.members {
			if b.Truncated && rapid.Bool().Draw(t, "cut off") {
				continue
			}
			namespace, name, _ := strings.Cut(m, "/")
			b.Members = append(b.Members, member(namespace, name, healthscope.Ready))
		}
		bundleChange{New: b}.to(i)
		i.scopeUpdated(f.scope, noon, 1)
		if late := cut && rapid.Bool().Draw(t, "late"); !late {
			j[f.scope] = judged(placed(b.Members...)...)
			i.scopeJudged(f.scope)
		}
	}
	return i
}

// TestIncompleteBundlesCauseNoDeletions truncates bundles and delays judgements, as after a restart: no existing resource is
// deleted in any namespace. Without configured trusted namespaces this holds for resources that are in one bundle only.
func TestIncompleteBundlesCauseNoDeletions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var trusted []string
		configured := rapid.Bool().Draw(t, "configured")
		if configured {
			trusted = []string{"shop"}
		}
		all := facts(t, configured)
		before, after := learn(t, all, false, trusted), learn(t, all, true, trusted)
		for _, at := range []aai.Tenant{tenant, shed} {
			for _, op := range planned(before.take(at, oneCluster{}), after.take(at, oneCluster{})) {
				if op.Verb == plan.Delete {
					t.Fatalf("%s is deleted", op.Key.ID)
				}
			}
		}
	})
}

// TestDeletionsResumeWhenLastScopeOfNamespaceIsJudged: deletions that wait for the last scope of a namespace resume when it is
// judged, even if scopes of other namespaces are not judged yet.
func TestDeletionsResumeWhenLastScopeOfNamespaceIsJudged(t *testing.T) {
	j := judgedScopes{}
	i := newInputs(options(), configv1alpha1.SelectScoped, j, nil)
	for _, n := range []types.NamespacedName{name("shop", "a"), name("shop", "b"), name("back", "c")} {
		i.scopeUpdated(n, noon, 1)
	}
	woken := 0
	i.onChange(func(aai.Tenant) { woken++ })
	judge := func(n types.NamespacedName, want ...string) {
		t.Helper()
		j[n], woken = judged(), 0
		i.scopeJudged(n)
		if diff := cmp.Diff(want, parts(i.take(tenant, oneCluster{}))); diff != "" || woken == 0 {
			t.Errorf("after %s, %d tenants are woken, and held are -want +got:\n%s", n, woken, diff)
		}
	}
	judge(name("shop", "a"), "/back", "/shop")
	judge(name("shop", "b"), "/back")
	judge(name("back", "c"))
}

// TestUnjudgedScopeHoldsOnlyItsNamespace has an oldest scope that waits, as for a cluster that is down. The resources of other
// scopes go to A&AI, unless bundles of its namespace may contain them.
func TestUnjudgedScopeHoldsOnlyItsNamespace(t *testing.T) {
	web := member("shop", "web", healthscope.Ready)
	for _, c := range []struct {
		waiting types.NamespacedName
		trusted []string
		want    bool
	}{
		{waiting: name("back", "a")},
		{waiting: name("back", "a"), trusted: []string{"back"}, want: true},
		{waiting: name("shop", "a"), want: true},
		{waiting: name("shop", "z")},
	} {
		j := judgedScopes{name("shop", "b"): judged(placed(web)...)}
		i := filled(j, map[types.NamespacedName]int64{c.waiting: 1, name("shop", "b"): 1}, nil, configv1alpha1.SelectScoped)
		i.trusted = c.trusted
		if w := i.take(tenant, oneCluster{}).Desired[keyOf(web)]; w.Held != c.want || w.Document == nil {
			t.Errorf("while %q waits, with the trusted namespaces %q, %+v is desired; want it held: %t", c.waiting, c.trusted, w, c.want)
		}
	}
}

// parts returns the parts in which nothing is deleted, as cluster/namespace.
func parts(n change) (list []string) {
	for _, part := range slices.SortedFunc(maps.Keys(n.Deletions), plan.Partition.Compare) {
		list = append(list, part.Source+"/"+part.Namespace)
	}
	return list
}

// planned returns the operations if A&AI holds the first change and the second one is desired.
func planned(first, then change) []plan.Operation {
	desired, current, held := map[aai.Key]aai.Document{}, map[aai.Key]aai.Document{}, map[aai.Key]bool{}
	for key, w := range first.Desired {
		if w.Document != nil {
			current[key] = *w.Document
		}
	}
	for key, w := range then.Desired {
		held[key] = w.Held
		if w.Document != nil {
			desired[key] = *w.Document
		}
	}
	o := plan.Options{Owner: options().Owner(), LabelPrefix: options().LabelPrefix}
	return plan.Diff(desired, current, plan.Guards{Keys: held, Deletions: then.Deletions}, o).Operations
}
