package recorder

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// begin is the time of the tests.
var begin = time.Date(2026, 3, 4, 11, 0, 0, 0, time.UTC)

// seen returns a bundle in a version.
func seen(version string) *fleet.Bundle {
	return &fleet.Bundle{BundleKey: fleet.BundleKey{Cluster: "p+c", Namespace: "n", Name: "1-a"}, UID: "u", ResourceVersion: version}
}

// kept is what was kept beside the bundle in version 1.
func kept(hub string) *appcontext.SavedBundle {
	return &appcontext.SavedBundle{Namespace: "n", Name: "1-a", UID: "u", ResourceVersion: "1", Hub: hub}
}

// What may be stored at a place.
var (
	nowhere     = appcontext.StoredBundle{}
	empty       = appcontext.StoredBundle{Exists: true}
	ours        = appcontext.StoredBundle{Exists: true, Revision: 7, SavedRevision: 7, Saved: kept("us")}
	theirs      = appcontext.StoredBundle{Exists: true, Revision: 7}
	overwritten = appcontext.StoredBundle{Exists: true, Revision: 9, SavedRevision: 7, Saved: kept("us")}
	emptied     = appcontext.StoredBundle{Exists: true, SavedRevision: 7, Saved: kept("us")}
	orphaned    = appcontext.StoredBundle{SavedRevision: 7, Saved: kept("us")}
	ofOthers    = appcontext.StoredBundle{Exists: true, Revision: 7, SavedRevision: 7, Saved: kept("them")}
)

