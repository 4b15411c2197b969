package status

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// CurrentFor is the maximum age of contexts that count as current. The document does not show the age of current contexts. etcd is
// read more often, so a greater age means that etcd does not respond.
const CurrentFor = 10 * time.Second

// Input holds the data from which a document is built.
type Input struct {
	// Subject is the subject of the document: a deployment intent group, or a cluster with its network intents.
	Subject appcontext.DeploymentRef
	// View is the stored state of the subject. Its contexts are read only through Contents.
	appcontext.View
	// Contents is the result of Decode for View; nil when View has no context.
	Contents *Contents
	// Reports are the reports of the bundles, by the apps in clusters of Contents.Expected. A missing report means that nothing is known.
	Reports map[AppInCluster]Report
	// Policy is the policy of the installation. It limits how long a resource may be missing.
	Policy healthscope.Policy
	// Now is the current time.
	Now time.Time
}

// builder builds one document.
type builder struct {
	Input

	query     Query
	lifecycle lifecycle
	document  Document
	total     rollup
	oldest    oldestSeen
	matched   struct{ apps, clusters, resources map[string]bool }

	// view is the app in a cluster that is being built, scratch holds its rows, and objects its whole objects; nil until they are used.
	view    view
	scratch []row
	objects map[healthscope.Key]map[string]any
}

// New returns the document for a query.
//
// Apps are in the order in which the context brings them up. Clusters are sorted by name. Resources in the context are sorted by
// name and kind. Resources that are only in the cluster follow, sorted by group, kind, namespace and name. Counts cover the
// resources that the document lists, or would list if it were not a summary.
//
// An object in a cluster matches a resource in the context when kind and name are the same, and group and namespace too where
// they are known. The version makes no difference.
func New(in Input, q Query) Document {
	b := builder{Input: in, query: q}
	b.document = newDocument(in)
	if q.ListInstances {
		b.document.Instances, b.document.Freshness = instances(in.View), b.freshness()
		return b.document
	}
	b.document.State = history(in.Info.Actions)
	if in.ContextID != "" {
		var state appcontext.State
		if in.Contents != nil {
			state = in.Contents.state
			b.document.Problems = in.Contents.problemsOf(in.Subject)
		}
		b.lifecycle = lifecycleOf(in.ContextID, state, in.Info.Actions)
		b.document.Status = string(state)
		b.apps()
	}
	if q.Health {
		b.document.Health = b.overall(b.total)
	}
	b.document.Freshness = b.freshness()
	b.document.Unmatched = b.unmatched()
	return b.document
}

// newDocument returns a document with the names of its subject.
func newDocument(in Input) Document {
	s := in.Subject
	if s.Cluster != "" {
		return Document{Name: s.Provider + "+" + s.Cluster}
	}
	d := Document{Project: s.Project, CompositeApp: s.CompositeApp, CompositeAppVersion: s.Version, Name: s.Group}
	if in.Contents != nil {
		d.CompositeProfile = in.Contents.profile
	}
	return d
}

// history returns the actions of users. Without actions, it returns a history that is unknown rather than empty, because users have created the group.
func history(actions []appcontext.Action) *History {
	if len(actions) == 0 {
		return &History{Unknown: noHistory}
	}
	h := &History{Actions: make([]Action, 0, len(actions))}
	for _, a := range actions {
		h.Actions = append(h.Actions, Action{State: string(a.State), ContextID: a.ContextID, TimeStamp: a.Time.UTC().Format(time.RFC3339Nano)})
	}
	return h
}

