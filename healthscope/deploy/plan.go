package deploy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// Criterion is the state of another app that an app waits for.
type Criterion string

// The criteria. EMCO ignores others.
const (
	// CriterionReady is that all resources of the app are healthy in all its clusters.
	CriterionReady Criterion = "Ready"
	// CriterionDeployed is that they are applied there.
	CriterionDeployed Criterion = "Deployed"
)

// Dependency is a condition that an app waits for before its first step.
type Dependency struct {
	App       string
	Criterion Criterion
	// Wait is how long the app waits after the criterion holds.
	Wait time.Duration
}

// Hook is a point in time at which objects are applied that are not part of an app. rsync waits until their work is done.
type Hook string

// The hooks, as Helm and EMCO name them. hookCRDInstall names the CRDs that are created first; rsync does not wait for work of theirs.
const (
	HookPreInstall  Hook = "pre-install"
	HookPostInstall Hook = "post-install"
	HookPreDelete   Hook = "pre-delete"
	HookPostDelete  Hook = "post-delete"

	hookCRDInstall Hook = "crd-install"
)

// hooks are the hooks in the order in which they come.
var hooks = []Hook{HookPreInstall, HookPostInstall, HookPreDelete, HookPostDelete}

// Resource is an object that a context wants in a cluster.
type Resource struct {
	// Name is <object>+<Kind>.
	Name string
	// Body is the object, in YAML or JSON.
	Body string
	// Approval is the condition, in JSON, by which a CertificateSigningRequest is approved when it is applied; else empty.
	Approval string
	// Status is its status in etcd, if the current event has written it; else empty.
	Status appcontext.ResourceStatus
	// UpToDate is true when it is applied with exactly the desired value, by any event.
	UpToDate bool
}

// isDefinition reports whether a resource defines a kind.
func (r Resource) isDefinition() bool { return strings.HasSuffix(r.Name, "+CustomResourceDefinition") }

// Target is an app in a cluster.
type Target struct {
	App, Cluster string
	// Definitions are the CRDs, which are created first, and stay when the others are deleted.
	Definitions []Resource
	// Resources are in the order in which they are applied.
	Resources []Resource
	// Hooks are the objects of each hook, in their order.
	Hooks map[Hook][]Resource
	// Connectivity is the connectivity of the cluster in etcd.
	Connectivity appcontext.Connectivity

	// retained are the names of the resources that other contexts of the deployment have here: they are not deleted.
	retained []string
}

// All returns the resources of all kinds, those of hooks last.
func (t Target) All() []Resource {
	all := slices.Concat(t.Definitions, t.Resources)
	for _, hook := range hooks {
		all = append(all, t.Hooks[hook]...)
	}
	return all
}

// App is an application of a context.
type App struct {
	Name         string
	Dependencies []Dependency
	Targets      []Target
}

// Plan is the desired state of clusters according to a context.
type Plan struct {
	// ID is the context's id, and StatusID that of the context under which states are kept: the first of those that updates
	// lead from one to the next.
	ID, StatusID string
	// Namespace is where objects go that name none, and Level that of the logical cloud: with "0", objects may be in other
	// namespaces and in none.
	Namespace, Level string
	// Namespaces are those in which objects may be beside Namespace.
	Namespaces []string
	// CorrectDrift is true when fields that others have set in the context's objects are set back when these are applied.
	CorrectDrift bool
	// DeletionOrder is the order in which resources are deleted. The default is DeletionReverse.
	DeletionOrder configv1alpha1.DeletionOrder
	// OnlyRead is true when the context was only read and never deployed, so that it owns nothing in clusters.
	OnlyRead bool
	// BeginRevision is the revision of etcd at which the event was begun. Earlier statuses say nothing about its work.
	BeginRevision int64
	Apps          []App

	// contexts are what the plan was made of. bodies are the objects by their values in etcd: most are the same in all clusters.
	contexts Contexts
	bodies   map[string]string
}

