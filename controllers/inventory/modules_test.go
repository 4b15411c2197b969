package inventory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/sync"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// module returns a module of the VNF to which scopes in namespace shop may link.
func module(id string) aai.VFModule { return aai.VFModule{GenericVNFID: "vnf-1", ID: id} }

// says returns the judgement of a scope whose apps report the states of modules, as up, down and unknown.
func says(words ...string) *scope.Judged {
	j := judged()
	for _, word := range words {
		id, state, _ := strings.Cut(word, "=")
		app := scope.LinkedApp{Links: corev1alpha2.InventoryLinks{GenericVNFID: "vnf-1", VFModuleID: id}, Summary: healthscope.Summary{Total: 2, Ready: 1, Healthy: 1}}
		switch state {
		case "up":
			app.Summary.Ready, app.Summary.Healthy = 2, 2
		case "unknown":
			app.Summary.Unknown = 1
		default:
			app.Summary.Failed = 1
		}
		j.LinkedApps = append(j.LinkedApps, app)
	}
	return j
}

// naming returns a scope whose apps name modules.
func naming(name types.NamespacedName, ids ...string) *corev1alpha2.HealthScope {
	s := existing(name, noon, 1)
	s.Spec.Apps = []corev1alpha2.ScopeApp{{Name: "without"}}
	for _, id := range ids {
		s.Spec.Apps = append(s.Spec.Apps, corev1alpha2.ScopeApp{Name: "app-" + id, Inventory: &corev1alpha2.InventoryLinks{GenericVNFID: "vnf-1", VFModuleID: id}})
	}
	return s
}

