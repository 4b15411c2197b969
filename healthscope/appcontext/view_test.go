package appcontext_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// viewOf returns the view of a subject from a store. A cache must have the same.
func viewOf(t testing.TB, store *appcontext.Store, cache *appcontext.Cache, subject appcontext.DeploymentRef, instance string) appcontext.View {
	t.Helper()
	cold := must(store.View(t.Context(), subject, instance))(t)
	want := viewContents(t, cold)
	eventually(t, "the cache does not catch up", func(ctx context.Context) error {
		warm, err := cache.View(ctx, subject, instance)
		if err == nil && warm.Revision < cold.Revision {
			err = fmt.Errorf("revision %d, want %d", warm.Revision, cold.Revision)
		}
		if err == nil {
			if diff := cmp.Diff(want, viewContents(t, warm)); diff != "" {
				t.Fatalf("%s (-store +cache):\n%s", subject, diff)
			}
		}
		return err
	})
	return cold
}

// viewContents returns the contents of a view, without revision and time, and asserts that everything is of its revision.
func viewContents(t testing.TB, v appcontext.View) map[string]any {
	t.Helper()
	all := map[string]any{"info": v.Info, "contexts": v.Contexts, "id": v.ContextID}
	for name, s := range map[string]*appcontext.Snapshot{"context": v.Context, "status context": v.StatusContext} {
		if s == nil {
			continue
		}
		all[name] = contents(s)
		if s.Revision() != v.Revision {
			t.Errorf("the %s is of revision %d, and the view of %d", name, s.Revision(), v.Revision)
		}
		for h := range s.All() {
			all["seen "+string(h)] = v.Seen(h, s.StoredRevision(h))
		}
	}
	return all
}

func TestCacheAnswersLikeStore(t *testing.T) {
	store := open(t, appcontext.Options{ProgressInterval: 20 * time.Millisecond})
	cache := runCache(t, store, appcontext.CacheOptions{})
	ctx, subject := t.Context(), group(t)
	if view := viewOf(t, store, cache, subject, ""); view.ContextID != "" || view.Context != nil || len(view.Info.Actions) != 0 {
		t.Errorf("want nothing yet, got %+v", view)
	}
	ac, h := newContext(t, store)
	a, c := h.Level("app/a"), h.Level("app/a/cluster/p+c")
	record := func(state appcontext.ActionState, n int64) error {
		return store.RecordAction(ctx, appcontext.Record{Subject: subject, Action: action(state, ac.ID(), n)})
	}
	for _, change := range []func() error{
		func() error { return record(appcontext.ActionInstantiated, 1) },
		func() error { add(t, ac, h, "a", "p+c", "r+Kind"); return nil },
		func() error { return set(ctx, store, c, map[string]any{"status": "{}"}) },
		func() error { return set(ctx, store, c, map[string]any{"status": nil}) },
		func() error { return ac.AddCompositeAppMeta(ctx, appcontext.CompositeAppMeta{Project: "p"}) },
		func() error { return record(appcontext.ActionTerminated, 2) },
		func() error { return ac.DeleteApp(ctx, a) },
		func() error { return ac.DeleteCompositeApp(ctx) },
	} {
		noError(t, change())
		viewOf(t, store, cache, subject, "")
	}
}