// instances returns the ids of the contexts in the order of their first actions, then the ids of contexts without a known action.
func instances(v appcontext.View) []string {
	ids, seen := []string{}, map[string]bool{"": true}
	all := make([]string, 0, len(v.Info.Actions)+len(v.Contexts))
	for _, a := range v.Info.Actions {
		all = append(all, a.ContextID)
	}
	for _, id := range append(all, v.Contexts...) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// apps adds apps, counts and states to the document.
func (b *builder) apps() {
	if b.Contents == nil {
		return
	}
	b.matched.apps, b.matched.clusters, b.matched.resources = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range b.Contents.apps {
		a := &b.Contents.apps[i]
		wire := App{Name: a.name}
		var u rollup
		for _, p := range a.clusters {
			if isSelected(b.Subject, b.query, p.AppInCluster) {
				b.addCluster(&wire, &u, p)
			}
		}
		if b.query.Health {
			wire.Health = b.health(u)
		}
		b.total.merge(u)
		if len(wire.Clusters) > 0 && b.query.Output != OutputSummary {
			b.document.Apps = append(b.document.Apps, wire)
		}
	}
}

// addCluster adds a cluster to an app.
func (b *builder) addCluster(to *App, u *rollup, p *appInCluster) {
	rows := b.rows(p)
	listed := b.listedRows(rows)
	b.countRows(p.AppInCluster, listed)
	cluster := Cluster{Provider: p.provider, Name: p.cluster}
	if p.retrying {
		cluster.Connectivity = string(appcontext.ConnectivityRetrying)
	}
	if len(rows) > 0 {
		cluster.Freshness = b.age()
	}
	if b.query.Health {
		own := b.rollUp(p.AppInCluster, rows)
		cluster.Health = b.health(own)
		u.merge(own)
	}
	if b.query.Output == OutputSummary || len(listed) == 0 {
		return
	}
	cluster.Resources = b.resources(listed)
	to.Clusters = append(to.Clusters, cluster)
}

// rows returns the expected and the existing resources of an app in a cluster that the query selects. The next call overwrites the
// result.
func (b *builder) rows(p *appInCluster) []row {
	v := &b.view
	b.objects = nil
	if b.query.usesClusters() {
		v.setReport(p, b.Reports[p.AppInCluster], b.lifecycle.terminated)
	}
	rows := b.scratch[:0]
	for i := range p.resources {
		r := &p.resources[i]
		if !filterMatches(b.query.Resources, r.name) {
			continue
		}
		m := v.member(i)
		rows = append(rows, row{expected: r, member: m, rsync: b.lifecycle.rsyncWord(r), presence: v.presence(m, v.follows(i))})
	}
	if v.matching != nil {
		for _, i := range v.unexpected {
			if m := &v.Members[i]; filterMatches(b.query.Resources, m.Name) {
				rows = append(rows, row{member: m, presence: v.presence(m, true)})
			}
		}
	}
	if b.query.Health {
		for i := range rows {
			b.judgeRow(&rows[i])
		}
	}
	b.scratch = rows
	return rows
}

// listedRows returns the rows that the type of the query lists.
func (b *builder) listedRows(rows []row) []row {
	if b.query.Type != TypeRsync {
		return rows
	}
	if others := slices.IndexFunc(rows, func(r row) bool { return r.expected == nil }); others >= 0 {
		return rows[:others] // They come last.
	}
	return rows
}

// countRows counts rows by rsync status and by presence, and records the filter values that they match.
func (b *builder) countRows(at AppInCluster, rows []row) {
	if len(rows) == 0 {
		return
	}
	b.matched.apps[at.App], b.matched.clusters[at.Cluster] = true, true
	d := &b.document
	if d.RsyncStatus == nil && b.query.Type != TypeCluster {
		d.RsyncStatus = map[string]int{}
	}
	if d.ClusterStatus == nil && b.query.Type != TypeRsync {
		d.ClusterStatus = map[string]int{}
	}
	for i := range rows {
		r := &rows[i]
		if d.RsyncStatus != nil && r.expected != nil {
			d.RsyncStatus[r.rsync]++
		}
		if d.ClusterStatus != nil {
			d.ClusterStatus[string(r.presence)]++
		}
		if len(b.query.Resources) > 0 {
			b.matched.resources[r.identity().name] = true
		}
	}
}

// rollUp rolls up rows, and the unlisted objects of the bundle. A filter by name excludes unlisted objects.
func (b *builder) rollUp(at AppInCluster, rows []row) rollup {
	var u rollup
	for i := range rows {
		u.add(at, &rows[i])
	}
	unlisted := b.view.Unlisted
	if b.view.Unreachable {
		unlisted = unlisted.MarkUnreachable()
	}
	switch {
	case len(b.query.Resources) > 0:
	case b.lifecycle.deleting:
		u.remaining += unlisted.Total
	default:
		u.addSummary(unlisted)
	}
	return u
}

// resources returns rows as they are served.
func (b *builder) resources(rows []row) []Resource {
	written := make([]Resource, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		id := r.identity()
		wire := Resource{GVK: id.gvk(), Name: id.name}
		switch b.query.Type {
		case TypeRsync:
			wire.RsyncStatus = r.rsync
		case TypeCluster:
			if r.presence != Present {
				wire.ClusterStatus = r.presence
			}
		case TypeAll:
			wire.RsyncStatus, wire.ClusterStatus = r.rsync, r.presence
		}
		if b.query.Health {
			wire.Namespace, wire.Health = id.namespace, b.healthOf(r)
		}
		if b.query.Output == OutputDetail {
			wire.Detail = b.detail(r)
		}
		written = append(written, wire)
	}
	return written
}

// detail returns the object of a row from the context with TypeRsync, and otherwise from the cluster; nil when it is not available.
func (b *builder) detail(r *row) []byte {
	if b.query.Type == TypeRsync {
		return r.expected.object()
	}
	if r.member == nil {
		return nil
	}
	if b.objects == nil {
		b.objects = b.view.Bundle.objects()
	}
	return encode(b.objects[r.member.Key])
}

// object returns the redacted object in the context, in JSON; nil when it cannot be read.
func (r *resource) object() []byte {
	text, _ := r.stored.Body()
	return encode(parseRedacted(text))
}

// unmatched returns the filter values that no resource in the document matches; nil when there are none.
func (b *builder) unmatched() *Unmatched {
	missing := func(wanted []string, found map[string]bool) []string {
		return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return found[name] })
	}
	u := Unmatched{
		Apps:      missing(b.query.Apps, b.matched.apps),
		Clusters:  missing(b.query.Clusters, b.matched.clusters),
		Resources: missing(b.query.Resources, b.matched.resources),
	}
	if b.ContextID != "" && b.Contents == nil {
		u.Instance = b.ContextID
	}
	if len(u.Apps)+len(u.Clusters)+len(u.Resources)+len(u.Instance) == 0 {
		return nil
	}
	return &u
}

