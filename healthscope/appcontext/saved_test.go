package appcontext_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// saved returns the data that the tests save with a bundle.
func saved(version string) appcontext.SavedBundle {
	return appcontext.SavedBundle{
		Seen: time.Date(2026, 3, 4, 11, 0, 0, 123456789, time.UTC), Namespace: "shop", Name: "1-sink", UID: "uid", ResourceVersion: version, Digest: "d", Hub: "h",
	}
}

// stored returns what is stored at the place.
func (f *fixture) stored(t testing.TB) appcontext.StoredBundle {
	t.Helper()
	return must(f.store.ReadBundle(t.Context(), f.place))(t)
}

// save saves a bundle at the place, whatever is there.
func (f *fixture) save(t testing.TB, b appcontext.SavedBundle) error {
	t.Helper()
	return f.store.SaveBundle(t.Context(), f.stored(t), "{}", b)
}

func TestSaveBundleWritesLikeRsync(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	before := f.stored(t)
	if diff := cmp.Diff(appcontext.StoredBundle{Place: f.place, AsOf: before.AsOf, Exists: true}, before); diff != "" || before.IsOurs() {
		t.Errorf("nothing has been saved yet (-want +got):\n%s", diff)
	}
	noError(t, f.store.SaveBundle(t.Context(), before, `{"ready":true,"csrStatuses":[{"status":{"certificate":"LS0t"}}]}`, saved("7")))
	key := string(f.c) + "status/"
	want := map[string]string{
		key:                  `"{\"ready\":true,\"csrStatuses\":[{\"status\":{\"certificate\":\"LS0t\"}}]}"`,
		"/healthscope" + key: `{"seen":"2026-03-04T11:00:00.123Z","namespace":"shop","name":"1-sink","uid":"uid","resourceVersion":"7","digest":"d","hub":"h"}`,
	}
	for key, value := range want {
		if got := raw(t, f.client, key)[key]; got != value {
			t.Errorf("%s: want %s, got %s", key, value, got)
		}
	}
	if now := f.stored(t); !now.IsOurs() || now.Saved.ResourceVersion != "7" || now.AsOf < now.Revision {
		t.Errorf("what was saved is ours, but there is %+v", now)
	}
	if all := must(f.store.SavedBundles(t.Context()))(t); all[f.place].ResourceVersion != "7" {
		t.Errorf("%v is not among the saved bundles: %v", f.place, all)
	}
}

func TestBundleOfAnotherProgramIsNotOurs(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	ctx, status := t.Context(), f.c.Level("status")
	noError(t, f.save(t, saved("1")))
	ours := f.stored(t)
	noError(t, f.ac.UpdateStatusValue(ctx, status, "{}")) // rsync writes in this way, even the same value.
	wantError(t, f.store.SaveBundle(ctx, ours, "{}", saved("2")), appcontext.ErrConflict, `cannot save bundle "`+f.ac.ID()+`/a/p+c"`)
	wantError(t, f.store.RemoveBundle(ctx, ours), appcontext.ErrConflict)
	now := f.stored(t)
	if now.Revision == 0 || now.IsOurs() || now.Saved == nil {
		t.Errorf("another program has written, but there is %+v", now)
	}
	noError(t, f.store.RemoveBundle(ctx, now))
	if got := must(f.ac.GetValue(ctx, status))(t); got != "{}" {
		t.Errorf("another program's bundle must stay, it is %v", got)
	}
	if _, ok := must(f.store.SavedBundles(ctx))(t)[f.place]; ok {
		t.Errorf("%v is still among the saved bundles", f.place)
	}
}

// TestBrokenDescriptionIsStillOurs stores a description that cannot be decoded.
func TestBrokenDescriptionIsStillOurs(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	status := f.c.Level("status")
	write := []appcontext.Write{{Handle: status, Value: "{}"}, {Handle: status, Value: "broken", Sidecar: true}}
	noError(t, f.store.WriteLevels(t.Context(), f.ac.ID(), write, appcontext.Condition{}))
	if at := f.stored(t); !at.IsOurs() || at.Saved == nil {
		t.Errorf("got %+v", at)
	}
	if _, ok := must(f.store.SavedBundles(t.Context()))(t)[f.place]; !ok {
		t.Errorf("%v is not among the saved bundles", f.place)
	}
}

func TestSaveBundleRequiresExistingPlace(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	at := f.stored(t)
	noError(t, f.ac.DeleteCluster(t.Context(), f.c))
	wantError(t, f.store.SaveBundle(t.Context(), at, "{}", saved("1")), appcontext.ErrNotFound)
	for _, p := range []appcontext.AppInCluster{{App: "a", Cluster: "p+c"}, {ContextID: "1", App: "instruction", Cluster: "p+c"}, {ContextID: "1", App: "a", Cluster: "p/c"}} {
		wantError(t, just(f.store.ReadBundle(t.Context(), p)), appcontext.ErrInvalid)
		wantError(t, just(f.store.ReadCluster(t.Context(), p)), appcontext.ErrInvalid)
	}
}

// TestReadinessIsWrittenWhereItChanges saves readiness keys of more resources than one transaction takes, and of the app.
func TestReadinessIsWrittenWhereItChanges(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	b := saved("1")
	b.Ready = map[string]bool{"resourcesready": false}
	for n := range 150 {
		b.Ready["resource/r"+strconv.Itoa(n)+"+Kind/resready"] = true
	}
	noError(t, f.save(t, b))
	first := f.snapshot(t)
	for level, ready := range b.Ready {
		if value, _ := first.Stored(f.c.Level(level)); string(value) != strconv.FormatBool(ready) {
			t.Errorf("%s: want %t, got %q", level, ready, value)
		}
	}
	b.Ready["resourcesready"] = true
	noError(t, f.save(t, b))
	second := f.snapshot(t)
	for level := range b.Ready {
		if changed := first.StoredRevision(f.c.Level(level)) != second.StoredRevision(f.c.Level(level)); changed != (level == "resourcesready") {
			t.Errorf("%s is written again: %t", level, changed)
		}
	}
}

func TestReadClusterReadsKeysAndTheOrderOfResources(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	must(f.ac.AddResource(t.Context(), f.c, "a+Kind", "x"))(t)
	must(f.ac.AddInstruction(t.Context(), f.c, "resource", "order", `{"resorder":["r+Kind","a+Kind"]}`))(t)
	cluster := must(f.store.ReadCluster(t.Context(), f.place))(t)
	if got := names(cluster.Resources()); !cmp.Equal(got, []string{"r+Kind", "a+Kind"}) {
		t.Errorf("got %v", got)
	}
	if value, ok := cluster.Resources()[0].Value(); !ok || len(value) > 0 {
		t.Errorf("want a resource without its value, got %t and %q", ok, value)
	}
}

func TestADeletionTakesWhatIsOursAlong(t *testing.T) {
	ctx := t.Context()
	for name, remove := range map[string]func(*fixture) error{
		"cluster": func(f *fixture) error { return f.ac.DeleteCluster(ctx, f.c) },
		"app":     func(f *fixture) error { return f.ac.DeleteApp(ctx, f.a) },
		"context": func(f *fixture) error { return f.ac.DeleteCompositeApp(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, appcontext.Options{})
			noError(t, f.save(t, saved("1")))
			noError(t, remove(f))
			if left := raw(t, f.client, "/healthscope"+string(f.h)); len(left) != 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}
