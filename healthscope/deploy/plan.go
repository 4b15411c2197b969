package deploy

import (
	"cmp"
	"encoding/json"
	"errors"
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
	Apps     []App

	// observed is the known state of the resources. retained are the names of resources, by app and cluster, that other
	// wanted contexts have: they are not deleted.
	observed observed
	retained map[appInCluster][]string
}

// appInCluster is an app in a cluster.
type appInCluster struct{ app, cluster string }

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

// BeginRevision returns the revision of etcd at which the event was begun. Earlier statuses say nothing about its work.
func (p *Plan) BeginRevision() int64 { return p.observed.beginRevision }

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
		CorrectDrift: meta.CorrectDrift, OnlyRead: l.onlyRead(), observed: observed{c, cmp.Or(c.Retry.Begun, beginRevision(s)), map[string]string{}},
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
		app, err := newApp(a, p.observed)
		if err != nil {
			return nil, fmt.Errorf("app %q: %w", name, err)
		}
		p.Apps = append(p.Apps, app)
	}
	if p.retained, err = c.retained(); err != nil {
		return nil, err
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

// ErrUnsupported is the cause of errors about what this rsync does not do yet.
var ErrUnsupported = errors.New("not supported")

func newApp(a appcontext.App, o observed) (App, error) {
	app := App{Name: a.Name()}
	if data, ok := a.Value("instruction", "dependency"); ok {
		var err error
		if app.Dependencies, err = readDependencies(data); err != nil {
			return app, err
		}
	}
	for _, c := range a.Clusters() {
		target, ok, err := newTarget(a.Name(), c, o)
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

// newTarget reads an app in a cluster. It is false for a cluster without an order of resources, which EMCO skips.
func newTarget(app string, c appcontext.Cluster, o observed) (Target, bool, error) {
	t := Target{App: app, Cluster: c.Name()}
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
			resources, err = newResources(app, c, names, o)
		}
		return resources
	}
	t.Definitions, t.Hooks = read(names[hookCRDInstall]), map[Hook][]Resource{}
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
	return t, err == nil, err
}

// newResources reads the resources of an order.
func newResources(app string, c appcontext.Cluster, order []string, o observed) ([]Resource, error) {
	var all []Resource
	for _, name := range order {
		r, ok := c.Resource(name)
		if !ok {
			return nil, fmt.Errorf("the order names resource %q, which does not exist", name)
		}
		body, err := o.body(r)
		if err != nil {
			return nil, err
		}
		resource := Resource{Name: name, Body: body}
		if data, ok := r.Value("subresource", "approval"); ok && strings.HasSuffix(name, "+CertificateSigningRequest") {
			if err := json.Unmarshal(data, &resource.Approval); err != nil {
				return nil, fmt.Errorf("cannot read the approval of %q: %w", name, err)
			}
		}
		if err := o.readStatus(app, c.Name(), r, &resource); err != nil {
			return nil, err
		}
		all = append(all, resource)
	}
	return all, nil
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