func TestContextsAreFoundByTheirIndexOrTheirMetaData(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store, client, ctx := open(t, optionsOf(etcd)), rawClient(t, etcd.Endpoint()), t.Context()
	retail := func(group string) appcontext.DeploymentRef { return appcontext.GroupRef("retail", "shop", "v2", group) }
	// These are EMCO's. The context with the smaller id is the later one, and an id is a prefix of another one.
	for _, made := range []struct{ id, group string }{{"31", "autumn"}, {"3", "autumn"}, {"30", "winter"}, {"3001", "summer"}} {
		values, root := dump(t, made.id), "/context/"+made.id+"/"
		values[root+"meta/"] = strings.ReplaceAll(values[root+"meta/"], "autumn", made.group)
		putRaw(t, client, map[string]string{root: values[root]})
		putRaw(t, client, values)
	}
	putRaw(t, client, map[string]string{
		"/context/5/": `"5"`, "/context/5/app/network-intents/": `"network-intents"`, "/context/5/app/network-intents/cluster/west+bonn/": `"west+bonn"`,
		"/context/6/app/network-intents/cluster/west+bonn/": `"west+bonn"`, // These are remains of a context.
		"/context/7/": `"7"`, "/context/7/meta/": `broken`,
		// Meta data of the first generation have four fields, and none for the group.
		"/context/77/": `"77"`, "/context/77/meta/": `{"Project":"retail","CompositeApp":"shop","Version":"v2","Release":"r1"}`,
		"/context/300/": `"300"`,
		// Keys without a slash at the end are not read.
		"/healthscope/group/retail/shop/v2/autumn": `broken`, "/healthscope/group/retail/shop/v2/winter/context/30": `"30"`,
	})
	for n := range 1500 { // These are more keys than are read in one step, in one context and of saved bundles.
		putRaw(t, client, map[string]string{fmt.Sprintf("/context/300/level%d/", n): "1", fmt.Sprintf("/healthscope/context/300/app/a/cluster/p+%d/status/", n): "{}"})
	}
	if n := len(must(store.SavedBundles(ctx))(t)); n != 1500 {
		t.Errorf("want 1500 saved bundles, got %d", n)
	}
	// These are ours: groups, one of them with a release only, and network intents in the index.
	ours := appcontext.NewAppContext(store)
	for id, meta := range map[int64]appcontext.CompositeAppMeta{
		9: {Project: "p", CompositeApp: "c", Version: "v", Release: "r9"}, 8: {Project: "p", CompositeApp: "c", Version: "v", DeploymentIntentGroup: "g"},
	} {
		must(ours.InitAppContextWithValue(id))(t)
		h := must(ours.CreateCompositeApp(ctx))(t)
		noError(t, ours.AddCompositeAppMeta(ctx, meta))
		if id == 8 {
			add(t, ours, h, "network-intents", "west+ulm", "n+Network")
		}
	}
	if diff := cmp.Diff([]string{"3", "30", "300", "3001", "31", "5", "6", "7", "77", "8", "9"}, must(store.ContextIDs(ctx))(t)); diff != "" {
		t.Errorf("ContextIDs (-want +got):\n%s", diff)
	}
	want := map[appcontext.DeploymentRef][]string{
		retail("autumn"): {"31", "3"}, retail("winter"): {"30"}, retail("summer"): {"3001"}, retail("spring"): nil, retail("r1"): {"77"},
		appcontext.GroupRef("p", "c", "v", "r9"): {"9"}, appcontext.GroupRef("p", "c", "v", "g"): {"8"},
		appcontext.ClusterRef("west", "bonn"): {"5"}, appcontext.ClusterRef("west", "ulm"): {"8"}, appcontext.ClusterRef("west", "b"): nil,
	}
	cache := runCache(t, store, appcontext.CacheOptions{})
	check := func() {
		t.Helper()
		for subject, ids := range want {
			view := viewOf(t, store, cache, subject, "")
			if diff := cmp.Diff(ids, view.Contexts); diff != "" {
				t.Errorf("%s (-want +got):\n%s", subject, diff)
			}
			if newest := append([]string{""}, ids...)[len(ids)]; view.ContextID != newest || (newest != "") != (view.Context != nil) {
				t.Errorf("%s: want context %q, got %q", subject, newest, view.ContextID)
			}
		}
	}
	check()

	// Network intents are removed from the index when they are deleted.
	must(ours.LoadAppContext(ctx, "8"))(t)
	noError(t, ours.DeleteCluster(ctx, "/context/8/app/network-intents/cluster/west+ulm/"))
	must(client.Delete(ctx, "/context/31/"))(t)
	want[retail("autumn")], want[appcontext.ClusterRef("west", "ulm")] = []string{"3"}, nil
	check()
	if diff := cmp.Diff(map[string]string{"/healthscope/context/8/group/p/c/v/g/": `"8"`}, raw(t, client, "/healthscope/context/8/")); diff != "" {
		t.Errorf("want only the group to be entered for context 8 (-want +got):\n%s", diff)
	}
}

// TestContextInForceIsFoundWithoutHistory asserts that states are sufficient to find the context for which EMCO's rsync works.
// EMCO stores no history in etcd. The states were recorded from an instantiation, an update and a rollback.
func TestContextInForceIsFoundWithoutHistory(t *testing.T) {
	t.Run("of contexts of EMCO", func(t *testing.T) { findContextInForce(t, false) })
	t.Run("of contexts in the index", func(t *testing.T) { findContextInForce(t, true) })
}