// oldestSeen is the combined freshness of a document.
type oldestSeen struct {
	saved, truncated bool
	seen             time.Time
}

func (o *oldestSeen) add(seen time.Time) {
	if !seen.IsZero() && (o.seen.IsZero() || seen.Before(o.seen)) {
		o.seen = seen
	}
}

// age returns the freshness of a report. The age of a current report is included only with health.
func (b *builder) age() Freshness {
	v := &b.view
	f := Freshness{Truncated: v.Truncated}
	b.oldest.truncated = b.oldest.truncated || v.Truncated
	if v.Saved {
		f.Source, b.oldest.saved = sourceContext, true
	}
	if v.Saved || v.Unreachable || b.query.Health {
		f.LastSeen = wireTime(v.LastSeen)
		b.oldest.add(v.LastSeen)
	}
	return f
}

// freshness returns the freshness of the document, with the age of its oldest fact.
func (b *builder) freshness() Freshness {
	f := Freshness{Truncated: b.oldest.truncated}
	if b.oldest.saved {
		f.Source = sourceContext
	}
	if b.query.Health || b.Now.Sub(b.AsOf) > CurrentFor {
		b.oldest.add(b.AsOf)
	}
	f.LastSeen = wireTime(b.oldest.seen)
	return f
}

// encode returns an object in JSON; nil when there is none. It does not escape <, > and &, because responses are not HTML.
func encode(object map[string]any) []byte {
	if object == nil {
		return nil
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(object); err != nil {
		return nil
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
