package appcontext_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// deployment and settings return bodies of resources in testdata/group.json.
func deployment(name string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + name + "\nspec:\n  replicas: 2\n"
}

const (
	settings = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  greeting: <b>Grüße & \"more\"</b>\n"
	bundle   = `{"ready":false,"resourceCount":0,"configMapStatuses":[{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","annotations":{"note":"<&>"}}}]}`
)

// state is a state in the form in which rsync writes it.
type state struct{ Status string }

// writeGroup creates the context of testdata/group.json with the library, as orchestrator and rsync do.
func writeGroup(t *testing.T, ac *appcontext.AppContext, h appcontext.Handle) {
	t.Helper()
	ctx := t.Context()
	level := func(h appcontext.Handle, level string, value any) {
		t.Helper()
		must(ac.AddLevelValue(ctx, h, level, value))(t)
	}
	err := ac.AddCompositeAppMeta(ctx, appcontext.CompositeAppMeta{
		Project: "retail", CompositeApp: "shop", Version: "v2", Release: "r1", DeploymentIntentGroup: "autumn",
		Namespace: "shop", Level: "0", LogicalCloud: "lc1",
	})
	noError(t, err)
	level(h, "stopflag", false)
	level(h, "status", state{"Instantiating"})
	level(h, "rsync/state/CurrentState", state{"Instantiated"})
	level(h, "rsync/state/DesiredState", state{"Instantiated"})
	level(h, "rsync/state/PendingTerminateFlag", false)
	type event struct {
		Event  string `json:"event"`
		Status string `json:"status"`
	}
	level(h, "rsync/AppContextEventQueue", struct{ AcQueue []event }{[]event{{"Instantiate", "Done"}}})
	must(ac.AddInstruction(ctx, h, "app", "order", `{"apporder":["cart"]}`))(t)
	must(ac.AddInstruction(ctx, h, "app", "order", `{"apporder":["store","cart"]}`))(t) // It replaces the other.
	must(ac.AddInstruction(ctx, h, "app", "dependency", `{"cart":"go","store":"go"}`))(t)

	cart := must(ac.AddApp(ctx, h, "cart"))(t)
	writeCluster(t, ac, cart, "west+berlin", "1", []string{"cart+Deployment", deployment("cart")})
	store := must(ac.AddApp(ctx, h, "store"))(t)
	writeCluster(t, ac, store, "west+berlin", "1", []string{"web+Deployment", deployment("web"), "settings+ConfigMap", settings})
	writeCluster(t, ac, store, "west+bonn", "2", []string{"web+Deployment", deployment("web"), "settings+ConfigMap", settings})
	type dependency struct {
		App      string `json:"app"`
		OpStatus string `json:"opstatus"`
		Wait     int    `json:"wait"`
	}
	level(store, "instruction/dependency", []dependency{{"cart", "Ready", 5}})
	noError(t, ac.UpdateStatusValue(ctx, must(ac.GetLevelHandle(ctx, h, "status"))(t), state{"Instantiated"}))
}

// writeCluster adds a cluster with resources, given as names and bodies in turn. The resources in group "1" are applied.
func writeCluster(t *testing.T, ac *appcontext.AppContext, app appcontext.Handle, name, group string, resources []string) {
	t.Helper()
	ctx := t.Context()
	c := must(ac.AddCluster(ctx, app, name))(t)
	noError(t, ac.AddClusterMetaGrp(ctx, c, group))
	applied, connectivity, status := group == "1", "Retrying", "Pending"
	if applied {
		connectivity, status = "Available", "Applied"
	}
	values := map[string]any{"readystatus": connectivity, "reference": ac.ID()}
	if applied {
		values["resourcesready"], values["status"] = true, bundle
	}
	for level, value := range values {
		must(ac.AddLevelValue(ctx, c, level, value))(t)
	}
	order := `{"resorder":["` + resources[0] + `"`
	for i := 0; i < len(resources); i += 2 {
		if i > 0 {
			order += `,"` + resources[i] + `"`
		}
		r := must(ac.AddResource(ctx, c, resources[i], resources[i+1]))(t)
		must(ac.AddLevelValue(ctx, r, "status", state{status}))(t)
		if applied {
			must(ac.AddLevelValue(ctx, r, "reference", ac.ID()))(t)
			must(ac.AddLevelValue(ctx, r, "resready", true))(t)
		}
	}
	must(ac.AddInstruction(ctx, c, "resource", "order", order+"]}"))(t)
}

func TestWritesHaveEMCOKeysAndValues(t *testing.T) {
	store := open(t, appcontext.Options{})
	ac, h := newContext(t, store)
	writeGroup(t, ac, h)
	want := dump(t, ac.ID())
	client := rawClient(t, endpoint(t))
	if diff := cmp.Diff(want, raw(t, client, string(h))); diff != "" {
		t.Errorf("etcd holds something else than EMCO's layout (-want +got):\n%s", diff)
	}
	snapshot := must(store.Snapshot(t.Context(), ac.ID()))(t)
	if diff := cmp.Diff(want, contents(snapshot)); diff != "" {
		t.Errorf("the snapshot differs from what etcd holds (-want +got):\n%s", diff)
	}
}

