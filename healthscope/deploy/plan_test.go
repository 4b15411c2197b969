package deploy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// plan returns the plan of the context in a recording.
func plan(t *testing.T, v values) *deploy.Plan {
	t.Helper()
	p, err := deploy.NewPlan(v.snapshot(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run takes all steps of a progress, and returns them by app and cluster. refuse reports whether a step is refused.
func run(w *deploy.Progress, refuse func(deploy.Step) bool) map[string][]string {
	taken := map[string][]string{}
	for steps := w.Take(); len(steps) > 0; steps = w.Take() {
		for _, s := range steps {
			at := s.App + " in " + s.Cluster
			taken[at] = append(taken[at], strings.TrimSpace(string(s.Verb)+" "+s.Resource.Name))
			outcome := deploy.Acknowledged
			if refuse(s) {
				outcome = deploy.Refused
			}
			w.Complete(s, outcome)
		}
	}
	return taken
}

func never(deploy.Step) bool { return false }

// TestRefusalBlocksItsSequenceUntilRetry asserts that a refusal does not stop the app's other cluster and other apps, and that a retry takes
// the refused steps and the steps after them, and no others. A termination also deletes all other resources of the sequence.
func TestRefusalBlocksItsSequenceUntilRetry(t *testing.T) {
	p := plan(t, read(t, "created.tsv"))
	refused := func(s deploy.Step) bool { return s.Resource.Name == "web+Deployment" && s.Cluster == "p1+edge01" }
	for name, tt := range map[string]struct {
		work         *deploy.Progress
		all, retried []string
	}{
		"instantiation": {
			p.Instantiation(), []string{"begin", "apply bundle", "apply web-cm+ConfigMap", "apply web+Deployment", "apply web-svc+Service"},
			[]string{"apply web+Deployment", "apply web-svc+Service"},
		},
		"termination": {
			p.Termination(), []string{"begin", "delete web-svc+Service", "delete web+Deployment", "delete web-cm+ConfigMap", "delete bundle"},
			[]string{"delete web+Deployment", "delete bundle"},
		},
	} {
		got := run(tt.work, refused)
		if tt.work.Done() || !tt.work.Refused() || !slices.Equal(got["web in p1+edge01"], tt.all[:4]) {
			t.Errorf("%s: done %t, refused %t, steps %q", name, tt.work.Done(), tt.work.Refused(), got["web in p1+edge01"])
		}
		if !slices.Equal(got["web in p1+edge02"], tt.all) || len(got["db in p1+edge01"]) != 4 {
			t.Errorf("%s: a refusal has ended other sequences: %q", name, got)
		}
		tt.work.Retry()
		if got := run(tt.work, refused); len(got) != 1 || !slices.Equal(got["web in p1+edge01"], tt.retried[:1]) {
			t.Errorf("%s, refused again: %q", name, got)
		}
		tt.work.Retry()
		if got := run(tt.work, never); !tt.work.Done() || tt.work.Refused() || !slices.Equal(got["web in p1+edge01"], tt.retried) {
			t.Errorf("%s: done %t, steps %q; want %q", name, tt.work.Done(), got, tt.retried)
		}
	}
}

func TestNewPlanRejectsInvalidContexts(t *testing.T) {
	const web = "/context/42/app/web/"
	tests := map[string]struct {
		changes values
		want    string
	}{
		"apps that wait for each other": {values{
			web + "instruction/dependency/":                 `"[{\"app\":\"db\",\"opstatus\":\"Ready\"}]"`,
			"/context/42/app/db/instruction/dependency/":    `"[{\"app\":\"agent\",\"opstatus\":\"Deployed\"}]"`,
			"/context/42/app/agent/instruction/dependency/": `"[{\"app\":\"web\",\"opstatus\":\"Ready\"}]"`,
		}, "apps wait for each other: agent → web → db → agent"},
		"an app that is not there":     {values{web + "instruction/dependency/": `"[{\"app\":\"cache\",\"opstatus\":\"Ready\"}]"`}, `app "web" depends on app "cache", which is not in the context`},
		"a wait that is negative":      {values{web + "instruction/dependency/": `"[{\"app\":\"db\",\"opstatus\":\"Ready\",\"wait\":-1}]"`}, `app "web": dependency on app "db": wait is -1, and must not be negative`},
		"a resource that is not there": {values{web + "cluster/p1+edge01/resource/instruction/order/": `"{\"resorder\":[\"gone+Pod\"]}"`}, `app "web": cluster "p1+edge01": the order names resource "gone+Pod", which does not exist`},
		"no order of apps":             {values{"/context/42/app/instruction/order/": `"{\"apporder\":[]}"`}, `context "42" has no apps, or an empty order of apps (app/instruction/order)`},
		"the first of two levels": {values{"/context/42/rsync/state/PendingTerminateFlag/": "7", "/context/42/rsync/AppContextEventQueue/": "7"},
			`cannot read "rsync/AppContextEventQueue" of context "42": json: cannot unmarshal number into Go value of type deploy.queueValue`},
		"a hook that is not there": {values{web + "cluster/p1+edge01/resource/instruction/dependency/": `"{\"resdependency\":{\"pre-install\":[\"once+Job\"]}}"`},
			`app "web": cluster "p1+edge01": the order names resource "once+Job", which does not exist`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := read(t, "created.tsv")
			maps.Copy(v, tt.changes)
			if _, err := deploy.NewPlan(v.snapshot(t)); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestContextWithoutOrderHasAllApps(t *testing.T) {
	v := read(t, "created.tsv")
	delete(v, "/context/42/app/instruction/order/")
	if got := len(run(plan(t, v).Instantiation(), never)); got != 6 {
		t.Errorf("%d apps in clusters are deployed, want 3 in 2 clusters each", got)
	}
}

// TestCRDsAreAppliedFirstAndNotDeleted has CRDs that are hooks, and CRDs in the order of resources.
func TestCRDsAreAppliedFirstAndNotDeleted(t *testing.T) {
	v := read(t, "created.tsv")
	at := "/context/42/app/web/cluster/p1+edge01/resource/"
	v[at+"a+CustomResourceDefinition/"], v[at+"b+CustomResourceDefinition/"] = `"a"`, `"b"`
	v[at+"instruction/dependency/"] = `"{\"resdependency\":{\"crd-install\":[\"a+CustomResourceDefinition\"],\"pre-install\":[]}}"`
	v[at+"instruction/order/"] = `"{\"resorder\":[\"web-cm+ConfigMap\",\"b+CustomResourceDefinition\"]}"`
	p := plan(t, v)
	got := run(p.Instantiation(), never)["web in p1+edge01"]
	want := []string{"begin", "define a+CustomResourceDefinition", "define b+CustomResourceDefinition", "apply bundle", "apply web-cm+ConfigMap"}
	if !slices.Equal(got, want) {
		t.Errorf("instantiation: %q, want %q", got, want)
	}
	for name, work := range map[string]*deploy.Progress{"termination": p.Termination(), "removal": p.Removal()} {
		if got := run(work, never)["web in p1+edge01"]; !slices.Equal(got, []string{"begin", "delete web-cm+ConfigMap", "delete bundle"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestApprovalsAreOfSigningRequests(t *testing.T) {
	v := read(t, "created.tsv")
	at := "/context/42/app/web/cluster/p1+edge01/resource/"
	v[at+"a+CertificateSigningRequest/"], v[at+"b+CertificateSigningRequest/"] = `"a"`, `"b"`
	v[at+"instruction/order/"] = `"{\"resorder\":[\"a+CertificateSigningRequest\",\"b+CertificateSigningRequest\",\"web-cm+ConfigMap\"]}"`
	for _, name := range []string{"a+CertificateSigningRequest", "web-cm+ConfigMap"} {
		v[at+name+"/subresource/approval/"] = `"{\"type\":\"Approved\"}"`
	}
	got := map[string]string{}
	for _, target := range plan(t, v).Targets() {
		for _, r := range target.Resources {
			got[r.Name] += r.Approval
		}
	}
	if got["a+CertificateSigningRequest"] != `{"type":"Approved"}` || got["b+CertificateSigningRequest"] != "" || got["web-cm+ConfigMap"] != "" {
		t.Errorf("approvals %q", got)
	}
}

// TestStepsWaitForDependencies asserts that steps wait with any dependencies, in any order in which steps end, and with any
// refused steps. In the end, no step is left that could be taken.
func TestStepsWaitForDependencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		w := p.Instantiation()
		applied, refused, held := map[string]int{}, map[string]bool{}, map[string]bool{}
		running := w.Take()
		for len(running) > 0 {
			i := rapid.IntRange(0, len(running)-1).Draw(t, "ends")
			s := running[i]
			running = slices.Delete(running, i, i+1)
			outcome := deploy.Acknowledged
			if s.Verb == deploy.VerbApply && rapid.IntRange(0, 9).Draw(t, "refused") == 0 {
				outcome, refused[s.App] = deploy.Refused, true
			}
			w.Complete(s, outcome)
			switch {
			case s.Verb == deploy.VerbAwait:
				held[s.App+s.Dependency.App] = true
			case s.Verb == deploy.VerbApply && outcome == deploy.Acknowledged:
				applied[s.App]++
			}
			for _, next := range w.Take() {
				check(t, p, next, applied, held)
				running = append(running, next)
			}
		}
		if failed := len(refused) > 0; w.Done() == failed {
			t.Fatalf("done %t, refused %v", w.Done(), refused)
		}
	})
}

// check fails the test if a step begins too early.
func check(t *rapid.T, p *deploy.Plan, s deploy.Step, applied map[string]int, held map[string]bool) {
	for _, a := range p.Apps {
		switch {
		case s.Verb == deploy.VerbAwait && a.Name == s.Dependency.App:
			if want := len(a.Targets) * len(a.Targets[0].Resources); applied[a.Name] != want {
				t.Fatalf("app %q is awaited with %d of %d resources applied", a.Name, applied[a.Name], want)
			}
		case s.Verb != deploy.VerbAwait && a.Name == s.App:
			for _, d := range a.Dependencies {
				if !held[a.Name+d.App] {
					t.Fatalf("%q of %q begins before %q is %s", s.Verb, a.Name, d.App, d.Criterion)
				}
			}
		}
	}
}

// drawPlan draws a plan whose apps depend on earlier ones.
func drawPlan(t *rapid.T) *deploy.Plan {
	p := &deploy.Plan{ID: "42"}
	for i := range rapid.IntRange(1, 5).Draw(t, "apps") {
		a := deploy.App{Name: fmt.Sprintf("app%d", i)}
		for j := range i {
			if rapid.Bool().Draw(t, "depends") {
				criterion := rapid.SampledFrom([]deploy.Criterion{deploy.CriterionReady, deploy.CriterionDeployed}).Draw(t, "criterion")
				a.Dependencies = append(a.Dependencies, deploy.Dependency{App: p.Apps[j].Name, Criterion: criterion})
			}
		}
		resources := rapid.IntRange(1, 3).Draw(t, "resources")
		for c := range rapid.IntRange(1, 3).Draw(t, "clusters") {
			target := deploy.Target{App: a.Name, Cluster: fmt.Sprintf("p+c%d", c)}
			for r := range resources {
				target.Resources = append(target.Resources, deploy.Resource{Name: fmt.Sprintf("r%d+Pod", r)})
			}
			a.Targets = append(a.Targets, target)
		}
		p.Apps = append(p.Apps, a)
	}
	return p
}

// TestInstantiationSkipsAppliedResources asserts that a resource is not applied again if this event has applied it, before a restart or a
// retry. It is applied again if an earlier event has.
func TestInstantiationSkipsAppliedResources(t *testing.T) {
	const applied, pending, hasFailed = appcontext.ResourceApplied, appcontext.ResourcePending, appcontext.ResourceFailed
	for name, tt := range map[string]struct {
		statuses map[string]appcontext.ResourceStatus
		want     []string
	}{
		"all":                   {map[string]appcontext.ResourceStatus{"pre-install": applied, "a": applied, "b": applied, "post-install": applied}, nil},
		"one":                   {map[string]appcontext.ResourceStatus{"pre-install": applied, "a": applied, "b": pending, "post-install": applied}, []string{"apply bundle", "apply b"}},
		"the hooks before them": {map[string]appcontext.ResourceStatus{"pre-install": applied, "a": hasFailed, "b": pending, "post-install": applied}, []string{"apply bundle", "apply a", "apply b"}},
	} {
		p := withHooks(func(name string) appcontext.ResourceStatus { return tt.statuses[name] })
		if got := run(p.Instantiation(), never)["web in p+c"]; !slices.Equal(got, tt.want) {
			t.Errorf("%s: steps %q, want %q", name, got, tt.want)
		}
	}
	// In a snapshot of values, everything has the same revision. Hence the statuses are not newer than the beginning of the event.
	p := plan(t, read(t, "instantiated.tsv"))
	if got := run(p.Instantiation(), never)["db in p1+edge01"]; !slices.Equal(got, []string{"begin", "apply bundle", "apply db-secret+Secret", "apply db+StatefulSet"}) {
		t.Errorf("steps %q", got)
	}
}

func TestReadingReadsEachObjectOnItsOwn(t *testing.T) {
	p := plan(t, read(t, "created.tsv"))
	work := p.Reading()
	got := run(work, func(s deploy.Step) bool { return s.Resource.Name == "web-cm+ConfigMap" })["web in p1+edge01"]
	if want := []string{"read web-cm+ConfigMap", "read web+Deployment", "read web-svc+Service"}; !slices.Equal(got, want) || work.Done() {
		t.Errorf("steps %q, done %t; want %q", got, work.Done(), want)
	}
	step := deploy.Step{App: "web", Cluster: "p1+edge01", Resource: deploy.Resource{Name: "web+Deployment"}}
	want := appcontext.Write{Handle: "/context/42/app/web/cluster/p1+edge01/resource/web+Deployment/definition/", Value: "{}"}
	if diff := cmp.Diff(want, p.Read(step, "{}")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTerminationLeavesWhatWasOnlyRead(t *testing.T) {
	for queue, want := range map[string]bool{
		`[{"event":"Read","status":"Done"}]`:                                                  true,
		`[{"event":"Read","status":"Done"},{"event":"Instantiate","status":"Skip"}]`:          true,
		`[{"event":"Instantiate","status":"Done"},{"event":"Read","status":"Done"}]`:          false,
		`[{"event":"Instantiate","status":"Error"},{"event":"Terminate","status":"Pending"}]`: false,
	} {
		v := read(t, "created.tsv")
		v["/context/42/rsync/AppContextEventQueue/"] = `{"AcQueue":` + queue + `}`
		if got := plan(t, v).Termination().Done(); got != want {
			t.Errorf("%s: nothing to delete is %t, want %t", queue, got, want)
		}
	}
}

// withHooks returns a plan of one app in one cluster with an object of each hook. status returns their statuses.
func withHooks(status func(name string) appcontext.ResourceStatus) *deploy.Plan {
	resource := func(name string) deploy.Resource { return deploy.Resource{Name: name, Status: status(name)} }
	target := deploy.Target{App: "web", Cluster: "p+c", Resources: []deploy.Resource{resource("a"), resource("b")}, Hooks: map[deploy.Hook][]deploy.Resource{}}
	for _, hook := range []deploy.Hook{deploy.HookPreInstall, deploy.HookPostInstall, deploy.HookPreDelete, deploy.HookPostDelete} {
		target.Hooks[hook] = []deploy.Resource{resource(string(hook))}
	}
	return &deploy.Plan{ID: "42", Apps: []deploy.App{{Name: "web", Targets: []deploy.Target{target}}}}
}

var (
	stepsOfInstantiation = []string{
		"begin", "apply bundle of hooks", "run hook pre-install", "delete bundle", "apply bundle", "apply a", "apply b", "run hook post-install",
	}
	stepsOfTermination = []string{
		"run hook pre-delete", "begin", "delete b", "delete a", "run hook post-delete",
		"delete hook pre-install", "delete hook post-install", "delete hook pre-delete", "delete hook post-delete", "delete bundle",
	}
)

// TestFailedHookBlocksLaterSteps fails each hook, and none. A failed pre-delete hook prevents every deletion. An update has no hooks.
func TestFailedHookBlocksLaterSteps(t *testing.T) {
	p := withHooks(func(string) appcontext.ResourceStatus { return "" })
	for _, tt := range []struct {
		fails string
		work  *deploy.Progress
		steps []string
	}{
		{"", p.Instantiation(), stepsOfInstantiation},
		{"pre-install", p.Instantiation(), stepsOfInstantiation[:3]},
		{"post-install", p.Instantiation(), stepsOfInstantiation},
		{"", p.Termination(), stepsOfTermination},
		{"", p.Update(), []string{"begin", "apply bundle", "apply a", "apply b"}},
		{"", p.Removal(), []string{"begin", "delete b", "delete a", "delete bundle"}},
		{"pre-delete", p.Termination(), stepsOfTermination[:1]},
		{"post-delete", p.Termination(), stepsOfTermination[:5]},
	} {
		got := run(tt.work, func(s deploy.Step) bool { return s.Verb == deploy.VerbHook && s.Resource.Name == tt.fails })
		if tt.work.Done() != (tt.fails == "") || !slices.Equal(got["web in p+c"], tt.steps) {
			t.Errorf("%q fails: done %t, steps %q", tt.fails, tt.work.Done(), got)
		}
	}
}

func TestUpdatedSeparatesWhatIsUpToDate(t *testing.T) {
	p := withHooks(func(string) appcontext.ResourceStatus { return "" })
	p.Apps[0].Targets[0].Definitions = []deploy.Resource{{Name: "x+CustomResourceDefinition", UpToDate: true}}
	applied, left := p.Updated()
	for name, tt := range map[string]struct {
		targets []deploy.Target
		want    []string
	}{
		"all":     {p.Targets(), []string{"x+CustomResourceDefinition", "a", "b", "pre-install", "post-install", "pre-delete", "post-delete"}},
		"applied": {applied, []string{"a", "b"}}, "left": {left, []string{"x+CustomResourceDefinition"}},
	} {
		var got []string
		for _, r := range tt.targets[0].All() {
			got = append(got, r.Name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestProgressWithHooksResumesAfterRestart asserts that an interruption at any point does not change the steps for resources,
// before and after it together, and that no hook runs twice.
func TestProgressWithHooksResumesAfterRestart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terminates := rapid.Bool().Draw(t, "terminates")
		work := func(p *deploy.Plan) *deploy.Progress {
			if terminates {
				return p.Termination()
			}
			return p.Instantiation()
		}
		statuses := map[string]appcontext.ResourceStatus{}
		plan := func() *deploy.Plan {
			return withHooks(func(name string) appcontext.ResourceStatus { return statuses[name] })
		}
		whole := run(work(plan()), never)["web in p+c"]
		var taken []string
		w := work(plan())
		for range rapid.IntRange(0, len(whole)).Draw(t, "until") {
			s := w.Take()[0]
			taken = append(taken, strings.TrimSpace(string(s.Verb)+" "+s.Resource.Name))
			w.Complete(s, deploy.Acknowledged)
			switch s.Verb {
			case deploy.VerbHook, deploy.VerbApply:
				statuses[s.Resource.Name] = appcontext.ResourceApplied
			case deploy.VerbDelete, deploy.VerbDeleteHook:
				statuses[s.Resource.Name] = appcontext.ResourceDeleted
			default: // It has no status of its own.
			}
		}
		taken = append(taken, run(work(plan()), never)["web in p+c"]...)
		ofResources := func(steps []string) []string {
			return slices.DeleteFunc(slices.Clone(steps), func(s string) bool { return s == "begin" || strings.Contains(s, "bundle") })
		}
		if !slices.Equal(ofResources(taken), ofResources(whole)) {
			t.Fatalf("steps %q, want %q", taken, whole)
		}
	})
}

// TestStepsWriteEMCOKeys takes all steps of an event, and compares the states of apps, clusters and resources with a recording. EMCO also writes
// statuses into the context of an update, which nobody reads.
func TestStepsWriteEMCOKeys(t *testing.T) {
	states := func(v values) values {
		states := maps.Clone(v)
		maps.DeleteFunc(states, func(key, _ string) bool {
			return !strings.Contains(key, "/app/") || strings.HasPrefix(key, "/context/43/") && strings.HasSuffix(key, "/status/")
		})
		return states
	}
	for after, tt := range map[string]struct {
		before string
		take   func(v values)
	}{
		"instantiated.tsv":   {"created.tsv", func(v values) { p := plan(t, v); v.take(t, p, p.Instantiation()) }},
		"terminated.tsv":     {"instantiated.tsv", func(v values) { p := plan(t, v); v.take(t, p, p.Termination()) }},
		"update.updated.tsv": {"update.created.tsv", func(v values) { to, from := v.update(t); v.take(t, to, to.Update()); v.take(t, from, from.Removal()) }},
	} {
		v := read(t, tt.before)
		tt.take(v)
		if diff := cmp.Diff(states(read(t, after)), states(v)); diff != "" {
			t.Errorf("%s (-recorded +written):\n%s", after, diff)
		}
	}
}

// take takes all steps of a progress, which succeed, and writes what is recorded of them.
func (v values) take(t *testing.T, p *deploy.Plan, w *deploy.Progress) {
	t.Helper()
	for _, target := range p.Targets() {
		v.apply(t, []appcontext.Write{p.ConnectivityWrite(target.App, target.Cluster, appcontext.ConnectivityAvailable)})
	}
	for steps := w.Take(); len(steps) > 0; steps = w.Take() {
		for _, s := range steps {
			switch s.Verb {
			case deploy.VerbBegin:
				v.apply(t, p.Begin(s))
			case deploy.VerbApply:
				v.apply(t, p.Result(s, appcontext.ResourceApplied, "", false))
			case deploy.VerbDelete:
				v.apply(t, p.Result(s, appcontext.ResourceDeleted, "", false))
			default: // It has no status of its own.
			}
			w.Complete(s, deploy.Acknowledged)
		}
	}
}

// update returns the plans of an update from context 42 to context 43.
func (v values) update(t *testing.T) (to, from *deploy.Plan) {
	t.Helper()
	before, after := v.snapshotOf(t, "42"), v.snapshotOf(t, "43")
	to, err := deploy.Contexts{Acted: after, Status: before, Others: []*appcontext.Snapshot{before}}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if from, err = (deploy.Contexts{Acted: before, Status: before, Others: []*appcontext.Snapshot{after}}).Plan(); err != nil {
		t.Fatal(err)
	}
	return to, from
}

// TestProblemIsStoredBesideStatus asserts that a problem is written with a status, and removed with the next status.
func TestProblemIsStoredBesideStatus(t *testing.T) {
	p := plan(t, read(t, "instantiated.tsv"))
	step := deploy.Step{App: "web", Cluster: "p1+edge01", Resource: deploy.Resource{Name: "web+Deployment"}}
	const status appcontext.Handle = "/context/42/app/web/cluster/p1+edge01/resource/web+Deployment/status/"
	beside := func(writes []appcontext.Write) (values []any) {
		for _, w := range writes {
			if w.Sidecar && w.Handle == status {
				values = append(values, w.Value)
			}
		}
		return values
	}
	begin := p.Termination().Take()
	i := slices.IndexFunc(begin, func(s deploy.Step) bool { return s.App == step.App && s.Cluster == step.Cluster })
	for name, tt := range map[string]struct {
		writes []appcontext.Write
		want   []any
	}{
		"a problem":             {p.Result(step, appcontext.ResourceFailed, "refused", false), []any{"refused"}},
		"no problem after one":  {p.Result(step, appcontext.ResourceApplied, "", true), []any{nil}},
		"no problem":            {p.Result(step, appcontext.ResourceApplied, "", false), nil},
		"the work begins again": {p.Begin(begin[i]), []any{nil}},
	} {
		if diff := cmp.Diff(tt.want, beside(tt.writes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestUpdateSkipsUnchangedResources asserts that an update skips a resource if it is applied, byte by byte as desired, by a
// context that is known to contain it.
func TestUpdateSkipsUnchangedResources(t *testing.T) {
	const at = "/context/42/app/web/cluster/p1+edge01/resource/"
	tests := map[string]struct {
		changes values
		want    []string
	}{
		"what is equal is not applied again": {nil, []string{"begin", "apply bundle", "apply u-changed+ConfigMap", "apply u-added+ConfigMap"}},
		"what another update has changed is": {values{at + "u-same+ConfigMap/reference/": `"44"`}, []string{"begin", "apply bundle", "apply u-same+ConfigMap", "apply u-changed+ConfigMap", "apply u-added+ConfigMap"}},
		"what has failed is":                 {values{at + "u+Deployment/status/": `{"Status":"Failed"}`}, []string{"begin", "apply bundle", "apply u-changed+ConfigMap", "apply u+Deployment", "apply u-added+ConfigMap"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := read(t, "update.created.tsv")
			v["/context/43/rsync/state/CurrentState/"] = `{"Status":"Instantiating"}`
			maps.Copy(v, tt.changes)
			to, from := v.update(t)
			if got := run(to.Update(), never)["web in p1+edge01"]; !slices.Equal(got, tt.want) {
				t.Errorf("steps %q, want %q", got, tt.want)
			}
			if got := run(from.Removal(), never)["web in p1+edge01"]; !slices.Equal(got, []string{"begin", "delete u-removed+ConfigMap"}) {
				t.Errorf("deleted %q", got)
			}
		})
	}
}
