package appcontext_test

import (
	"fmt"
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

// history returns the states, contexts and revisions of the actions on a subject.
func history(t testing.TB, store *appcontext.Store, subject appcontext.DeploymentRef) []string {
	t.Helper()
	var all []string
	for _, a := range must(store.GetStateInfo(t.Context(), subject))(t).Actions {
		all = append(all, fmt.Sprint(a.State, a.ContextID, " ", a.Revision))
	}
	return all
}

func TestHistoryMatchesEMCO(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	store, client, ctx := open(t, optionsOf(etcd)), rawClient(t, etcd.Endpoint()), t.Context()
	subject := appcontext.GroupRef("retail", "shop", "v2", "autumn")
	ac := appcontext.NewAppContext(store)
	must(ac.InitAppContextWithValue(77))(t)
	must(ac.CreateCompositeApp(ctx))(t)
	noError(t, store.RecordAction(ctx, appcontext.Record{Subject: subject, Action: action(appcontext.ActionCreated, "", 0)}))
	noError(t, store.RecordAction(ctx, appcontext.Record{Subject: subject, Action: action(appcontext.ActionInstantiated, "77", 1), StatusContextID: "77"}))
	want := map[string]string{
		"/healthscope/group/retail/shop/v2/autumn/":                   `{"statusctxid":"77","actions":2}`,
		"/healthscope/group/retail/shop/v2/autumn/action/0000000000/": `{"state":"Created","instance":"","time":"2026-03-04T11:00:00.123Z","revision":0}`,
		"/healthscope/group/retail/shop/v2/autumn/action/0000000001/": `{"state":"Instantiated","instance":"77","time":"2026-03-04T11:00:00.124Z","revision":1}`,
		"/healthscope/group/retail/shop/v2/autumn/context/77/":        `"77"`,
		"/healthscope/context/77/group/retail/shop/v2/autumn/":        `"77"`,
	}
	if diff := cmp.Diff(want, raw(t, client, "/healthscope/")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantInfo := appcontext.StateInfo{StatusContextID: "77", Actions: []appcontext.Action{action(appcontext.ActionCreated, "", 0), action(appcontext.ActionInstantiated, "77", 1)}}
	for i := range wantInfo.Actions {
		wantInfo.Actions[i].Time = wantInfo.Actions[i].Time.Truncate(time.Millisecond)
	}
	if diff := cmp.Diff(wantInfo, must(store.GetStateInfo(ctx, subject))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	noError(t, ac.DeleteCompositeApp(ctx))
	delete(want, "/healthscope/group/retail/shop/v2/autumn/context/77/")
	delete(want, "/healthscope/context/77/group/retail/shop/v2/autumn/")
	if diff := cmp.Diff(want, raw(t, client, "/")); diff != "" {
		t.Errorf("after deletion of the context (-want +got):\n%s", diff)
	}
	view := must(store.View(ctx, subject, ""))(t)
	if view.ContextID != "77" || view.Context != nil || len(view.Info.Actions) != 2 {
		t.Errorf("want the history of a context that is gone, got %+v", view)
	}
}

func TestActionIsRecordedAtomicallyWithItsChange(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	ctx, terminated := t.Context(), map[string]any{"status": state{"Terminated"}}
	record := appcontext.Record{Subject: f.subject, Action: action(appcontext.ActionTerminated, f.ac.ID(), 2)}
	wantError(t, set(ctx, f.store, "/context/4711/", terminated, record), appcontext.ErrNotFound)
	absent := record
	absent.Action.ContextID = "4711"
	wantError(t, f.store.RecordAction(ctx, absent), appcontext.ErrNotFound, "4711")
	if got := history(t, f.store, f.subject); len(got) != 0 {
		t.Errorf("failed changes have left %v in the history", got)
	}
	noError(t, set(ctx, f.store, f.h, terminated, record))
	if diff := cmp.Diff([]string{"Terminated" + f.ac.ID() + " 2"}, history(t, f.store, f.subject)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecordActionIsIdempotent(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	// Actions that differ in one field are different.
	actions := []appcontext.Action{
		action(appcontext.ActionApproved, "", 1), action(appcontext.ActionApplied, "", 1), action(appcontext.ActionApproved, f.ac.ID(), 1),
		action(appcontext.ActionApproved, "", 1), action(appcontext.ActionApproved, "", 1),
	}
	actions[3].Revision++
	actions[4].Time = actions[4].Time.Add(time.Millisecond)
	for range 2 {
		for _, a := range actions {
			noError(t, f.store.RecordAction(t.Context(), appcontext.Record{Subject: f.subject, Action: a}))
		}
	}
	if got := must(f.store.GetStateInfo(t.Context(), f.subject))(t).Actions; len(got) != len(actions) {
		t.Errorf("want each action once, got %+v", got)
	}
}

func TestConcurrentActionsAreAllKept(t *testing.T) {
	store, subject := open(t, appcontext.Options{}), group(t)
	const writers, each = 8, 10
	want, got := map[int64][]int64{}, map[int64][]int64{}
	var wait sync.WaitGroup
	for w := range int64(writers) {
		for n := range int64(each) {
			want[w] = append(want[w], w*each+n)
		}
		wait.Go(func() {
			for n := range int64(each) {
				if err := store.RecordAction(t.Context(), appcontext.Record{Subject: subject, Action: action(appcontext.ActionApproved, "", w*each+n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	for _, a := range must(store.GetStateInfo(t.Context(), subject))(t).Actions {
		got[a.Revision/each] = append(got[a.Revision/each], a.Revision)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want each action once, those of a writer in their order (-want +got):\n%s", diff)
	}
}

func TestRecordActionValidatesRecords(t *testing.T) {
	store := open(t, appcontext.Options{})
	good := appcontext.Record{Subject: group(t), Action: action(appcontext.ActionApproved, "", 0)}
	for name, tc := range map[string]struct {
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
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			tc.change(&r)
			wantError(t, store.RecordAction(t.Context(), r), appcontext.ErrInvalid, tc.want)
		})
	}
}

func TestContextWithManyNetworkIntentsIsDeleted(t *testing.T) {
	store := open(t, appcontext.Options{})
	client := rawClient(t)
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
