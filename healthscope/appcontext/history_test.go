package appcontext_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 123456789, time.FixedZone("", 3600))

// action returns an action n milliseconds after noon.
func action(state appcontext.ActionState, id string, n int64) appcontext.Action {
	return appcontext.Action{State: state, ContextID: id, Time: noon.Add(time.Duration(n) * time.Millisecond), Revision: n}
}

// group returns a deployment intent group that no other test uses.
func group(t testing.TB) appcontext.DeploymentRef {
	t.Helper()
	return appcontext.GroupRef("p", "ca", "v1", t.Name())
}

// states returns the states and contexts of a history.
func states(info appcontext.StateInfo) []string {
	var all []string
	for _, a := range info.Actions {
		all = append(all, strings.TrimSuffix(string(a.State)+" "+a.ContextID, " "))
	}
	return all
}

func TestHistoryMatchesEMCO(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	ctx := t.Context()
	subject := appcontext.GroupRef("retail", "shop", "v2", "autumn")
	ac := appcontext.NewAppContext(store)
	must(ac.InitAppContextWithValue(77))(t)
	record := func(state appcontext.ActionState, id string, n int64) appcontext.Record {
		return appcontext.Record{Subject: subject, Action: action(state, id, n)}
	}
	noError(t, store.RecordAction(ctx, record(appcontext.ActionCreated, "", 0)))
	made := record(appcontext.ActionInstantiated, "77", 1)
	made.StatusContextID = "77"
	must(ac.CreateCompositeApp(ctx))(t)
	noError(t, store.RecordAction(ctx, made))
	want := map[string]string{
		"/healthscope/group/retail/shop/v2/autumn/":                   `{"statusctxid":"77","actions":2}`,
		"/healthscope/group/retail/shop/v2/autumn/action/0000000000/": `{"state":"Created","instance":"","time":"2026-03-04T11:00:00.123Z","revision":0}`,
		"/healthscope/group/retail/shop/v2/autumn/action/0000000001/": `{"state":"Instantiated","instance":"77","time":"2026-03-04T11:00:00.124Z","revision":1}`,
		"/healthscope/group/retail/shop/v2/autumn/context/77/":        `"77"`,
		"/healthscope/context/77/group/retail/shop/v2/autumn/":        `"77"`,
	}
	client := rawClient(t, etcd.Endpoint())
	if diff := cmp.Diff(want, raw(t, client, "/healthscope/")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	info := must(store.GetStateInfo(ctx, subject))(t)
	if info.StatusContextID != "77" || !cmp.Equal(states(info), []string{"Created", "Instantiated 77"}) || !info.Actions[1].Time.Equal(noon.Add(time.Millisecond).Truncate(time.Millisecond)) {
		t.Errorf("got %+v", info)
	}
	noError(t, ac.DeleteCompositeApp(ctx))
	for key := range want {
		if strings.Contains(key, "context/77") {
			delete(want, key)
		}
	}
	if diff := cmp.Diff(want, raw(t, client, "/healthscope/")); diff != "" {
		t.Errorf("after deletion of the context (-want +got):\n%s", diff)
	}
	view := must(store.View(ctx, subject, ""))(t)
	if view.ContextID != "77" || view.Context != nil || len(view.Info.Actions) != 2 {
		t.Errorf("want the history of a context that is gone, got %+v", view)
	}
	if left := raw(t, client, "/context/"); len(left) != 0 {
		t.Errorf("of the context there is %v", left)
	}
}

func TestActionIsRecordedAtomicallyWithItsChange(t *testing.T) {
	store := open(t, appcontext.Options{})
	ctx, subject := t.Context(), group(t)
	ac, h := newContext(t, store)
	record := func(state appcontext.ActionState, n int64) appcontext.Record {
		return appcontext.Record{Subject: subject, Action: action(state, ac.ID(), n)}
	}
	missing := appcontext.ContextHandle("4711")
	if err := set(ctx, store, missing, map[string]any{"status": state{"Terminated"}}, record(appcontext.ActionTerminated, 2)); !errors.Is(err, appcontext.ErrNotFound) {
		t.Fatalf("want ErrNotFound, got: %v", err)
	}
	absent := record(appcontext.ActionInstantiated, 3)
	absent.Action.ContextID = "4711"
	if err := store.RecordAction(ctx, absent); !errors.Is(err, appcontext.ErrNotFound) || !strings.Contains(err.Error(), "4711") {
		t.Fatalf("want ErrNotFound for the context, got: %v", err)
	}
	if info := must(store.GetStateInfo(ctx, subject))(t); len(info.Actions) != 0 {
		t.Errorf("failed changes have left %v in the history", states(info))
	}
	noError(t, set(ctx, store, h, map[string]any{"status": state{"Terminated"}}, record(appcontext.ActionTerminated, 4)))
	if got := states(must(store.GetStateInfo(ctx, subject))(t)); !cmp.Equal(got, []string{"Terminated " + ac.ID()}) {
		t.Errorf("got %v", got)
	}
}

func TestRecordActionIsIdempotent(t *testing.T) {
	store := open(t, appcontext.Options{})
	subject := group(t)
	for _, n := range []int64{1, 2, 2, 1, 3, 2} {
		noError(t, store.RecordAction(t.Context(), appcontext.Record{Subject: subject, Action: action(appcontext.ActionApproved, "", n)}))
	}
	var got []int64
	for _, a := range must(store.GetStateInfo(t.Context(), subject))(t).Actions {
		got = append(got, a.Revision)
	}
	if !cmp.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("want each action once, got %v", got)
	}
}

