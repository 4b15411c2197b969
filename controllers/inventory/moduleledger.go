package inventory

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/scope"
)

// moduleAccount is how far the modules of a VNF are.
type moduleAccount struct {
	objects map[aai.VFModule]sync.Object
	// reason and message say what is the matter with A&AI as a whole, and problem says it in one word; empty when nothing is.
	reason, message string
	problem         aai.Problem
}

// putModules notes how a pass over the modules of a VNF ended, and tells the scopes that it makes a difference to.
func (l *Ledger) putModules(v vnf, r sync.ModuleReport, err error) {
	tell(l.noteModules(v, r, err))
}

// noteModules returns the scopes that it makes a difference to how such a pass ended, and who wants to know.
func (l *Ledger) noteModules(v vnf, r sync.ModuleReport, err error) (changed []types.NamespacedName, notify []func(types.NamespacedName)) {
	a := &moduleAccount{objects: make(map[aai.VFModule]sync.Object, len(r.Modules)), problem: problemOf(err, false)}
	a.reason, a.message = trouble(err)
	for m, o := range r.Modules {
		o.Message = plain(o.Message)
		a.objects[m] = o
	}
	l.mu.Lock()
	defer l.mu.Unlock()
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
