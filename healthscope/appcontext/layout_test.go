package appcontext_test

import (
	"fmt"
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
	if diff := cmp.Diff(want, raw(t, rawClient(t), string(h))); diff != "" {
		t.Errorf("etcd holds something else than EMCO's layout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, contents(must(store.Snapshot(t.Context(), ac.ID()))(t))); diff != "" {
		t.Errorf("the snapshot differs from what etcd holds (-want +got):\n%s", diff)
	}
}

// summarize returns what a reader uses of a snapshot, with a line for each app, cluster and resource.
func summarize(t *testing.T, s *appcontext.Snapshot) []string {
	t.Helper()
	lines := []string{fmt.Sprintf("context %q: %+v", must(s.Status())(t), must(s.Meta())(t))}
	for _, a := range s.Apps() {
		lines = append(lines, fmt.Sprintf("app %s: bundle %s", a.Name(), a.BundleName()))
		for _, c := range a.Clusters() {
			provider, name, _ := c.Split()
			lines = append(lines, fmt.Sprintf("cluster %s of %s: %q %s", name, provider, must(c.Connectivity())(t), must(c.Bundle())(t)))
			for _, r := range c.Resources() {
				object, kind, _ := r.Split()
				lines = append(lines, fmt.Sprintf("%s %s: %q %s", kind, object, must(r.Status())(t), must(r.Body())(t)))
			}
		}
	}
	return lines
}

func TestReadsContextWrittenByEMCO(t *testing.T) {
	store := open(t, appcontext.Options{})
	const id = "1500450271"
	putRaw(t, rawClient(t), dump(t, id))
	meta := appcontext.CompositeAppMeta{
		Project: "retail", CompositeApp: "shop", Version: "v2", Release: "r1", DeploymentIntentGroup: "autumn", Namespace: "shop", Level: "0", LogicalCloud: "lc1",
	}
	want := []string{
		fmt.Sprintf(`context "Instantiated": %+v`, meta),
		"app store: bundle " + id + "-store",
		`cluster berlin of west: "Available" ` + bundle,
		`Deployment web: "Applied" ` + deployment("web"),
		`ConfigMap settings: "Applied" ` + settings,
		`cluster bonn of west: "Retrying" `,
		`Deployment web: "Pending" ` + deployment("web"),
		`ConfigMap settings: "Pending" ` + settings,
		"app cart: bundle " + id + "-cart",
		`cluster berlin of west: "Available" ` + bundle,
		`Deployment cart: "Applied" ` + deployment("cart"),
	}
	if diff := cmp.Diff(want, summarize(t, must(store.Snapshot(t.Context(), id))(t))); diff != "" {
		t.Errorf("EMCO's context is read wrongly (-want +got):\n%s", diff)
	}
	ac := appcontext.NewAppContext(store)
	h := must(ac.LoadAppContext(t.Context(), id))(t)
	var keys []appcontext.Handle
	for _, key := range slices.Sorted(maps.Keys(dump(t, id))) {
		keys = append(keys, appcontext.Handle(key))
	}
	for name, tc := range map[string]struct{ got, want any }{
		"GetCompositeAppMeta":    {must(ac.GetCompositeAppMeta(t.Context()))(t), meta},
		"GetClusterNames":        {must(ac.GetClusterNames(t.Context(), "store"))(t), []string{"west+berlin", "west+bonn"}},
		"GetClusterGroupMap":     {must(ac.GetClusterGroupMap(t.Context(), "store"))(t), map[string][]string{"1": {"west+berlin"}, "2": {"west+bonn"}}},
		"GetResourceNames":       {must(ac.GetResourceNames(t.Context(), "store", "west+bonn"))(t), []string{"settings+ConfigMap", "web+Deployment"}},
		"GetAllHandles":          {must(ac.GetAllHandles(t.Context(), h))(t), keys},
		"GetResourceInstruction": {must(ac.GetResourceInstruction(t.Context(), "store", "west+bonn", "order"))(t), `{"resorder":["web+Deployment","settings+ConfigMap"]}`},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