// Targets returns the apps in their clusters.
func (p *Plan) Targets() []Target {
	var all []Target
	for _, a := range p.Apps {
		all = append(all, a.Targets...)
	}
	return all
}

// BundleName returns the value of the label that the objects and the bundles of an app carry, which is also the name of the bundles
// unless it may not be one.
func (p *Plan) BundleName(app string) string { return p.statusID() + "-" + app }

// Contexts are what the work of an event is about.
type Contexts struct {
	// Acted is the context of the event, and Status the one under which states are kept, which may be the same.
	Acted, Status *appcontext.Snapshot
	// Others are other contexts of the deployment: the one before in an EventUpdate, and in events that delete, all that are
	// to be there.
	Others []*appcontext.Snapshot
	// Retry is what is known of the event if it was handled before.
	Retry Retry
}

// NewPlan reads the desired state from a context. It rejects contexts that could be applied only in part: with apps that wait
// for each other or for an app outside the context, or with names in an order that have no resource.
func NewPlan(s *appcontext.Snapshot) (*Plan, error) { return Contexts{Acted: s, Status: s}.Plan() }

// Plan reads the desired state from the acted context, as NewPlan does.
func (c Contexts) Plan() (*Plan, error) {
	s := c.Acted
	meta, err := s.Meta()
	if err != nil {
		return nil, err
	}
	l, err := ReadLifecycle(s)
	if err != nil {
		return nil, err
	}
	p := &Plan{
		ID: s.ID(), Namespace: cmp.Or(meta.Namespace, "default"), Level: cmp.Or(meta.Level, "0"), Namespaces: meta.Namespaces,
		CorrectDrift: meta.CorrectDrift, OnlyRead: l.onlyRead(), contexts: c, bodies: map[string]string{},
		BeginRevision: cmp.Or(c.Retry.Begun, beginRevision(s)),
	}
	if p.StatusID, err = s.StatusContextID(); err != nil {
		return nil, err
	}
	order, err := appOrder(s)
	if err != nil {
		return nil, err
	}
	for _, name := range order {
		a, ok := s.App(name)
		if !ok {
			return nil, fmt.Errorf("apporder names app %q, which is not in context %q", name, p.ID)
		}
		app, err := p.readApp(a)
		if err != nil {
			return nil, fmt.Errorf("app %q: %w", name, err)
		}
		p.Apps = append(p.Apps, app)
	}
	return p, p.checkDependencies()
}

// appOrder returns the names of the apps that are deployed. EMCO's rsync needs the instruction, but its design has contexts without one:
// then it is all apps.
func appOrder(s *appcontext.Snapshot) ([]string, error) {
	order, err := s.AppOrder()
	if err == nil && order == nil {
		for _, a := range s.Apps() {
			order = append(order, a.Name())
		}
	}
	if err == nil && len(order) == 0 {
		err = fmt.Errorf("context %q has no apps, or an empty order of apps (app/instruction/order)", s.ID())
	}
	return order, err
}

func (p *Plan) readApp(a appcontext.App) (App, error) {
	app := App{Name: a.Name()}
	if data, ok := a.Value("instruction", "dependency"); ok {
		var err error
		if app.Dependencies, err = readDependencies(data); err != nil {
			return app, err
		}
	}
	for _, c := range a.Clusters() {
		target, ok, err := p.readTarget(a.Name(), c)
		if err != nil {
			return app, fmt.Errorf("cluster %q: %w", c.Name(), err)
		}
		if ok {
			app.Targets = append(app.Targets, target)
		}
	}
	return app, nil
}

// readDependencies reads the instruction of an app, a JSON string. EMCO spells a field in two ways, and encoding/json reads both.
func readDependencies(data []byte) ([]Dependency, error) {
	var text string
	var all []struct {
		App      string    `json:"app"`
		OpStatus Criterion `json:"opstatus"`
		Wait     int       `json:"wait"`
	}
	if err := json.Unmarshal(data, &text); err != nil {
		return nil, fmt.Errorf("cannot read dependency: %w", err)
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("cannot read dependency %q: %w", text, err)
	}
	var dependencies []Dependency
	for _, d := range all {
		if d.Wait < 0 {
			return nil, fmt.Errorf("dependency on app %q: wait is %d, and must not be negative", d.App, d.Wait)
		}
		if d.OpStatus == CriterionReady || d.OpStatus == CriterionDeployed {
			dependencies = append(dependencies, Dependency{d.App, d.OpStatus, time.Duration(d.Wait) * time.Second})
		}
	}
	return dependencies, nil
}

