package inventory

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/sync"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

var shop = name("shop", "shop")

// passOf returns the report of a pass that found these objects.
func passOf(objects map[string]sync.ObjectStatus) sync.Report {
	r := sync.Report{Changed: map[aai.Key]sync.ObjectStatus{}}
	for name, o := range objects {
		m := member("shop", name, healthscope.Ready)
		o.Resource = stdcmp.Or(o.Resource, m.Key)
		r.Changed[keyOf(m)] = o
	}
	return r
}

// note records a pass in a status.
func note(s *Status, tenant aai.Tenant, r sync.Report, err error, partial bool) {
	s.recordPass(tenant, change{partial: partial}, r, err, noon)
}

func TestReport(t *testing.T) {
	web, db := member("shop", "web", healthscope.Ready), member("shop", "db", healthscope.Failed)
	ok := sync.ObjectStatus{State: sync.Synced}
	down := fmt.Errorf("cannot synchronize tenant %q: %w", tenant, &aai.Error{Op: aai.OpList, URI: "/x", Kind: aai.Retry, Message: "no answer", Err: errors.New("EOF"), TransactionID: "t-1"})
	denied := fmt.Errorf("cannot synchronize tenant %q: %w", tenant, &aai.Error{Op: aai.OpList, URI: "/x", Status: 403, Kind: aai.Misconfigured, Problem: aai.ProblemCredentials, Message: "A&AI refuses the user or the password", TransactionID: "t-1"})
	single := fmt.Errorf("cannot synchronize tenant %q: %w", tenant, &aai.Error{Op: aai.OpPut, URI: "/x", Status: 500, Kind: aai.Retry, TransactionID: "t-1"})
	counts := func(synced, pending, failed int32) corev1alpha2.InventoryStatus {
		return corev1alpha2.InventoryStatus{Synced: synced, Pending: pending, Failed: failed}
	}
	cases := map[string]struct {
		members   []scope.AppMember
		truncated []string
		objects   map[string]sync.ObjectStatus
		err       error
		partial   bool
		never     bool // there was no pass
		want      scope.InventoryReport
	}{
		"no members":            {},
		"no members, no pass":   {never: true},
		"before the first pass": {members: placed(web), never: true, want: scope.InventoryReport{Waiting: true}},
		"a pass that did not know of all": {
			members: placed(web, db), objects: map[string]sync.ObjectStatus{"web": ok}, partial: true, want: scope.InventoryReport{Waiting: true},
		},
		"a pass that knew of these, if not of all": {
			members: placed(web), objects: map[string]sync.ObjectStatus{"web": ok}, partial: true, want: scope.InventoryReport{InventoryStatus: counts(1, 0, 0)},
		},
		"all synced": {members: placed(web, db), objects: map[string]sync.ObjectStatus{"web": ok, "db": ok}, want: scope.InventoryReport{InventoryStatus: counts(2, 0, 0)}},
		"what does not go there does not count": {
			members: placed(web, member("elsewhere", "web", healthscope.Ready), member("shop", "x", healthscope.Unknown), member("shop", "y", healthscope.NotPresent)),
			objects: map[string]sync.ObjectStatus{"web": ok}, want: scope.InventoryReport{InventoryStatus: counts(1, 0, 0), Reason: scope.ReasonNoRegion, Message: `Service/web: no entry of inventory.regions matches namespace "elsewhere" of cluster "edge"`},
		},
		"no region for any of them": {
			members: placed(member("elsewhere", "web", healthscope.Ready), bundleMember(healthscope.ReasonNotFound)),
			want:    scope.InventoryReport{Reason: scope.ReasonNoRegion, Message: `Service/web: no entry of inventory.regions matches namespace "elsewhere" of cluster "edge"`},
		},
		"only what is not known":     {members: placed(member("shop", "x", healthscope.Unknown))},
		"kinds that do not go there": {members: placed(bundleMember(healthscope.ReasonNotFound))},
		"a member that came later": {
			members: placed(web, db), objects: map[string]sync.ObjectStatus{"web": ok},
			want: scope.InventoryReport{InventoryStatus: counts(1, 1, 0), Reason: scope.ReasonPending, Message: `Service/db in tenant "o/r/t": waits for its turn`},
		},
		"something is missing": {
			members: placed(web, db), objects: map[string]sync.ObjectStatus{
				"web": {State: sync.Pending, Reason: sync.ReasonMissingDependency, Message: `cannot put "/a/b": status 404: no tenant (transaction t-1)`}, "db": ok,
			},
			want: scope.InventoryReport{InventoryStatus: counts(1, 1, 0), Reason: scope.ReasonPending, Message: `Service/web in tenant "o/r/t": status 404: no tenant`},
		},
		"the first of several": {
			members: placed(db, web), objects: map[string]sync.ObjectStatus{
				"web": {State: sync.Failed, Reason: sync.ReasonRejected, Message: "not this"}, "db": {State: sync.Failed, Reason: sync.ReasonRejected, Message: "not that"},
			},
			want: scope.InventoryReport{InventoryStatus: counts(0, 0, 2), Reason: scope.ReasonRefused, Message: `Service/db in tenant "o/r/t": not that`},
		},
		"refused goes before pending": {
			members: placed(db, web), objects: map[string]sync.ObjectStatus{
				"db": {State: sync.Pending, Reason: sync.ReasonNotTried}, "web": {State: sync.Failed, Reason: sync.ReasonConflict, Message: `"/a/b" belongs to data-owner "x"`},
			},
			want: scope.InventoryReport{InventoryStatus: counts(0, 1, 1), Reason: scope.ReasonRefused, Message: `Service/web in tenant "o/r/t": its place belongs to data-owner "x"`},
		},
		"A&AI is down": {
			members: placed(web, db), objects: map[string]sync.ObjectStatus{"web": {State: sync.Pending, Reason: sync.ReasonNotTried, Message: "x"}, "db": ok}, err: down,
			want: scope.InventoryReport{InventoryStatus: counts(1, 1, 0), Reason: scope.ReasonUnavailable, Message: `cannot synchronize tenant "o/r/t": no answer: EOF; it is tried again within 2 seconds`},
		},
		"A&AI is down, which is graver than a refusal": {
			members: placed(web), objects: map[string]sync.ObjectStatus{"web": {State: sync.Failed, Reason: sync.ReasonRejected, Message: "x"}}, err: down,
			want: scope.InventoryReport{InventoryStatus: counts(0, 0, 1), Reason: scope.ReasonUnavailable, Message: `cannot synchronize tenant "o/r/t": no answer: EOF; it is tried again within 2 seconds`},
		},
		"A&AI wants another user": {
			members: placed(web), objects: map[string]sync.ObjectStatus{"web": {State: sync.Pending, Reason: sync.ReasonNotTried}}, err: denied,
			want: scope.InventoryReport{InventoryStatus: counts(0, 1, 0), Reason: scope.ReasonMisconfigured, Message: "A&AI refuses the user or the password; correct the files inventory.usernameFile and inventory.passwordFile; it is tried again within 60 seconds"},
		},
		"trouble with resources of others": {members: placed(web), objects: map[string]sync.ObjectStatus{"web": ok}, err: single, want: scope.InventoryReport{InventoryStatus: counts(1, 0, 0)}},
		"trouble with a resource of the scope": {
			members: placed(web), objects: map[string]sync.ObjectStatus{"web": {State: sync.Pending, Reason: sync.ReasonUnavailable, Message: `cannot put "/a/b": status 500 (transaction t-1)`}}, err: single,
			want: scope.InventoryReport{InventoryStatus: counts(0, 1, 0), Reason: scope.ReasonUnavailable, Message: `Service/web in tenant "o/r/t": status 500`},
		},
		"a bundle that does not name all": {
			members: placed(web), truncated: []string{"edge"}, objects: map[string]sync.ObjectStatus{"web": ok},
			want: scope.InventoryReport{InventoryStatus: counts(1, 0, 0), Reason: scope.ReasonNotListed, Message: `the resources in cluster "edge" are not all known: A&AI has an old state of the others, or none`},
		},
		"a link that is allowed": {members: linkedTo("vnf-1", placed(web)...), objects: map[string]sync.ObjectStatus{"web": ok}, want: scope.InventoryReport{InventoryStatus: counts(1, 0, 0)}},
		"a link that is denied": {
			members: linkedTo("vnf-2", placed(web, db)...), objects: map[string]sync.ObjectStatus{"web": ok, "db": ok},
			want: scope.InventoryReport{InventoryStatus: counts(2, 0, 0), Reason: scope.ReasonLinkDenied, Message: `Service/web: the configuration does not let scopes in namespace "shop" link to generic-vnf "vnf-2"`},
		},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			l := newStatus(noInputs())
			if !c.never {
				note(l, tenant, passOf(c.objects), c.err, c.partial)
			}
			if diff := cmp.Diff(&c.want, l.Report(shop, c.members, c.truncated)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestOnlyAffectedScopesAreNotified has passes with all kinds of results, and one scope in another tenant.
func TestOnlyAffectedScopesAreNotified(t *testing.T) {
	t.Parallel()
	web, db := member("shop", "web", healthscope.Ready), member("back", "db", healthscope.Ready)
	i := filled(judgedScopes{shop: judged(placed(web)...), name("back", "back"): judged(placed(db)...)}, nil, nil, configv1alpha1.SelectScoped)
	first := i.take(tenant, oneCluster{})
	i.take(shed, oneCluster{})
	s := newStatus(i)
	var notified []types.NamespacedName
	s.Subscribe(func(n types.NamespacedName) { notified = append(notified, n) })
	pass := func(o sync.ObjectStatus, err error, n change, want ...types.NamespacedName) {
		t.Helper()
		notified = nil
		s.recordPass(tenant, n, passOf(map[string]sync.ObjectStatus{"web": o}), err, noon)
		if diff := cmp.Diff(want, notified); diff != "" {
			t.Errorf("-want +notified:\n%s", diff)
		}
	}
	ok, waiting := sync.ObjectStatus{State: sync.Synced}, sync.ObjectStatus{State: sync.Pending, Reason: sync.ReasonMissingDependency, Message: "no tenant (transaction 1)"}
	pass(waiting, nil, first, shop)
	waiting.Message = "no tenant (transaction 2)"
	pass(waiting, nil, change{}) // The same again, in another request.
	pass(ok, nil, change{}, shop)
	pass(ok, nil, change{partial: true})
	pass(ok, nil, change{}) // The scope has not waited for it.
	pass(ok, errors.New("no pass"), change{}, shop)
	pass(ok, nil, change{}, shop)
	pass(ok, nil, change{ownerChanged: []healthscope.Key{web.Key}}, shop)
	pass(sync.ObjectStatus{}, nil, change{partial: true}, shop)
	if !s.Report(shop, placed(web), nil).Waiting {
		t.Error("the scope does not wait")
	}
	pass(sync.ObjectStatus{}, nil, change{}, shop) // It has waited for a pass with complete inputs.
	i.registry = judgedScopes{}
	i.scopeJudged(shop)
	pass(waiting, nil, change{})
}

// TestYoungerScopeIsNotifiedOfConflict has two scopes with the same resource, and removes the older one.
func TestYoungerScopeIsNotifiedOfConflict(t *testing.T) {
	t.Parallel()
	web := member("shop", "web", healthscope.Ready)
	old, young := name("shop", "z"), name("shop", "a")
	j := judgedScopes{old: judged(placed(web)...), young: judged(placed(web)...)}
	i := newInputs(options(), configv1alpha1.SelectScoped, j, nil)
	for n, age := range map[types.NamespacedName]time.Duration{old: time.Hour, young: time.Minute} {
		i.scopeUpdated(n, noon.Add(-age), 1)
		i.scopeJudged(n)
	}
	s := newStatus(i)
	var notified []types.NamespacedName
	s.Subscribe(func(n types.NamespacedName) { notified = append(notified, n) })
	pass := func(want ...string) {
		t.Helper()
		notified = nil
		s.recordPass(tenant, i.take(tenant, oneCluster{}), passOf(map[string]sync.ObjectStatus{"web": {State: sync.Synced}}), nil, noon)
		var conflicts []string
		for _, n := range notified {
			conflicts = append(conflicts, n.Name+": "+s.Report(n, placed(web), nil).Conflict)
		}
		if diff := cmp.Diff(want, conflicts); diff != "" {
			t.Errorf("notified, and their conflicts: -want +got:\n%s", diff)
		}
	}
	pass(`a: Service/web belongs to the older scope "shop/z" in A&AI`, "z: ")
	pass()
	delete(j, old)
	i.scopeDeleted(old)
	i.scopeJudged(old)
	pass("a: ")
}

func TestObjectsMetric(t *testing.T) {
	l := newStatus(noInputs())
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(l)
	expect := func(want string) {
		t.Helper()
		if want != "" {
			want = "# HELP healthscope_aai_objects The resources that go to A&AI, by the state of their synchronization: synced, pending or failed. A state without resources has no series.\n" +
				"# TYPE healthscope_aai_objects gauge\n" + want
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "healthscope_aai_objects"); err != nil {
			t.Error(err)
		}
	}
	expect("")
	synced, pending, failed := sync.ObjectStatus{State: sync.Synced}, sync.ObjectStatus{State: sync.Pending}, sync.ObjectStatus{State: sync.Failed}
	note(l, tenant, passOf(map[string]sync.ObjectStatus{"a": synced, "b": synced, "c": failed}), nil, false)
	note(l, shed, passOf(map[string]sync.ObjectStatus{"a": synced, "b": synced, "c": synced}), nil, false)
	expect("healthscope_aai_objects{state=\"failed\"} 1\nhealthscope_aai_objects{state=\"synced\"} 5\n")
	note(l, tenant, passOf(map[string]sync.ObjectStatus{"a": pending, "b": pending, "c": pending}), errors.New("down"), false)
	expect("healthscope_aai_objects{state=\"pending\"} 3\nhealthscope_aai_objects{state=\"synced\"} 3\n")
}

func TestStableMessage(t *testing.T) {
	cases := map[string]string{
		"":     "",
		"such": "such",
		`cannot synchronize tenant "o/r/t": cannot list "/a/b%2Fc": no answer: read tcp 127.0.0.1:40212->127.0.0.1:8443: read: connection reset by peer (transaction 0e9a)`: `cannot synchronize tenant "o/r/t": no answer: read tcp 127.0.0.1:8443: read: connection reset by peer`,
		`cannot put "/a": status 404 SVC3001 ERR.5.4.6114: no parent (really) (transaction 0e9a)`:                                                                           `status 404 SVC3001 ERR.5.4.6114: no parent (really)`,
		`"/a/b" belongs to data-owner ""`: `its place belongs to data-owner ""`,
		`there are no credentials: cannot read credentials: open /etc/aai/password: no such file or directory`: `there are no credentials: cannot read credentials: open /etc/aai/password: no such file or directory`,
	}
	for text, want := range cases {
		if got := stableMessage(text); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", text, got, want)
		}
	}
}
