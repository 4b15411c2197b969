package appcontext_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// placed returns a new context, its only place, and the group that has the context.
func placed(t *testing.T, store *appcontext.Store) (*appcontext.AppContext, appcontext.AppInCluster, appcontext.DeploymentRef) {
	t.Helper()
	ctx, subject := t.Context(), group(t)
	ac, h := newContext(t, store)
	meta := appcontext.CompositeAppMeta{Project: subject.Project, CompositeApp: subject.CompositeApp, Version: subject.Version, DeploymentIntentGroup: subject.Group}
	noError(t, ac.AddCompositeAppMeta(ctx, meta))
	app := must(ac.AddApp(ctx, h, "sink"))(t)
	must(ac.AddCluster(ctx, app, "provider+edge01"))(t)
	return ac, appcontext.AppInCluster{ContextID: ac.ID(), App: "sink", Cluster: "provider+edge01"}, subject
}

// saved returns the data that the tests save with a bundle.
func saved(version string) appcontext.SavedBundle {
	return appcontext.SavedBundle{
		Seen: time.Date(2026, 3, 4, 11, 0, 0, 123456789, time.UTC), Namespace: "shop", Name: "1-sink", UID: "uid", ResourceVersion: version, Digest: "d", Hub: "h",
	}
}

func TestSaveBundleWritesLikeRsync(t *testing.T) {
	store := open(t, appcontext.Options{})
	client := rawClient(t, endpoint(t))
	_, place, _ := placed(t, store)
	at := must(store.ReadBundle(t.Context(), place))(t)
	if !at.Exists || at.Revision != 0 || at.Saved != nil || at.IsOurs() {
		t.Errorf("nothing has been saved yet, but there is %+v", at)
	}
	noError(t, store.SaveBundle(t.Context(), at, `{"ready":true,"csrStatuses":[{"status":{"certificate":"LS0t"}}]}`, saved("7")))
	key := "/context/" + place.ContextID + "/app/sink/cluster/provider+edge01/status/"
	want := map[string]string{
		key:                  `"{\"ready\":true,\"csrStatuses\":[{\"status\":{\"certificate\":\"LS0t\"}}]}"`,
		"/healthscope" + key: `{"seen":"2026-03-04T11:00:00.123Z","namespace":"shop","name":"1-sink","uid":"uid","resourceVersion":"7","digest":"d","hub":"h"}`,
	}
	if diff := cmp.Diff(want, merged(raw(t, client, key), raw(t, client, "/healthscope"+key))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	at = must(store.ReadBundle(t.Context(), place))(t)
	if !at.IsOurs() || at.Saved == nil || at.Saved.ResourceVersion != "7" {
		t.Errorf("what was saved is ours, but there is %+v", at)
	}
	if all := must(store.SavedBundles(t.Context()))(t); all[place].ResourceVersion != "7" {
		t.Errorf("%v is not among the saved bundles: %v", place, all)
	}
}

func TestBundleOfAnotherProgramIsNotOurs(t *testing.T) {
	store := open(t, appcontext.Options{})
	ctx := t.Context()
	ac, place, _ := placed(t, store)
	before := must(store.ReadBundle(ctx, place))(t)
	noError(t, store.SaveBundle(ctx, before, "{}", saved("1")))
	ours := must(store.ReadBundle(ctx, place))(t)
	if err := ac.UpdateStatusValue(ctx, place.Handle().Level("status"), "{}"); err != nil { // rsync writes in this way, even the same value.
		t.Fatal(err)
	}
	wantError(t, store.SaveBundle(ctx, ours, "{}", saved("2")), appcontext.ErrConflict)
	wantError(t, store.RemoveBundle(ctx, ours), appcontext.ErrConflict)
	now := must(store.ReadBundle(ctx, place))(t)
	if now.Revision == 0 || now.IsOurs() || now.Saved == nil {
		t.Errorf("another program has written, but there is %+v", now)
	}
	noError(t, store.RemoveBundle(ctx, now))
	if got := must(ac.GetValue(ctx, place.Handle().Level("status")))(t); got != "{}" {
		t.Errorf("another program's bundle must stay, it is %v", got)
	}
	if all := must(store.SavedBundles(ctx))(t); all[place].Name != "" {
		t.Errorf("%v is still among the saved bundles", place)
	}
}

func TestSaveBundleRequiresExistingPlace(t *testing.T) {
	store := open(t, appcontext.Options{})
	ctx := t.Context()
	ac, place, _ := placed(t, store)
	at := must(store.ReadBundle(ctx, place))(t)
	noError(t, ac.DeleteCluster(ctx, place.Handle()))
	wantError(t, store.SaveBundle(ctx, at, "{}", saved("1")), appcontext.ErrNotFound)
	for _, p := range []appcontext.AppInCluster{{App: "a", Cluster: "p+c"}, {ContextID: "1", App: "instruction", Cluster: "p+c"}, {ContextID: "1", App: "a", Cluster: "p/c"}} {
		if _, err := store.ReadBundle(ctx, p); !errors.Is(err, appcontext.ErrInvalid) {
			t.Errorf("%v: want ErrInvalid, got: %v", p, err)
		}
	}
}

func TestADeletionTakesWhatIsOursAlong(t *testing.T) {
	store := open(t, appcontext.Options{})
	client := rawClient(t, endpoint(t))
	ctx := t.Context()
	for name, remove := range map[string]func(*appcontext.AppContext, appcontext.AppInCluster) error{
		"cluster": func(ac *appcontext.AppContext, p appcontext.AppInCluster) error {
			return ac.DeleteCluster(ctx, p.Handle())
		},
		"app": func(ac *appcontext.AppContext, p appcontext.AppInCluster) error {
			return ac.DeleteApp(ctx, appcontext.ContextHandle(p.ContextID).Level("app/sink"))
		},
		"context": func(ac *appcontext.AppContext, _ appcontext.AppInCluster) error { return ac.DeleteCompositeApp(ctx) },
	} {
		ac, place, _ := placed(t, store)
		noError(t, store.SaveBundle(ctx, must(store.ReadBundle(ctx, place))(t), "{}", saved("1")))
		if err := remove(ac, place); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if left := raw(t, client, "/healthscope/context/"+place.ContextID+"/app/"); len(left) != 0 {
			t.Errorf("%s: %v is left", name, left)
		}
	}
}

func TestViewSeenReturnsTimeOfBundle(t *testing.T) {
	store := open(t, appcontext.Options{})
	client := rawClient(t, endpoint(t))
	cache := runCache(t, store, appcontext.CacheOptions{})
	ctx := t.Context()
	ac, place, subject := placed(t, store)
	ask := func() (fromStore, fromCache time.Time) {
		t.Helper()
		status := place.Handle().Level("status")
		a := must(store.View(ctx, subject, ""))(t)
		b := must(viewSince(t, cache, subject, revisionOf(t, client)))(t) //nolint:contextcheck // The client has the test's.
		seen := func(v appcontext.View) time.Time {
			app, _ := v.StatusContext.App(place.App)
			cluster, _ := app.Cluster(place.Cluster)
			return v.Seen(status, cluster.Revision("status"))
		}
		return seen(a), seen(b)
	}
	expect := func(when string, want time.Time) {
		t.Helper()
		if a, b := ask(); !a.Equal(want) || !b.Equal(want) {
			t.Errorf("%s: want %s, store and cache say %s and %s", when, want, a, b)
		}
	}
	expect("nothing is saved", time.Time{})
	noError(t, store.SaveBundle(ctx, must(store.ReadBundle(ctx, place))(t), "{}", saved("1")))
	expect("saved", saved("1").Seen.Truncate(time.Millisecond))
	noError(t, ac.UpdateStatusValue(ctx, place.Handle().Level("status"), "{}"))
	expect("written by another program", time.Time{})
	noError(t, store.RemoveBundle(ctx, must(store.ReadBundle(ctx, place))(t)))
	expect("removed", time.Time{})
	if strings.Contains(place.String(), " ") {
		t.Errorf("a place is one word for log lines, it is %q", place)
	}
}