// summary holds what a reader uses of a snapshot.
type summary struct {
	Meta  appcontext.CompositeAppMeta
	State appcontext.State
	Apps  []appSummary
}

type appSummary struct {
	Name, Bundle string
	Clusters     []clusterSummary
}

type clusterSummary struct {
	Provider, Name, Bundle string
	Connectivity           appcontext.Connectivity
	Resources              []resourceSummary
}

type resourceSummary struct {
	Object, Kind, Body string
	Status             appcontext.ResourceStatus
}

func summarize(t *testing.T, s *appcontext.Snapshot) summary {
	t.Helper()
	sum := summary{Meta: must(s.Meta())(t), State: must(s.Status())(t)}
	for _, a := range s.Apps() {
		as := appSummary{Name: a.Name(), Bundle: a.BundleName()}
		for _, c := range a.Clusters() {
			as.Clusters = append(as.Clusters, summarizeCluster(t, c))
		}
		sum.Apps = append(sum.Apps, as)
	}
	return sum
}

func summarizeCluster(t *testing.T, c appcontext.Cluster) clusterSummary {
	t.Helper()
	cs := clusterSummary{Bundle: must(c.Bundle())(t), Connectivity: must(c.Connectivity())(t)}
	cs.Provider, cs.Name, _ = c.Split()
	for _, r := range c.Resources() {
		rs := resourceSummary{Body: must(r.Body())(t), Status: must(r.Status())(t)}
		rs.Object, rs.Kind, _ = r.Split()
		cs.Resources = append(cs.Resources, rs)
	}
	return cs
}

func TestReadsContextWrittenByEMCO(t *testing.T) {
	store := open(t, appcontext.Options{})
	client := rawClient(t, endpoint(t))
	const id = "1500450271"
	putRaw(t, client, dump(t, id))
	berlin := func(resources ...resourceSummary) clusterSummary {
		return clusterSummary{Provider: "west", Name: "berlin", Bundle: bundle, Connectivity: appcontext.ConnectivityAvailable, Resources: resources}
	}
	applied := func(object, kind, body string) resourceSummary {
		return resourceSummary{object, kind, body, appcontext.ResourceApplied}
	}
	pending := func(object, kind, body string) resourceSummary {
		return resourceSummary{object, kind, body, appcontext.ResourcePending}
	}
	want := summary{
		Meta: appcontext.CompositeAppMeta{
			Project: "retail", CompositeApp: "shop", Version: "v2", Release: "r1", DeploymentIntentGroup: "autumn",
			Namespace: "shop", Level: "0", LogicalCloud: "lc1",
		},
		State: appcontext.StateInstantiated,
		Apps: []appSummary{
			{Name: "store", Bundle: id + "-store", Clusters: []clusterSummary{
				berlin(applied("web", "Deployment", deployment("web")), applied("settings", "ConfigMap", settings)),
				{Provider: "west", Name: "bonn", Connectivity: appcontext.ConnectivityRetrying, Resources: []resourceSummary{
					pending("web", "Deployment", deployment("web")), pending("settings", "ConfigMap", settings),
				}},
			}},
			{Name: "cart", Bundle: id + "-cart", Clusters: []clusterSummary{berlin(applied("cart", "Deployment", deployment("cart")))}},
		},
	}
	if diff := cmp.Diff(want, summarize(t, must(store.Snapshot(t.Context(), id))(t))); diff != "" {
		t.Errorf("EMCO's context is read wrongly (-want +got):\n%s", diff)
	}
	ac := appcontext.NewAppContext(store)
	must(ac.LoadAppContext(t.Context(), id))(t)
	if diff := cmp.Diff(map[string][]string{"1": {"west+berlin"}, "2": {"west+bonn"}}, must(ac.GetClusterGroupMap(t.Context(), "store"))(t)); diff != "" {
		t.Errorf("GetClusterGroupMap (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"settings+ConfigMap", "web+Deployment"}, must(ac.GetResourceNames(t.Context(), "store", "west+bonn"))(t)); diff != "" {
		t.Errorf("GetResourceNames (-want +got):\n%s", diff)
	}
	var keys []appcontext.Handle
	for _, key := range slices.Sorted(maps.Keys(dump(t, id))) {
		keys = append(keys, appcontext.Handle(key))
	}
	if diff := cmp.Diff(keys, must(ac.GetAllHandles(t.Context(), appcontext.ContextHandle(id)))(t)); diff != "" {
		t.Errorf("GetAllHandles (-want +got):\n%s", diff)
	}
	if got := must(ac.GetResourceInstruction(t.Context(), "store", "west+bonn", "order"))(t); got != `{"resorder":["web+Deployment","settings+ConfigMap"]}` {
		t.Errorf("GetResourceInstruction: got %s", got)
	}
	if got := must(ac.GetAppLevelInstruction(t.Context(), "store", "dependency"))(t); got != `[{"app":"cart","opstatus":"Ready","wait":5}]` {
		t.Errorf("GetAppLevelInstruction: got %s", got)
	}
}