// readTarget reads an app in a cluster. It is false for a cluster without an order of resources, which EMCO skips.
func (p *Plan) readTarget(app string, c appcontext.Cluster) (Target, bool, error) {
	t := Target{App: app, Cluster: c.Name(), Hooks: map[Hook][]Resource{}}
	order, err := c.ResourceOrder()
	if err != nil || order == nil {
		return t, false, err
	}
	if t.Connectivity, err = c.Connectivity(); err != nil {
		return t, false, err
	}
	names, err := readHooks(c)
	if err != nil {
		return t, false, err
	}
	read := func(names []string) (resources []Resource) {
		if err == nil {
			resources, err = p.readResources(app, c, names)
		}
		return resources
	}
	t.Definitions = read(names[hookCRDInstall])
	for _, r := range read(order) {
		if r.isDefinition() {
			t.Definitions = append(t.Definitions, r)
		} else {
			t.Resources = append(t.Resources, r)
		}
	}
	for _, hook := range hooks {
		t.Hooks[hook] = read(names[hook])
	}
	if err == nil {
		t.retained, err = p.readRetained(app, c.Name())
	}
	return t, err == nil, err
}

// readResources reads the resources of an order.
func (p *Plan) readResources(app string, c appcontext.Cluster, order []string) ([]Resource, error) {
	var all []Resource
	for _, name := range order {
		r, ok := c.Resource(name)
		if !ok {
			return nil, fmt.Errorf("the order names resource %q, which does not exist", name)
		}
		body, err := p.readBody(r)
		if err != nil {
			return nil, err
		}
		resource := Resource{Name: name, Body: body}
		if data, ok := r.Value("subresource", "approval"); ok && strings.HasSuffix(name, "+CertificateSigningRequest") {
			if err := json.Unmarshal(data, &resource.Approval); err != nil {
				return nil, fmt.Errorf("cannot read the approval of %q: %w", name, err)
			}
		}
		if err := p.readStatus(app, c.Name(), r, &resource); err != nil {
			return nil, err
		}
		all = append(all, resource)
	}
	return all, nil
}

// readBody decodes the object of a resource, unless another resource has the same.
func (p *Plan) readBody(r appcontext.Resource) (string, error) {
	raw, _ := r.Value()
	if body, isKnown := p.bodies[string(raw)]; isKnown {
		return body, nil
	}
	body, err := r.Body()
	if err == nil {
		p.bodies[string(raw)] = body
	}
	return body, err
}

// readStatus sets Status and UpToDate of a resource from the status context. desired is the resource in the context of the event.
// Statuses from before BeginRevision belong to an earlier event, and those that another context has written since to its event.
func (p *Plan) readStatus(app, cluster string, desired appcontext.Resource, r *Resource) error {
	have, ok := resourceIn(p.contexts.Status, app, cluster, r.Name)
	if !ok {
		return nil
	}
	status, err := have.Status()
	if err != nil {
		return err
	}
	by, err := have.Reference()
	if err != nil {
		return err
	}
	if have.Revision("status") > p.BeginRevision && by == p.ID {
		r.Status = status
	}
	r.UpToDate = status == appcontext.ResourceApplied && p.isUnchanged(by, app, cluster, desired)
	return nil
}

// isUnchanged reports whether the context that applied a resource has exactly the desired value. It returns false for a context
// that has not been read.
func (p *Plan) isUnchanged(by, app, cluster string, desired appcontext.Resource) bool {
	for _, s := range append([]*appcontext.Snapshot{p.contexts.Acted, p.contexts.Status}, p.contexts.Others...) {
		if s.ID() == by {
			applied, ok := resourceIn(s, app, cluster, desired.Name())
			have, _ := applied.Value()
			want, _ := desired.Value()
			return ok && bytes.Equal(have, want)
		}
	}
	return false
}

