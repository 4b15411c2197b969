package rsync

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// CompositeApp describes a context: applications, their clusters, and their objects.
type CompositeApp struct {
	// Project, Name, Version and DeploymentIntentGroup identify the deployment intent group in status queries.
	Project               string `json:"project"`
	Name                  string `json:"name"`
	Version               string `json:"version"`
	DeploymentIntentGroup string `json:"deploymentIntentGroup"`
	// Namespace is the namespace of objects that name none. The default is "default".
	Namespace string `json:"namespace,omitempty"`
	// Namespaces are other namespaces that objects may name.
	Namespaces []string `json:"namespaces,omitempty"`
	// Administrator allows objects in all namespaces, and cluster-scoped objects. Without it, these are refused.
	Administrator bool `json:"administrator,omitempty"`
	// CorrectDrift allows rsync to overwrite fields that others have set in the objects, whenever it applies them. Without it, such
	// objects are refused.
	CorrectDrift bool `json:"correctDrift,omitempty"`
	// Apps are the applications, in their order.
	Apps []CompositeAppMember `json:"apps"`
}

// CompositeAppMember is an application of a CompositeApp.
type CompositeAppMember struct {
	Name string `json:"name"`
	// Clusters are the names of its clusters, <provider>+<cluster>.
	Clusters []string `json:"clusters"`
	// Manifests are the names of files with its objects, in the order in which they are applied.
	Manifests []string `json:"manifests"`
	// DependsOn are the applications that it waits for.
	DependsOn []CompositeAppDependency `json:"dependsOn,omitempty"`
}

// CompositeAppDependency is an application that another one waits for.
type CompositeAppDependency struct {
	App string `json:"app"`
	// State is Ready or Deployed.
	State deploy.Criterion `json:"state"`
	// WaitSeconds is how long to wait after the app is in State.
	WaitSeconds int `json:"waitSeconds,omitempty"`
}

// resource is an object of a manifest, with its name in the context.
type resource struct{ name, body string }

// CreateContext creates the context of a composite app and returns its id. read reads a manifest. After a failure, it deletes what
// it has stored in etcd; the error says if parts may be left. If only the record in the history fails, it returns the id with the
// error, and the context stays.
func CreateContext(ctx context.Context, store *appcontext.Store, c CompositeApp, read func(name string) ([]byte, error), now time.Time) (string, error) {
	resources, err := c.validate(read)
	if err != nil {
		return "", err
	}
	ac := appcontext.NewAppContext(store)
	ac.InitAppContext()
	meta := appcontext.CompositeAppMeta{
		Project: c.Project, CompositeApp: c.Name, Version: c.Version, Release: c.DeploymentIntentGroup, DeploymentIntentGroup: c.DeploymentIntentGroup,
		Namespace: cmp.Or(c.Namespace, "default"), Level: "1", Namespaces: c.Namespaces, CorrectDrift: c.CorrectDrift,
	}
	if c.Administrator {
		meta.Level = levelAdministrator
	}
	root, err := ac.CreateCompositeApp(ctx)
	if errors.Is(err, appcontext.ErrExists) {
		return "", err // The id is that of another context, which must not be deleted.
	}
	if err == nil {
		err = c.create(ctx, ac, root, meta, resources)
	}
	if err != nil {
		return "", deletePartial(ctx, ac, err)
	}
	snapshot, err := store.Snapshot(ctx, ac.ID())
	if err == nil {
		_, err = deploy.NewPlan(snapshot)
	}
	if err != nil {
		return "", deletePartial(ctx, ac, err)
	}
	subject, _ := meta.DeploymentRef()
	err = store.RecordAction(ctx, appcontext.Record{Subject: subject, Action: appcontext.Action{State: appcontext.ActionCreated, Time: now}})
	return ac.ID(), errors.Wrapf(err, "context %q is made", ac.ID())
}

// deletePartial deletes the stored parts of a context that cannot be created, and returns the cause. If access was denied, nothing is stored.
func deletePartial(ctx context.Context, ac *appcontext.AppContext, cause error) error {
	if err := ac.DeleteCompositeApp(context.WithoutCancel(ctx)); err != nil && !errors.Is(cause, appcontext.ErrDenied) {
		return errors.Wrap(cause, "parts of it may be left in etcd")
	}
	return cause
}

// create stores the content of the context, as EMCO's orchestrator does.
func (c CompositeApp) create(ctx context.Context, ac *appcontext.AppContext, root appcontext.Handle, meta appcontext.CompositeAppMeta, resources map[string][]resource) error {
	if err := ac.AddCompositeAppMeta(ctx, meta); err != nil {
		return err
	}
	var order []string
	for _, a := range c.Apps {
		order = append(order, a.Name)
		if err := a.create(ctx, ac, root, resources[a.Name]); err != nil {
			return errors.Wrapf(err, "cannot store app %q", a.Name)
		}
	}
	_, err := ac.AddInstruction(ctx, root, "app", "order", map[string][]string{"apporder": order})
	return err
}

