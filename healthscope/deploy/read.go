package deploy

import (
	"slices"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// Reading returns the steps that read what a context names. They wait for nothing, and what is not there keeps no other from being
// read. All is read again after a restart.
func (p *Plan) Reading() *Progress {
	work := &Progress{}
	for _, t := range p.Targets() {
		for _, r := range slices.Concat(t.Definitions, t.Resources) {
			l := &sequence{app: t.App, steps: []Step{{Verb: VerbRead, App: t.App, Cluster: t.Cluster, Resource: r}}}
			work.targets = append(work.targets, l.resume())
		}
	}
	return work
}

// onlyRead reports whether all that was done with a context was to read what it names: nothing in clusters is its own.
func (l Lifecycle) onlyRead() bool {
	read := false
	for _, e := range l.Queue {
		if e.Event.Brings() && e.Status != EventSkipped {
			return false
		}
		read = read || e.Event == EventRead
	}
	return read
}

// Read returns the key that holds what was read of a resource, in the context of the event.
func (p *Plan) Read(s Step, object string) appcontext.Write {
	h := appcontext.Place{ContextID: p.ID, App: s.App, Cluster: s.Cluster}.Handle()
	return appcontext.Write{Handle: h.Level("resource/" + s.Resource.Name).Level("definition"), Value: object}
}