// readRetained returns the names of the resources that other contexts have of an app in a cluster. There may be others whose states
// they keep.
func (p *Plan) readRetained(app, cluster string) ([]string, error) {
	var retained []string
	for _, s := range p.contexts.Others {
		c := clusterIn(s, app, cluster)
		names, err := c.ResourceOrder()
		if names != nil {
			retained = append(retained, names...)
			var hooks map[Hook][]string
			hooks, err = readHooks(c)
			for _, more := range hooks {
				retained = append(retained, more...)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("context %q: %w", s.ID(), err)
		}
	}
	return retained, nil
}

// clusterIn returns an app in a cluster in a context, which may be nil; without anything when it is not there.
func clusterIn(s *appcontext.Snapshot, app, cluster string) appcontext.Cluster {
	if s != nil {
		if a, ok := s.App(app); ok {
			if c, ok := a.Cluster(cluster); ok {
				return c
			}
		}
	}
	return appcontext.Cluster{}
}

func resourceIn(s *appcontext.Snapshot, app, cluster, name string) (appcontext.Resource, bool) {
	return clusterIn(s, app, cluster).Resource(name)
}

// readHooks returns the names of the resources of each hook.
func readHooks(c appcontext.Cluster) (map[Hook][]string, error) {
	data, ok := c.Value("resource", "instruction", "dependency")
	if !ok {
		return nil, nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return nil, fmt.Errorf("cannot read the dependency of resources: %w", err)
	}
	var value struct {
		ResDependency map[Hook][]string `json:"resdependency"`
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, nil //nolint:nilerr // Other controllers store other forms here, which mean nothing to rsync.
	}
	return value.ResDependency, nil
}

// checkDependencies rejects apps that would wait indefinitely.
func (p *Plan) checkDependencies() error {
	byName := map[string]App{}
	for _, a := range p.Apps {
		byName[a.Name] = a
	}
	const visiting, visited = 1, 2
	marks := map[string]int{}
	var visit func(a App, path []string) error
	visit = func(a App, path []string) error {
		path = append(path, a.Name)
		switch marks[a.Name] {
		case visited:
			return nil
		case visiting:
			return fmt.Errorf("apps wait for each other: %s", strings.Join(path[slices.Index(path, a.Name):], " → "))
		}
		marks[a.Name] = visiting
		for _, d := range a.Dependencies {
			other, ok := byName[d.App]
			if !ok {
				return fmt.Errorf("app %q depends on app %q, which is not in the context", a.Name, d.App)
			}
			if err := visit(other, path); err != nil {
				return err
			}
		}
		marks[a.Name] = visited
		return nil
	}
	for _, a := range p.Apps {
		if err := visit(a, nil); err != nil {
			return err
		}
	}
	return nil
}

// Updated returns the targets with the resources that Update applies, and with those that it leaves because they are as desired.
func (p *Plan) Updated() (applied, left []Target) {
	for _, t := range p.Targets() {
		applied = append(applied, t.without(func(r Resource) bool { return r.UpToDate }))
		left = append(left, t.without(func(r Resource) bool { return !r.UpToDate }))
	}
	return applied, left
}

// Removed returns the targets with the resources that Removal deletes.
func (p *Plan) Removed() []Target {
	var removed []Target
	for _, t := range p.Targets() {
		removed = append(removed, t.without(func(r Resource) bool { return r.isDefinition() || slices.Contains(t.retained, r.Name) }))
	}
	return removed
}

// without returns a target without hooks and without the resources for which exclude is true.
func (t Target) without(exclude func(Resource) bool) Target {
	t.Hooks = nil
	t.Definitions = slices.DeleteFunc(slices.Clone(t.Definitions), exclude)
	t.Resources = slices.DeleteFunc(slices.Clone(t.Resources), exclude)
	return t
}