func (a CompositeAppMember) create(ctx context.Context, ac *appcontext.AppContext, compositeApp appcontext.Handle, resources []resource) error {
	h, err := ac.AddApp(ctx, compositeApp, a.Name)
	if err != nil {
		return err
	}
	type dependency struct {
		App      string           `json:"app"`
		OpStatus deploy.Criterion `json:"opStatus"`
		Wait     int              `json:"wait"`
	}
	var dependencies []dependency
	for _, d := range a.DependsOn {
		dependencies = append(dependencies, dependency{d.App, d.State, d.WaitSeconds})
	}
	if len(dependencies) > 0 {
		data, err := json.Marshal(dependencies)
		if err != nil {
			return err
		}
		if _, err := ac.AddLevelValue(ctx, h, "instruction/dependency", string(data)); err != nil {
			return err
		}
	}
	for _, cluster := range a.Clusters {
		at, err := ac.AddCluster(ctx, h, cluster)
		if err != nil {
			return err
		}
		var order []string
		for _, r := range resources {
			if _, err := ac.AddResource(ctx, at, r.name, r.body); err != nil {
				return err
			}
			order = append(order, r.name)
		}
		if _, err := ac.AddInstruction(ctx, at, "resource", "order", map[string][]string{"resorder": order}); err != nil {
			return err
		}
	}
	return nil
}

// validate returns the resources of each app. Errors name the field and the value.
func (c CompositeApp) validate(read func(string) ([]byte, error)) (map[string][]resource, error) {
	for _, f := range []struct{ field, value string }{
		{"project", c.Project}, {"name", c.Name}, {"version", c.Version}, {"deploymentIntentGroup", c.DeploymentIntentGroup},
	} {
		if f.value == "" || strings.Contains(f.value, "/") {
			return nil, errors.Errorf("%s is %q: it must not be empty, nor contain a slash", f.field, f.value)
		}
	}
	for i, name := range c.Namespaces {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, errors.Errorf("namespaces[%d] is %q: %s", i, name, problems[0])
		}
	}
	if len(c.Apps) == 0 {
		return nil, errors.New("apps is empty: it must name one application at least")
	}
	all := map[string][]resource{}
	for i, a := range c.Apps {
		field := fmt.Sprintf("apps[%d]", i)
		if _, twice := all[a.Name]; twice || a.Name == "" {
			return nil, errors.Errorf("%s.name is %q: it must not be empty, nor be that of another app", field, a.Name)
		}
		resources, err := a.validate(field, read)
		if err != nil {
			return nil, err
		}
		all[a.Name] = resources
	}
	return all, nil
}

func (a CompositeAppMember) validate(field string, read func(string) ([]byte, error)) ([]resource, error) {
	if err := a.validateClusters(field); err != nil {
		return nil, err
	}
	for i, d := range a.DependsOn {
		if d.State != deploy.CriterionReady && d.State != deploy.CriterionDeployed {
			return nil, errors.Errorf("%s.dependsOn[%d].state is %q: it must be Ready or Deployed", field, i, d.State)
		}
	}
	var all []resource
	for i, name := range a.Manifests {
		at := fmt.Sprintf("%s.manifests[%d]", field, i)
		data, err := read(name)
		if err != nil {
			return nil, errors.Wrapf(err, "%s is %q", at, name)
		}
		resources, err := splitManifest(data)
		if err != nil {
			return nil, errors.Wrapf(err, "%s is %q", at, name)
		}
		for _, r := range resources {
			if slices.ContainsFunc(all, func(o resource) bool { return o.name == r.name }) {
				return nil, errors.Errorf("%s is %q: %q is in the manifests of app %q twice", at, name, r.name, a.Name)
			}
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return nil, errors.Errorf("%s.manifests holds no object", field)
	}
	return all, nil
}

func (a CompositeAppMember) validateClusters(field string) error {
	if len(a.Clusters) == 0 {
		return errors.Errorf("%s.clusters is empty: it must name one cluster at least", field)
	}
	for i, name := range a.Clusters {
		if provider, cluster, _ := strings.Cut(name, "+"); provider == "" || cluster == "" || strings.ContainsAny(name, "/") || strings.Contains(cluster, "+") || slices.Contains(a.Clusters[:i], name) {
			return errors.Errorf("%s.clusters[%d] is %q: it must be <provider>+<cluster>, once", field, i, name)
		}
	}
	return nil
}

// splitManifest returns the objects of a manifest, which are separated by lines "---".
func splitManifest(data []byte) ([]resource, error) {
	var all []resource
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for i := 0; ; i++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		o := unstructured.Unstructured{}
		if err != nil || yaml.Unmarshal(text, &o.Object) != nil {
			return nil, errors.Errorf("object %d is not YAML", i+1) // The cause may quote a Secret.
		}
		if len(o.Object) == 0 {
			continue
		}
		if o.GetAPIVersion() == "" || o.GetKind() == "" || o.GetName() == "" {
			return nil, errors.Errorf("object %d has apiVersion %q, kind %q and metadata.name %q: none may be empty", i+1, o.GetAPIVersion(), o.GetKind(), o.GetName())
		}
		if _, err := propagationOf(&o); err != nil {
			return nil, err
		}
		all = append(all, resource{o.GetName() + "+" + o.GetKind(), string(text)})
	}
}
