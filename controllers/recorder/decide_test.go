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

// bundleAt returns the bundle of the tests at a version.
func bundleAt(version string) *fleet.Bundle {
	return &fleet.Bundle{BundleKey: fleet.BundleKey{Cluster: "p+c", Namespace: "n", Name: "1-a"}, UID: "u", ResourceVersion: version}
}

// savedBy returns the record that a hub saves for version 1 of the bundle.
func savedBy(hub string) *appcontext.SavedBundle {
	return &appcontext.SavedBundle{Namespace: "n", Name: "1-a", UID: "u", ResourceVersion: "1", Hub: hub}
}

// The possible contents of a place.
var (
	nowhere     = appcontext.StoredBundle{}
	empty       = appcontext.StoredBundle{Exists: true}
	ours        = appcontext.StoredBundle{Exists: true, Revision: 7, SavedRevision: 7, Saved: savedBy("us")}
	theirs      = appcontext.StoredBundle{Exists: true, Revision: 7}
	overwritten = appcontext.StoredBundle{Exists: true, Revision: 9, SavedRevision: 7, Saved: savedBy("us")}
	emptied     = appcontext.StoredBundle{Exists: true, SavedRevision: 7, Saved: savedBy("us")}
	orphaned    = appcontext.StoredBundle{SavedRevision: 7, Saved: savedBy("us")}
	ofOthers    = appcontext.StoredBundle{Exists: true, Revision: 7, SavedRevision: 7, Saved: savedBy("them")}
)

