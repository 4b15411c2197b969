package deploy

import (
	"slices"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// Reading returns the steps that read the objects that a context names. They are independent of each other, so that a missing
// object does not block the others. After a restart, all are read again.
func (p *Plan) Reading() *Progress {
	progress := &Progress{}
	for _, t := range p.Targets() {
		for _, r := range slices.Concat(t.Definitions, t.Resources) {
			seq := &sequence{app: t.App, steps: []Step{{Verb: VerbRead, App: t.App, Cluster: t.Cluster, Resource: r}}}
			progress.targets = append(progress.targets, seq.resume())
		}
	}
	return progress
}

// onlyRead reports whether a context was only read, and never deployed: it owns nothing in clusters.
func (l Lifecycle) onlyRead() bool {
	read := false
	for _, e := range l.Queue {
		if e.Event.Deploys() && e.Status != EventSkipped {
			return false
		}
		read = read || e.Event == EventRead
	}
	return read
}

// Read returns the write that stores an object that was read, in the context of the event.
func (p *Plan) Read(s Step, object string) appcontext.Write {
	h := appcontext.AppInCluster{ContextID: p.ID, App: s.App, Cluster: s.Cluster}.Handle()
	return appcontext.Write{Handle: h.Level("resource/" + s.Resource.Name).Level("definition"), Value: object}
}