func TestDesiredStatusOfModules(t *testing.T) {
	in, out := aai.InServicePath, aai.OutOfServicePath
	cases := map[string]struct {
		judged judgedScopes
		// waiting are the modules that scopes without a judgement name.
		waiting map[types.NamespacedName][]string
		want    statuses
	}{
		"each for itself":                        {judged: judgedScopes{shop: says("a=up", "b=down", "c=unknown")}, want: statuses{module("a"): in, module("b"): out}},
		"the worst of two apps":                  {judged: judgedScopes{shop: says("a=up", "a=down")}, want: statuses{module("a"): out}},
		"the worst of two scopes":                {judged: judgedScopes{shop: says("a=up", "b=up"), name("shop", "z"): says("a=down", "b=unknown")}, want: statuses{module("a"): out}},
		"a namespace that may not link":          {judged: judgedScopes{name("back", "x"): says("a=down")}, want: statuses{}},
		"one that waits to be judged holds":      {judged: judgedScopes{shop: says("a=up", "b=up")}, waiting: map[types.NamespacedName][]string{name("shop", "z"): {"a"}}, want: statuses{module("b"): in}},
		"but what is down is down":               {judged: judgedScopes{shop: says("a=down")}, waiting: map[types.NamespacedName][]string{name("shop", "z"): {"a"}}, want: statuses{module("a"): out}},
		"of a namespace that may not link, not":  {judged: judgedScopes{shop: says("a=up")}, waiting: map[types.NamespacedName][]string{name("back", "z"): {"a"}}, want: statuses{module("a"): in}},
		"one that was judged before it was read": {judged: judgedScopes{shop: says("a=up")}, waiting: map[types.NamespacedName][]string{shop: {"a"}}, want: statuses{module("a"): in}},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			i := newInputs(options(), configv1alpha1.SelectScoped, c.judged, nil)
			for n := range c.judged {
				i.scopeJudged(n)
			}
			for n, ids := range c.waiting {
				i.modulesNamed(naming(n, ids...))
			}
			got, _ := i.desiredModules("vnf-1")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestVNFsAreWokenWhenModulesChange(t *testing.T) {
	j := judgedScopes{}
	i := newInputs(options(), configv1alpha1.SelectScoped, j, nil)
	var woken []string
	i.onModuleChange(func(v string) { woken = append(woken, v) })
	expect := func(what string, n int, do func()) {
		t.Helper()
		woken = nil
		do()
		if len(woken) != n {
			t.Errorf("%s: woken are %v, want %d", what, woken, n)
		}
	}
	expect("it appears", 1, func() { i.modulesNamed(naming(shop, "a", "b")) })
	expect("it appears again", 0, func() { i.modulesNamed(naming(shop, "a", "b")) })
	j[shop] = says("a=up", "b=up")
	expect("it is judged", 1, func() { i.scopeJudged(shop) })
	expect("it is judged the same", 0, func() { i.scopeJudged(shop) })
	j[shop] = says("a=up", "b=down")
	expect("one is down", 1, func() { i.scopeJudged(shop) })
	j[shop] = says("a=up")
	expect("one is not named any more", 1, func() { i.scopeJudged(shop) })
	delete(j, shop)
	expect("it goes", 1, func() { i.scopeJudged(shop) })
	expect("it has gone", 0, func() { i.scopeJudged(shop) })
	if len(i.scopes) > 0 {
		t.Errorf("the inputs hold %v", i.scopes)
	}
}

// TestLateModulesLeaveTheGuards checks that the controller of modules, if it is behind, does not take back what that of tenants knows.
func TestLateModulesLeaveTheGuards(t *testing.T) {
	j := judgedScopes{shop: says("a=up")}
	i := newInputs(options(), configv1alpha1.SelectScoped, j, nil)
	late := naming(shop, "a")
	i.scopeJudged(shop)
	i.scopeUpdated(shop, noon, late.Generation+1)
	i.modulesNamed(late)
	if i.allJudged(nil) {
		t.Error("the new spec counts as judged")
	}
	i.scopeDeleted(shop)
	delete(j, shop)
	i.scopeJudged(shop)
	i.modulesNamed(late)
	if i.scopes[shop].exists() {
		t.Error("the scope exists again")
	}
}

// TestIncrementalModuleInputsEqualFullReplay changes judgements at random. It checks that the desired statuses are the same as
// those of inputs that receive everything at once.
func TestIncrementalModuleInputsEqualFullReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := judgedScopes{}
		i := newInputs(options(), configv1alpha1.SelectScoped, j, nil)
		asked := map[string]bool{}
		i.onModuleChange(func(v string) { asked[v] = true })
		last, _ := i.desiredModules("vnf-1")
		t.Repeat(map[string]func(*rapid.T){
			"judge": func(t *rapid.T) {
				n := anyScope(t)
				j[n] = says(rapid.SliceOfN(rapid.SampledFrom([]string{"a=up", "a=down", "a=unknown", "b=up", "b=down"}), 0, 3).Draw(t, "says")...)
				i.scopeJudged(n)
			},
			"exists": func(t *rapid.T) {
				i.modulesNamed(naming(anyScope(t), rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "names")...))
			},
			"goes": func(t *rapid.T) {
				n := anyScope(t)
				delete(j, n)
				i.scopeJudged(n)
			},
			"": func(t *rapid.T) {
				now, _ := i.desiredModules("vnf-1")
				if cmp.Diff(last, now) != "" && !asked["vnf-1"] {
					t.Fatalf("what is desired has changed from %v to %v, and it was not woken", last, now)
				}
				last = now
				clear(asked)
			},
		})
		for _, n := range []string{"a", "b", "c"} {
			if j[name("shop", n)] == nil {
				i.scopeJudged(name("shop", n))
			}
		}
		fresh := newInputs(options(), configv1alpha1.SelectScoped, j, nil)
		for n := range j {
			fresh.scopeJudged(n)
		}
		want, wantScopes := fresh.desiredModules("vnf-1")
		got, scopes := i.desiredModules("vnf-1")
		if diff := cmp.Diff(want, got) + cmp.Diff(wantScopes, scopes); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// modulePasses is an A&AI for passes over modules.
type modulePasses struct {
	begun  []time.Time
	asked  []map[aai.VFModule]aai.OperationalStatus
	report sync.ModuleReport
	err    error
}

func (p *modulePasses) SyncModules(_ context.Context, _ string, desired map[aai.VFModule]aai.OperationalStatus) (sync.ModuleReport, error) {
	p.begun, p.asked = append(p.begun, time.Now()), append(p.asked, desired)
	p.report.NextPass = time.Now().Add(10 * time.Minute)
	return p.report, p.err
}

func moduleReconcilerOf(p *modulePasses) *reconciler[string] {
	i := newInputs(options(), configv1alpha1.SelectScoped, judgedScopes{shop: says("a=up")}, nil)
	i.scopeJudged(shop)
	return newModuleReconciler(newStatus(i), oneCluster{}, p)
}

func TestModuleReconcileIntervals(t *testing.T) {
	synced := sync.ModuleReport{Modules: map[aai.VFModule]sync.ObjectStatus{module("a"): {State: sync.Synced}}}
	cases := map[string]struct {
		err         error
		least, most int
	}{
		"nothing to do": {least: 6, most: 7},
		"A&AI is down":  {err: failure(aai.OpModules, 0), least: 1600, most: 1900},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &modulePasses{report: synced, err: c.err}
				r := moduleReconcilerOf(p)
				for end := time.Now().Add(time.Hour); time.Now().Before(end); {
					result, err := r.Reconcile(t.Context(), "vnf-1")
					if err != nil || result.RequeueAfter <= 0 {
						t.Fatalf("got %+v, %v", result, err)
					}
					<-time.After(result.RequeueAfter)
				}
				if n := len(p.begun); n < c.least || n > c.most {
					t.Errorf("%d passes in an hour, want %d to %d", n, c.least, c.most)
				}
				if diff := cmp.Diff(map[aai.VFModule]aai.OperationalStatus{module("a"): aai.InServicePath}, p.asked[0]); diff != "" {
					t.Errorf("asked for, -want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestUnnamedModulesAreNotChanged(t *testing.T) {
	p := &modulePasses{}
	if result, err := moduleReconcilerOf(p).Reconcile(t.Context(), "vnf-2"); err != nil || result.RequeueAfter != 0 || len(p.asked[0]) > 0 {
		t.Errorf("got %+v, %v after %v", result, err, p.asked)
	}
}

func TestScopesAreNotifiedOfTheirModules(t *testing.T) {
	web := member("shop", "web", healthscope.Ready)
	members := placed(web)
	members[0].Links = &corev1alpha2.InventoryLinks{GenericVNFID: "vnf-1", VFModuleID: "a"}
	down := failure(aai.OpModules, 0)
	cases := map[string]struct {
		object  sync.ObjectStatus
		err     error
		members []scope.AppMember
		reason  scope.Reason
		message string
	}{
		"all is well":                  {object: sync.ObjectStatus{State: sync.Synced}, members: members},
		"it is not there":              {object: sync.ObjectStatus{State: sync.Pending, Reason: sync.ReasonMissingDependency, Message: `generic-vnf "vnf-1" has no vf-module "a"`}, members: members, reason: scope.ReasonPending, message: `operational-status of vf-module "vnf-1/a": generic-vnf "vnf-1" has no vf-module "a"`},
		"A&AI refuses it":              {object: sync.ObjectStatus{State: sync.Failed, Reason: sync.ReasonRejected, Message: `cannot patch "/x": status 400: no (transaction 7)`}, members: members, reason: scope.ReasonRefused, message: `operational-status of vf-module "vnf-1/a": status 400: no`},
		"A&AI is down":                 {object: sync.ObjectStatus{State: sync.Pending, Reason: sync.ReasonNotTried}, err: down, members: members, reason: scope.ReasonUnavailable, message: stableMessage(down.Error()) + "; it is tried again within 2 seconds"},
		"A&AI is down, and it is done": {object: sync.ObjectStatus{State: sync.Synced}, err: down, members: members},
		"it is no matter of the scope": {object: sync.ObjectStatus{State: sync.Failed, Reason: sync.ReasonRejected, Message: "no"}, members: placed(web)},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			l := newStatus(noInputs())
			note(l, tenant, passOf(map[string]sync.ObjectStatus{"web": {State: sync.Synced}}), nil, false)
			before := l.Report(shop, c.members, nil)
			notified, names := []types.NamespacedName(nil), []types.NamespacedName{shop}
			if c.members[0].Links == nil {
				names = nil
			}
			l.Subscribe(func(n types.NamespacedName) { notified = append(notified, n) })
			l.recordModulesPass("vnf-1", names, sync.ModuleReport{Modules: map[aai.VFModule]sync.ObjectStatus{module("a"): c.object}}, c.err, noon)
			got := l.Report(shop, c.members, nil)
			if got.Reason != c.reason || got.Message != c.message || got.Synced != 1 || got.Pending+got.Failed > 0 {
				t.Errorf("got %+v", got)
			}
			if changed := cmp.Diff(before, got) != ""; changed != (len(notified) == 1) {
				t.Errorf("the scope is notified %d times, and its report has changed: %t", len(notified), changed)
			}
			notified = nil
			l.recordModulesPass("vnf-1", names, sync.ModuleReport{Modules: map[aai.VFModule]sync.ObjectStatus{module("a"): c.object}}, c.err, noon)
			if len(notified) > 0 {
				t.Error("the scope is notified though nothing has changed")
			}
			l.recordModulesPass("vnf-1", nil, sync.ModuleReport{}, nil, noon)
			if got = l.Report(shop, c.members, nil); got.Reason != "" || len(l.vnfs) > 0 {
				t.Errorf("afterwards %+v, %d VNFs", got, len(l.vnfs))
			}
		})
	}
}

func TestMetricsOfModulesAndRegions(t *testing.T) {
	l := newStatus(noInputs())
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(l)
	expect := func(name, help, want string) {
		t.Helper()
		if want != "" {
			want = "# HELP " + name + " " + help + "\n# TYPE " + name + " gauge\n" + want
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), name); err != nil {
			t.Error(err)
		}
	}
	modules, help := metricModules.Name, metricModules.Help
	problem, problemHelp := metricProblem.Name, metricProblem.Help
	expect(modules, help, "")
	l.recordModulesPass("vnf-1", nil, sync.ModuleReport{Modules: map[aai.VFModule]sync.ObjectStatus{module("a"): {State: sync.Synced}, module("b"): {State: sync.Pending}}}, nil, noon)
	l.recordModulesPass("vnf-2", nil, sync.ModuleReport{Modules: map[aai.VFModule]sync.ObjectStatus{{GenericVNFID: "vnf-2", ID: "a"}: {State: sync.Pending}}}, errors.New("down"), noon)
	expect(modules, help, "healthscope_aai_vf_modules{state=\"pending\"} 2\nhealthscope_aai_vf_modules{state=\"synced\"} 1\n")
	expect(problem, problemHelp, "healthscope_aai_problem{problem=\"outage\"} 1\n")
	l.inputs.registry = judgedScopes{shop: judged(placed(member("elsewhere", "web", healthscope.Ready))...)}
	l.inputs.scopeJudged(shop)
	expect(problem, problemHelp, "healthscope_aai_problem{problem=\"outage\"} 1\nhealthscope_aai_problem{problem=\"region\"} 1\n")
	l.inputs.registry = judgedScopes{shop: judged(placed(member("shop", "web", healthscope.Ready))...)}
	l.inputs.scopeJudged(shop)
	l.recordModulesPass("vnf-2", nil, sync.ModuleReport{}, nil, noon)
	expect(problem, problemHelp, "")
}

// TestStateOfUnnamedVNFsIsDropped reconciles VNFs that no scope names.
func TestStateOfUnnamedVNFsIsDropped(t *testing.T) {
	t.Parallel()
	p := &modulePasses{}
	r := moduleReconcilerOf(p)
	for n := range 100 {
		result, err := r.Reconcile(t.Context(), fmt.Sprint("gone-", n))
		if err != nil || result.RequeueAfter != 0 {
			t.Fatalf("got %+v, %v", result, err)
		}
	}
	if len(p.begun) != 100 || len(r.notBefore) > 0 {
		t.Errorf("%d passes, and the pauses of %d VNFs are kept", len(p.begun), len(r.notBefore))
	}
}