func TestDecide(t *testing.T) {
	t.Parallel()
	lost := bundleAt("1")
	lost.Stale = true
	recreated := bundleAt("1")
	recreated.UID = "v"
	for name, c := range map[string]struct {
		input input
		want  decision
	}{
		"nothing anywhere":                {input{complete: true, known: true, stored: empty}, decision{}},
		"new":                             {input{bundle: bundleAt("1"), stored: empty}, decision{action: actionSave, state: stateSaved}},
		"no place":                        {input{bundle: bundleAt("1"), stored: nowhere}, decision{state: stateAbsent, requeueAfter: absentRetry}},
		"no place any more":               {input{bundle: bundleAt("1"), stored: orphaned}, decision{action: actionRemove, state: stateAbsent, requeueAfter: absentRetry}},
		"unchanged":                       {input{bundle: bundleAt("1"), stored: ours}, decision{state: stateSaved}},
		"changed":                         {input{bundle: bundleAt("2"), stored: ours}, decision{action: actionSave, state: stateSaved}},
		"recreated":                       {input{bundle: recreated, stored: ours}, decision{action: actionSave, state: stateSaved}},
		"it was deleted in etcd":          {input{bundle: bundleAt("1"), stored: emptied}, decision{action: actionSave, state: stateSaved}},
		"saved by another hub":            {input{bundle: bundleAt("1"), stored: ofOthers}, decision{action: actionSave, state: stateSaved}},
		"gone":                            {input{complete: true, known: true, stored: ours}, decision{action: actionRemove}},
		"gone, and not ours":              {input{complete: true, known: true, stored: theirs}, decision{}},
		"gone, and overwritten":           {input{complete: true, known: true, stored: overwritten}, decision{action: actionRemove}},
		"not read yet":                    {input{known: true, stored: ours}, decision{}},
		"unreachable":                     {input{bundle: lost, stored: ours, known: true}, decision{state: stateSaved}},
		"unreachable and new":             {input{bundle: lost, stored: empty, known: true}, decision{state: statePending}},
		"cluster removed":                 {input{complete: true, stored: ours}, decision{action: actionRemove}},
		"cluster of another hub":          {input{complete: true, stored: ofOthers}, decision{}},
		"cluster taken from another hub":  {input{complete: true, known: true, stored: ofOthers}, decision{action: actionRemove}},
		"it is not known which there are": {input{stored: ours}, decision{}},
		"another writer's":                {input{bundle: bundleAt("1"), stored: theirs}, decision{state: stateYielded, coWriter: coWriter{revision: 7, version: "1"}}},
		"another writer's, over ours":     {input{bundle: bundleAt("2"), stored: overwritten}, decision{state: stateYielded, coWriter: coWriter{revision: 9, version: "2"}}},
	} {
		c.input.hub, c.input.now = "us", begin
		if diff := cmp.Diff(c.want, decide(c.input), cmp.AllowUnexported(decision{}, coWriter{})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// decideInSequence calls decide for each observation of a bundle that another writer saves too, and returns the last decision.
func decideInSequence(t *testing.T, observations []observation) decision {
	t.Helper()
	var d decision
	for _, l := range observations {
		d = decide(input{
			bundle: bundleAt(l.version), stored: appcontext.StoredBundle{Exists: true, Revision: l.revision},
			coWriter: d.coWriter, hub: "us", now: begin.Add(l.after),
		})
	}
	return d
}

// observation is a version of the bundle, with the revision of the other writer's last write, a time after begin.
type observation struct {
	after    time.Duration
	version  string
	revision int64
}

func TestDecideTakesOverFromSilentWriter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		observations []observation
		action       action
		requeueAfter time.Duration
	}{
		"nothing changes":              {[]observation{{0, "1", 7}, {24 * time.Hour, "1", 7}}, actionNone, 0},
		"they write first":             {[]observation{{0, "1", 7}, {time.Second, "2", 8}, {24 * time.Hour, "2", 8}}, actionNone, 0},
		"they write a moment later":    {[]observation{{0, "1", 7}, {time.Second, "2", 7}, {time.Second + takeoverAfter, "2", 8}}, actionNone, 0},
		"they may still write":         {[]observation{{0, "1", 7}, {time.Minute, "2", 7}, {2 * time.Minute, "3", 7}}, actionNone, takeoverAfter - time.Minute},
		"they do not write":            {[]observation{{0, "1", 7}, {time.Minute, "2", 7}, {time.Minute + takeoverAfter, "2", 7}}, actionSave, 0},
		"changes do not prolong it":    {[]observation{{0, "1", 7}, {0, "2", 7}, {takeoverAfter / 2, "3", 7}, {takeoverAfter, "4", 7}}, actionSave, 0},
		"they write again in the end":  {[]observation{{0, "1", 7}, {0, "2", 7}, {takeoverAfter / 2, "3", 8}, {takeoverAfter, "3", 8}}, actionNone, 0},
		"they fall silent after a day": {[]observation{{0, "1", 7}, {time.Hour, "2", 8}, {24 * time.Hour, "3", 8}, {24*time.Hour + takeoverAfter, "3", 8}}, actionSave, 0},
	} {
		if d := decideInSequence(t, c.observations); d.action != c.action || d.requeueAfter != c.requeueAfter {
			t.Errorf("%s: want step %d again after %s, got %+v", name, c.action, c.requeueAfter, d)
		}
	}
}

// TestDecideNeverOverwritesNorRemovesUnseen checks for random input that decide never saves over another writer that is up to date, and never
// removes a bundle that may exist.
func TestDecideNeverOverwritesNorRemovesUnseen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := input{
			known: rapid.Bool().Draw(t, "known"), complete: rapid.Bool().Draw(t, "complete"), hub: "us", now: begin,
			stored: rapid.SampledFrom([]appcontext.StoredBundle{nowhere, empty, ours, theirs, overwritten, emptied, orphaned, ofOthers}).Draw(t, "stored"),
		}
		if rapid.Bool().Draw(t, "there") {
			s.bundle = bundleAt(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version"))
			s.bundle.Stale = rapid.Bool().Draw(t, "lost")
		}
		foreign := s.stored.Revision > 0 && !s.stored.IsOurs()
		d := decide(s)
		if d.action == actionSave && (s.bundle == nil || s.bundle.Stale || foreign || !s.stored.Exists) {
			t.Fatalf("saves in %+v", s)
		}
		if d.action == actionRemove && s.stored.Exists && (s.bundle != nil || !s.complete) {
			t.Fatalf("removes in %+v", s)
		}
		s.coWriter, s.now = d.coWriter, begin.Add(takeoverAfter-1)
		if again := decide(s); foreign && again.action == actionSave {
			t.Fatalf("takes over too early in %+v", s)
		}
	})
}