func TestConcurrentActionsAreAllKept(t *testing.T) {
	store := open(t, appcontext.Options{})
	subject := group(t)
	const writers, each = 8, 10
	var wait sync.WaitGroup
	for w := range int64(writers) {
		wait.Go(func() {
			for n := range int64(each) {
				if err := store.RecordAction(t.Context(), appcontext.Record{Subject: subject, Action: action(appcontext.ActionApproved, "", w*each+n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	seen := map[int64]int{}
	last := map[int64]int64{}
	for _, a := range must(store.GetStateInfo(t.Context(), subject))(t).Actions {
		seen[a.Revision]++
		if w := a.Revision / each; a.Revision < last[w] {
			t.Errorf("action %d comes after %d of the same writer", a.Revision, last[w])
		} else {
			last[w] = a.Revision
		}
	}
	for n := range int64(writers * each) {
		if seen[n] != 1 {
			t.Errorf("action %d is there %d times", n, seen[n])
		}
	}
}

func TestRecordActionValidatesRecords(t *testing.T) {
	store := open(t, appcontext.Options{})
	good := appcontext.Record{Subject: group(t), Action: action(appcontext.ActionApproved, "", 0)}
	cases := map[string]struct {
		change func(*appcontext.Record)
		want   string
	}{
		"no state":          {func(r *appcontext.Record) { r.Action.State = "" }, "action state"},
		"no time":           {func(r *appcontext.Record) { r.Action.Time = time.Time{} }, "action time"},
		"negative revision": {func(r *appcontext.Record) { r.Action.Revision = -1 }, `"-1"`},
		"context is a path": {func(r *appcontext.Record) { r.Action.ContextID = "1/2" }, `"1/2"`},
		"status is a path":  {func(r *appcontext.Record) { r.StatusContextID = "1/2" }, `"1/2"`},
		"no project":        {func(r *appcontext.Record) { r.Subject.Project = "" }, "project"},
		"group is a path":   {func(r *appcontext.Record) { r.Subject.Group = "a/b" }, `deployment intent group "a/b"`},
		"no cluster":        {func(r *appcontext.Record) { r.Subject = appcontext.ClusterRef("p", "") }, "cluster"},
		"group and cluster": {func(r *appcontext.Record) { r.Subject.Cluster = "c" }, "together with a cluster"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := good
			tc.change(&r)
			err := store.RecordAction(t.Context(), r)
			if !errors.Is(err, appcontext.ErrInvalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %q, got: %v", tc.want, err)
			}
		})
	}
}

func TestContextsAreFoundByTheirIndexOrTheirMetaData(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}})
	client := rawClient(t, etcd.Endpoint())
	ctx := t.Context()
	// These are EMCO's: two contexts of a group, the later one with the smaller id; a context whose id is a prefix of another
	// id; network intents.
	for _, id := range []string{"31", "3", "30", "3001"} {
		values := dump(t, id)
		root := "/context/" + id + "/"
		if season, ok := map[string]string{"30": "winter", "3001": "summer"}[id]; ok {
			values[root+"meta/"] = strings.ReplaceAll(values[root+"meta/"], "autumn", season)
		}
		putRaw(t, client, map[string]string{root: values[root]})
		putRaw(t, client, values)
	}
	putRaw(t, client, map[string]string{
		"/context/5/": `"5"`, "/context/5/app/network-intents/": `"network-intents"`, "/context/5/app/network-intents/cluster/west+bonn/": `"west+bonn"`,
		"/context/6/app/network-intents/cluster/west+bonn/": `"west+bonn"`, // These are remains of a context.
		"/context/7/": `"7"`, "/context/7/meta/": `broken`,
		// Meta data of the first generation have four fields, and none for the group.
		"/context/77/": `"77"`, "/context/77/meta/": `{"Project":"retail","CompositeApp":"shop","Version":"v2","Release":"r1"}`,
	})
	// These are more keys in one context than are read in one step.
	filler := map[string]string{}
	for n := range 1500 {
		filler[fmt.Sprintf("/context/300/level%d/", n)] = "1"
	}
	putRaw(t, client, merged(filler, map[string]string{"/context/300/": `"300"`}))
	// These are ours: groups, one of them with a release only, and network intents in the index.
	ours := appcontext.NewAppContext(store)
	must(ours.InitAppContextWithValue(8))(t)
	h := must(ours.CreateCompositeApp(ctx))(t)
	noError(t, ours.AddCompositeAppMeta(ctx, appcontext.CompositeAppMeta{Project: "p", CompositeApp: "c", Version: "v", DeploymentIntentGroup: "g"}))
	add(t, ours, h, "network-intents", "west+ulm", "n+Network")
	released := appcontext.NewAppContext(store)
	must(released.InitAppContextWithValue(9))(t)
	must(released.CreateCompositeApp(ctx))(t)
	noError(t, released.AddCompositeAppMeta(ctx, appcontext.CompositeAppMeta{Project: "p", CompositeApp: "c", Version: "v", Release: "r9"}))

	cases := map[string]struct {
		subject appcontext.DeploymentRef
		want    []string
	}{
		"by meta data":          {appcontext.GroupRef("retail", "shop", "v2", "autumn"), []string{"31", "3"}},
		"another group":         {appcontext.GroupRef("retail", "shop", "v2", "winter"), []string{"30"}},
		"behind a large one":    {appcontext.GroupRef("retail", "shop", "v2", "summer"), []string{"3001"}},
		"unknown group":         {appcontext.GroupRef("retail", "shop", "v2", "spring"), nil},
		"by release":            {appcontext.GroupRef("retail", "shop", "v2", "r1"), []string{"77"}},
		"by index, of release":  {appcontext.GroupRef("p", "c", "v", "r9"), []string{"9"}},
		"by index":              {appcontext.GroupRef("p", "c", "v", "g"), []string{"8"}},
		"network intents":       {appcontext.ClusterRef("west", "bonn"), []string{"5"}},
		"network intents, ours": {appcontext.ClusterRef("west", "ulm"), []string{"8"}},
		"unknown cluster":       {appcontext.ClusterRef("west", "b"), nil},
	}
	check := func(t *testing.T, where string, views func(appcontext.DeploymentRef) (appcontext.View, error)) {
		t.Helper()
		for name, tc := range cases {
			view, err := views(tc.subject)
			if err != nil {
				t.Errorf("%s: %s: %v", where, name, err)
				continue
			}
			if diff := cmp.Diff(tc.want, view.Contexts); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", where, name, diff)
			}
			if newest := append([]string{""}, tc.want...)[len(tc.want)]; view.ContextID != newest || (newest != "") != (view.Context != nil) {
				t.Errorf("%s: %s: want context %q, got %q", where, name, newest, view.ContextID)
			}
		}
	}
	cache := runCache(t, store, appcontext.CacheOptions{})
	check(t, "store", func(s appcontext.DeploymentRef) (appcontext.View, error) { return store.View(ctx, s, "") })
	check(t, "cache", func(s appcontext.DeploymentRef) (appcontext.View, error) { return cache.View(ctx, s, "") })

	// Network intents are removed from the index when they are deleted.
	noError(t, ours.DeleteCluster(ctx, h.Level("app/network-intents/cluster/west+ulm")))
	if _, err := client.Delete(ctx, "/context/31/"); err != nil {
		t.Fatal(err)
	}
	cases["network intents, ours"] = struct {
		subject appcontext.DeploymentRef
		want    []string
	}{appcontext.ClusterRef("west", "ulm"), nil}
	cases["by meta data"] = struct {
		subject appcontext.DeploymentRef
		want    []string
	}{appcontext.GroupRef("retail", "shop", "v2", "autumn"), []string{"3"}}
	revision := must(client.Get(ctx, "/"))(t).Header.Revision
	check(t, "store, later", func(s appcontext.DeploymentRef) (appcontext.View, error) { return store.View(ctx, s, "") })
	check(t, "cache, later", func(s appcontext.DeploymentRef) (appcontext.View, error) { return viewSince(t, cache, s, revision) })
	if back := raw(t, client, "/healthscope/context/8/"); !slices.Equal(slices.Collect(mapKeys(back)), []string{"/healthscope/context/8/group/p/c/v/g/"}) {
		t.Errorf("want only the group to be entered for context 8, got %v", back)
	}
}

func TestViewReturnsRequestedOlderContext(t *testing.T) {
	store := open(t, appcontext.Options{})
	ctx, subject := t.Context(), group(t)
	made := func(n int64, level map[string]any) string {
		ac, h := newContext(t, store)
		ctx := t.Context()
		noError(t, set(ctx, store, h, level))
		noError(t, store.RecordAction(ctx, appcontext.Record{Subject: subject, Action: action(appcontext.ActionInstantiated, ac.ID(), n)}))
		return ac.ID()
	}
	first := made(1, nil)
	second := made(2, map[string]any{"statusappctxid": first})
	cache := runCache(t, store, appcontext.CacheOptions{})
	for where, views := range map[string]func(instance string) (appcontext.View, error){
		"store": func(instance string) (appcontext.View, error) { return store.View(ctx, subject, instance) },
		"cache": func(instance string) (appcontext.View, error) { return cache.View(ctx, subject, instance) },
	} {
		for instance, want := range map[string]string{"": second, second: second, first: first} {
			view := must(views(instance))(t)
			if view.ContextID != want || view.Context.ID() != want || view.StatusContext.ID() != first {
				t.Errorf("%s: for instance %q want context %s and status context %s, got %s and %s", where, instance, want, first, view.Context.ID(), view.StatusContext.ID())
			}
			if view.Context.Revision() != view.Revision || view.StatusContext.Revision() != view.Revision {
				t.Errorf("%s: want everything at revision %d, got %d and %d", where, view.Revision, view.Context.Revision(), view.StatusContext.Revision())
			}
		}
		if _, err := views("4711"); !errors.Is(err, appcontext.ErrNotFound) || !strings.Contains(err.Error(), "No state information for 4711") {
			t.Errorf("%s: want an unknown instance to be named, got: %v", where, err)
		}
	}
}

func TestContextWithManyNetworkIntentsIsDeleted(t *testing.T) {
	store := open(t, appcontext.Options{})
	client := rawClient(t, endpoint(t))
	ac, h := newContext(t, store)
	app := must(ac.AddApp(t.Context(), h, appcontext.NetworkIntents))(t)
	for n := range 70 { // Each is in an index and has an entry that says so, and etcd takes 128 operations at once.
		must(ac.AddCluster(t.Context(), app, fmt.Sprintf("many+%s-%d", ac.ID(), n)))(t)
	}
	index := "/healthscope/cluster/many/" + ac.ID()
	if n := len(raw(t, client, index)); n != 70 {
		t.Fatalf("want the context in 70 indices, got %d", n)
	}
	noError(t, ac.DeleteCompositeApp(t.Context()))
	for _, prefix := range []string{string(h), index, "/healthscope" + string(h)} {
		if left := raw(t, client, prefix); len(left) != 0 {
			t.Errorf("the deletion has left %v", left)
		}
	}
}
