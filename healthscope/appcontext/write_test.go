package appcontext_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

func TestSnapshotOfLevelsHasOnlyThese(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	noError(t, set(t.Context(), f.store, f.h, map[string]any{"status": "s", "rsync/state/CurrentState": "c"}))
	s := must(f.store.Snapshot(t.Context(), f.ac.ID(), "rsync/state/CurrentState", "meta"))(t)
	want := map[string]string{string(f.h): `"` + f.ac.ID() + `"`, string(f.h) + "rsync/state/CurrentState/": `"c"`}
	if diff := cmp.Diff(want, contents(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	putRaw(t, f.client, map[string]string{"/context/4799/status/": `"s"`}) // The context itself does not exist.
	wantError(t, just(f.store.Snapshot(t.Context(), "4799", "status")), appcontext.ErrNotFound)
}

func TestWritesDependOnTheLevelsThatWereRead(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	read := must(f.store.Snapshot(t.Context(), f.ac.ID(), "one", "two"))(t)
	condition := appcontext.Condition{Unchanged: []*appcontext.Snapshot{read}, Levels: []string{"one", "two"}}
	write := func(id string) error {
		return f.store.WriteLevels(t.Context(), id, []appcontext.Write{{Handle: f.h.Level("three"), Value: 3}}, condition)
	}
	noError(t, write(f.ac.ID()))
	noError(t, set(t.Context(), f.store, f.h, map[string]any{"two": 2}))
	wantError(t, write(f.ac.ID()), appcontext.ErrConflict, fmt.Sprintf("cannot write to context %q: ", f.ac.ID()))
	wantError(t, write(""), appcontext.ErrConflict, "cannot write to etcd: ")
}

func TestWritesNeedTheContextsThatTheyName(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	writes := []appcontext.Write{{Handle: f.h.Level("x"), Value: 1}, {Handle: "/context/4711/x/", Value: 1}}
	wantError(t, f.store.WriteLevels(t.Context(), f.ac.ID(), writes, appcontext.Condition{}), appcontext.ErrNotFound, "/context/4711/")
	wantError(t, f.store.WriteLevels(t.Context(), "", writes, appcontext.Condition{}), appcontext.ErrNotFound, "/context/4711/")
	wantError(t, f.store.WriteLevels(t.Context(), "4711", writes[:1], appcontext.Condition{}), appcontext.ErrNotFound, "/context/4711/")
}

func TestManyWritesGoIntoOneTransactionOnlyIfTheyMust(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	var writes []appcontext.Write
	for n := range appcontext.MaxWrites + 1 {
		writes = append(writes, appcontext.Write{Handle: f.h.Level(fmt.Sprintf("level%d", n)), Value: n})
	}
	for name, err := range map[string]error{
		"a record":  f.store.WriteLevels(t.Context(), f.ac.ID(), writes, appcontext.Condition{}, appcontext.Record{Subject: f.subject, Action: action(appcontext.ActionApplied, "", 0)}),
		"unchanged": f.store.WriteLevels(t.Context(), f.ac.ID(), writes, appcontext.Condition{Unchanged: []*appcontext.Snapshot{f.snapshot(t)}}),
	} {
		t.Run(name, func(t *testing.T) { wantError(t, err, appcontext.ErrTooLarge, "operations in one transaction") })
	}
	noError(t, f.store.WriteLevels(t.Context(), f.ac.ID(), writes, appcontext.Condition{}))
	if got := raw(t, f.client, string(f.h)+"level"); len(got) != len(writes) {
		t.Errorf("want %d values, got %d", len(writes), len(got))
	}
}

func TestSidecarsAreBesideTheHandle(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	ctx, of := t.Context(), func(level string) appcontext.Write {
		return appcontext.Write{Handle: f.c.Level(level), Value: level, Sidecar: true}
	}
	if text := must(f.store.Sidecar(ctx, f.c.Level("reason")))(t); text != "" {
		t.Errorf("want nothing yet, got %q", text)
	}
	noError(t, f.store.WriteLevels(ctx, f.ac.ID(), []appcontext.Write{of("reason"), of("reason/of/another"), {Handle: f.c, Value: "x", Sidecar: true}}, appcontext.Condition{}))
	if text := must(f.store.Sidecar(ctx, f.c.Level("reason")))(t); text != "reason" {
		t.Errorf("want a reason, got %q", text)
	}
	if diff := cmp.Diff(map[string]string{"reason": "reason"}, must(f.store.ListSidecars(ctx, f.c))(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	value, own, err := f.store.Revisions(ctx, f.c.Level("reason"))
	if err != nil || value != 0 || own == 0 {
		t.Errorf("want only the sidecar to have a revision, got %d and %d: %v", value, own, err)
	}
	if value, own, err = f.store.Revisions(ctx, f.r); err != nil || value != f.snapshot(t).StoredRevision(f.r) || own != 0 {
		t.Errorf("want only the resource to have a revision, got %d and %d: %v", value, own, err)
	}
	noError(t, f.store.WriteLevels(ctx, f.ac.ID(), []appcontext.Write{{Handle: f.c.Level("reason"), Sidecar: true}}, appcontext.Condition{}))
	if text := must(f.store.Sidecar(ctx, f.c.Level("reason")))(t); text != "" {
		t.Errorf("want the reason to be removed, got %q", text)
	}
}

func TestLockIsHeldByOneProgram(t *testing.T) {
	f := newFixture(t, appcontext.Options{})
	name := t.Name() + f.ac.ID()
	write := func(lock *appcontext.Lock, value any) error {
		return f.store.WriteLevels(t.Context(), f.ac.ID(), []appcontext.Write{{Handle: f.h.Level("x"), Value: value}}, appcontext.Condition{Lock: lock})
	}
	first := must(f.store.Lock(t.Context(), name))(t)
	noError(t, write(first, 1))
	must(f.client.Delete(t.Context(), "/healthscope/lock/"+name+"/", clientv3.WithPrefix()))(t) // Etcd does so when the lease ends.
	receive(t, first.Lost())
	wantError(t, write(first, 2), appcontext.ErrConflict)
	second := must(f.store.Lock(t.Context(), name))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantError(t, just(f.store.Lock(ctx, name)), context.DeadlineExceeded, "cannot take lock")
	noError(t, second.Release())
	receive(t, second.Lost())
	third := must(f.store.Lock(t.Context(), name))(t)
	if first.Abandoned || !second.Abandoned || third.Abandoned || second.Revision <= first.Revision {
		t.Errorf("the first holder was killed and the second one released the lock, got %+v, %+v, %+v", first, second, third)
	}
	noError(t, errors.Join(third.Release(), first.Release()))
	if leases := must(f.client.Leases(t.Context()))(t).Leases; len(leases) > 0 {
		t.Errorf("%d of those who held or wanted the lock have left a lease", len(leases))
	}
}