func findContextInForce(t *testing.T, indexed bool) {
	t.Helper()
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store, client := open(t, optionsOf(etcd)), rawClient(t, etcd.Endpoint())
	cache := runCache(t, store, appcontext.CacheOptions{})
	for _, stage := range []struct {
		name string
		// steps are ids of contexts, each with a state that rsync writes there; without one, the context is created.
		steps [][2]string
		want  string
	}{
		{"made", [][2]string{{"90"}}, "90"},
		{"begun", [][2]string{{"90", "Created"}, {"90", "Instantiating"}, {"90", "Instantiated"}}, "90"},
		{"an update was made, and nothing done with it", [][2]string{{"20"}}, "90"},
		{"the update is created", [][2]string{{"20", "Created"}}, "90"},
		{"the update begins", [][2]string{{"20", "Instantiating"}}, "20"},
		{"the old one is taken away", [][2]string{{"90", "Updating"}, {"20", "Instantiated"}, {"90", "Updated"}}, "20"},
		{"a rollback begins", [][2]string{{"90", "Instantiating"}}, "90"},
		{"the update is taken away", [][2]string{{"90", "Instantiated"}, {"20", "Updating"}}, "90"},
		{"rolled back", [][2]string{{"20", "Updated"}}, "90"},
		{"not all could be taken away", [][2]string{{"20", "UpdatedFailed"}}, "90"},
		{"a second update is being made", [][2]string{{"50"}}, "90"},
		{"terminated", [][2]string{{"90", "Terminating"}, {"90", "Terminated"}}, "90"},
	} {
		for _, s := range stage.steps {
			h := appcontext.ContextHandle(s[0])
			if s[1] != "" {
				putRaw(t, client, map[string]string{string(h.Level("status")): `{"Status":"` + s[1] + `"}`})
				continue
			}
			putRaw(t, client, map[string]string{string(h): `"` + s[0] + `"`, string(h.Level("statusappctxid")): `"90"`})
			if indexed {
				ac := appcontext.NewAppContext(store)
				must(ac.LoadAppContext(t.Context(), s[0]))(t)
				noError(t, ac.AddCompositeAppMeta(t.Context(), appcontext.CompositeAppMeta{Project: "retail", CompositeApp: "shop", Version: "v2", DeploymentIntentGroup: "autumn"}))
			} else {
				putRaw(t, client, map[string]string{string(h.Level("meta")): `{"Project":"retail","CompositeApp":"shop","Version":"v2","DeploymentIntentGroup":"autumn"}`})
			}
		}
		if got := viewOf(t, store, cache, appcontext.GroupRef("retail", "shop", "v2", "autumn"), "").ContextID; got != stage.want {
			t.Errorf("%s: context %q is in force, want %q", stage.name, got, stage.want)
		}
	}
}

func TestViewReturnsRequestedOlderContext(t *testing.T) {
	store := open(t, appcontext.Options{ProgressInterval: 20 * time.Millisecond})
	cache := runCache(t, store, appcontext.CacheOptions{})
	ctx, subject := t.Context(), group(t)
	first, _ := newContext(t, store)
	second, h := newContext(t, store)
	noError(t, set(ctx, store, h, map[string]any{"statusappctxid": first.ID()}))
	for n, ac := range []*appcontext.AppContext{first, second} {
		noError(t, store.RecordAction(ctx, appcontext.Record{Subject: subject, Action: action(appcontext.ActionInstantiated, ac.ID(), int64(n))}))
	}
	for instance, want := range map[string]string{"": second.ID(), second.ID(): second.ID(), first.ID(): first.ID()} {
		view := viewOf(t, store, cache, subject, instance)
		if !slices.Equal(view.Contexts, []string{first.ID(), second.ID()}) {
			t.Errorf("want both contexts, the oldest first, got %v", view.Contexts)
		}
		if view.ContextID != want || view.Context.ID() != want || view.StatusContext.ID() != first.ID() {
			t.Errorf("for instance %q want context %s and status context %s, got %s and %s", instance, want, first.ID(), view.Context.ID(), view.StatusContext.ID())
		}
	}
	wantError(t, just(store.View(ctx, subject, "4711")), appcontext.ErrNotFound, "No state information for 4711")
	view, err := cache.View(ctx, subject, "4711")
	wantError(t, err, appcontext.ErrNotFound, "No state information for 4711")
	if view.AsOf.IsZero() {
		t.Error("the answer does not say how old it is: the instance may be new")
	}
}

func TestViewSeenReturnsTimeOfBundle(t *testing.T) {
	f := newFixture(t, appcontext.Options{ProgressInterval: 20 * time.Millisecond})
	cache := runCache(t, f.store, appcontext.CacheOptions{})
	ctx, status := t.Context(), f.place.Handle().Level("status")
	noError(t, f.ac.AddCompositeAppMeta(ctx, f.meta()))
	expect := func(when string, want time.Time) {
		t.Helper()
		view := viewOf(t, f.store, cache, f.subject, "")
		if got := view.Seen(status, view.StatusContext.StoredRevision(status)); !got.Equal(want) {
			t.Errorf("%s: want %s, got %s", when, want, got)
		}
	}
	expect("nothing is saved", time.Time{})
	noError(t, f.save(t, saved("1")))
	expect("saved", saved("1").Seen.Truncate(time.Millisecond))
	noError(t, f.ac.UpdateStatusValue(ctx, status, "{}"))
	expect("written by another program", time.Time{})
	noError(t, f.store.RemoveBundle(ctx, f.stored(t)))
	expect("removed", time.Time{})
}