func TestDecide(t *testing.T) {
	t.Parallel()
	lost := seen("1")
	lost.Lost = true
	recreated := seen("1")
	recreated.UID = "v"
	for name, c := range map[string]struct {
		situation situation
		want      decision
	}{
		"nothing anywhere":                {situation{complete: true, known: true, stored: empty}, decision{}},
		"new":                             {situation{bundle: seen("1"), stored: empty}, decision{step: save, state: stateSaved}},
		"no place":                        {situation{bundle: seen("1"), stored: nowhere}, decision{state: stateAbsent, again: absentRetry}},
		"no place any more":               {situation{bundle: seen("1"), stored: orphaned}, decision{step: remove, state: stateAbsent, again: absentRetry}},
		"unchanged":                       {situation{bundle: seen("1"), stored: ours}, decision{state: stateSaved}},
		"changed":                         {situation{bundle: seen("2"), stored: ours}, decision{step: save, state: stateSaved}},
		"recreated":                       {situation{bundle: recreated, stored: ours}, decision{step: save, state: stateSaved}},
		"it was deleted in etcd":          {situation{bundle: seen("1"), stored: emptied}, decision{step: save, state: stateSaved}},
		"saved by another hub":            {situation{bundle: seen("1"), stored: ofOthers}, decision{step: save, state: stateSaved}},
		"gone":                            {situation{complete: true, known: true, stored: ours}, decision{step: remove}},
		"gone, and not ours":              {situation{complete: true, known: true, stored: theirs}, decision{}},
		"gone, and overwritten":           {situation{complete: true, known: true, stored: overwritten}, decision{step: remove}},
		"not read yet":                    {situation{known: true, stored: ours}, decision{}},
		"unreachable":                     {situation{bundle: lost, stored: ours, known: true}, decision{state: stateSaved}},
		"unreachable and new":             {situation{bundle: lost, stored: empty, known: true}, decision{state: statePending}},
		"cluster removed":                 {situation{complete: true, stored: ours}, decision{step: remove}},
		"cluster of another hub":          {situation{complete: true, stored: ofOthers}, decision{}},
		"cluster taken from another hub":  {situation{complete: true, known: true, stored: ofOthers}, decision{step: remove}},
		"it is not known which there are": {situation{stored: ours}, decision{}},
		"another writer's":                {situation{bundle: seen("1"), stored: theirs}, decision{state: stateYielded, coWriter: coWriter{revision: 7, version: "1"}}},
		"another writer's, over ours":     {situation{bundle: seen("2"), stored: overwritten}, decision{state: stateYielded, coWriter: coWriter{revision: 9, version: "2"}}},
	} {
		c.situation.hub, c.situation.now = "us", begin
		if diff := cmp.Diff(c.want, decide(c.situation), cmp.AllowUnexported(decision{}, coWriter{})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// follow decides about the versions of a bundle that come at times, in seconds, beside another writer who writes at revisions, and returns the last decision.
func follow(t *testing.T, looks []look) decision {
	t.Helper()
	var d decision
	for _, l := range looks {
		d = decide(situation{
			bundle: seen(l.version), stored: appcontext.StoredBundle{Exists: true, Revision: l.revision},
			coWriter: d.coWriter, hub: "us", now: begin.Add(l.after),
		})
	}
	return d
}

type look struct {
	after    time.Duration
	version  string
	revision int64
}

func TestAPlaceIsTakenOverFromSomebodyWhoHasFallenSilent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		looks []look
		step  step
		again time.Duration
	}{
		"nothing changes":              {[]look{{0, "1", 7}, {24 * time.Hour, "1", 7}}, stay, 0},
		"they write first":             {[]look{{0, "1", 7}, {time.Second, "2", 8}, {24 * time.Hour, "2", 8}}, stay, 0},
		"they write a moment later":    {[]look{{0, "1", 7}, {time.Second, "2", 7}, {time.Second + takeoverAfter, "2", 8}}, stay, 0},
		"they may still write":         {[]look{{0, "1", 7}, {time.Minute, "2", 7}, {2 * time.Minute, "3", 7}}, stay, takeoverAfter - time.Minute},
		"they do not write":            {[]look{{0, "1", 7}, {time.Minute, "2", 7}, {time.Minute + takeoverAfter, "2", 7}}, save, 0},
		"changes do not prolong it":    {[]look{{0, "1", 7}, {0, "2", 7}, {takeoverAfter / 2, "3", 7}, {takeoverAfter, "4", 7}}, save, 0},
		"they write again in the end":  {[]look{{0, "1", 7}, {0, "2", 7}, {takeoverAfter / 2, "3", 8}, {takeoverAfter, "3", 8}}, stay, 0},
		"they fall silent after a day": {[]look{{0, "1", 7}, {time.Hour, "2", 8}, {24 * time.Hour, "3", 8}, {24*time.Hour + takeoverAfter, "3", 8}}, save, 0},
	} {
		if d := follow(t, c.looks); d.step != c.step || d.again != c.again {
			t.Errorf("%s: want step %d again after %s, got %+v", name, c.step, c.again, d)
		}
	}
}

// Whatever comes, what another writer keeps up to date is never written, and what is not known to be gone is never removed.
func TestDecideDoesNoHarm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := situation{
			known: rapid.Bool().Draw(t, "known"), complete: rapid.Bool().Draw(t, "complete"), hub: "us", now: begin,
			stored: rapid.SampledFrom([]appcontext.StoredBundle{nowhere, empty, ours, theirs, overwritten, emptied, orphaned, ofOthers}).Draw(t, "stored"),
		}
		if rapid.Bool().Draw(t, "there") {
			s.bundle = seen(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version"))
			s.bundle.Lost = rapid.Bool().Draw(t, "lost")
		}
		foreign := s.stored.Revision > 0 && !s.stored.Ours()
		d := decide(s)
		if d.step == save && (s.bundle == nil || s.bundle.Lost || foreign || !s.stored.Exists) {
			t.Fatalf("saves in %+v", s)
		}
		if d.step == remove && s.stored.Exists && (s.bundle != nil || !s.complete) {
			t.Fatalf("removes in %+v", s)
		}
		s.coWriter, s.now = d.coWriter, begin.Add(takeoverAfter-1)
		if again := decide(s); foreign && again.step == save {
			t.Fatalf("takes over too early in %+v", s)
		}
	})
}
