package inventory

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/scope"
)

// moduleAccount is how far the modules of a VNF are.
type moduleAccount struct {
	objects map[aai.VFModule]sync.Object
	// letters are those of the modules whose status A&AI has refused.
	letters map[aai.VFModule]entry
	// reason and message say what is the matter with A&AI as a whole, and problem says it in one word; empty when nothing is.
	reason  scope.Reason
	message string
	problem aai.Problem
}

// putModules notes how a pass over the modules of a VNF ended, and tells the scopes that it makes a difference to.
func (l *Ledger) putModules(v vnf, r sync.ModuleReport, err error, now time.Time) {
	tell(l.noteModules(v, r, err, now))
}

// noteModules returns the scopes that it makes a difference to how such a pass ended, and who wants to know.
func (l *Ledger) noteModules(v vnf, r sync.ModuleReport, err error, now time.Time) (changed []types.NamespacedName, notify []func(types.NamespacedName)) {
	a := &moduleAccount{objects: make(map[aai.VFModule]sync.Object, len(r.Modules)), letters: map[aai.VFModule]entry{}, problem: problemOf(err, false)}
	a.reason, a.message = trouble(err)
	for m, o := range r.Modules {
		o.Message = plain(o.Message)
		a.objects[m] = o
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a.writeLetters(l.vnfs[v], now)
	l.vnfs[v] = a
	if len(a.objects) == 0 && a.problem == "" {
		delete(l.vnfs, v)
	}
	look := map[types.NamespacedName]bool{}
	for name, t := range l.told {
		look[name] = slices.ContainsFunc(t.members, func(p scope.Placed) bool { return p.Links != nil && vnf(p.Links.GenericVNFID) == v })
	}
	maps.DeleteFunc(look, func(_ types.NamespacedName, concerned bool) bool { return !concerned })
	return l.differing(look), slices.Clone(l.notify)
}

// writeLetters writes the letters of the modules whose status A&AI has refused. One that had been refused before, for the same reason, keeps its time.
func (a *moduleAccount) writeLetters(before *moduleAccount, now time.Time) {
	for m, o := range a.objects {
		if o.State != sync.Failed {
			continue
		}
		e := entry{Object: o, since: now}
		if before != nil && before.letters[m].Reason == o.Reason {
			e.since = before.letters[m].since
		}
		a.letters[m] = e
	}
}

// addModules explains in a report why modules that apps of the scope name are not as they should be. They are not counted: the numbers are those of resources.
func (l *Ledger) addModules(t *tally, name types.NamespacedName, members []scope.Placed) {
	if len(l.vnfs) == 0 {
		return
	}
	for _, p := range members {
		if p.Links == nil {
			continue
		}
		m, ok := mapping.Module(name.Namespace, p.Links.GenericVNFID, p.Links.VFModuleID, l.mapping)
		a := l.vnfs[vnf(m.GenericVNFID)]
		if !ok || a == nil {
			continue
		}
		if o := a.objects[m]; o.State == sync.Pending || o.State == sync.Failed {
			if a.reason != "" {
				t.why.addf(a.reason, "%s", a.message)
			}
			t.why.addf(reasonOf(o), "operational-status of vf-module %q: %s", m, waiting(o))
		}
	}
}

// moduleStates counts the modules by the state of their synchronisation.
func (l *Ledger) moduleStates() map[string]int {
	states := map[string]int{}
	for _, a := range l.vnfs {
		for _, o := range a.objects {
			states[stateWords[o.State]]++
		}
	}
	return states
}

// stateWords are the words of metrics for states.
var stateWords = map[sync.State]string{sync.Synced: "synced", sync.Pending: "pending", sync.Failed: "failed"}

// waiting says why something is not synced.
func waiting(o sync.Object) string {
	if o.Message == "" { // It came after the last pass had begun, or the pass ended before its turn.
		return "waits for its turn"
	}
	return o.Message
}
