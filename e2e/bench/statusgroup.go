package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

const (
	// groupResources is the number of resources of an app in a cluster: a third each are Deployments, Services and ConfigMaps.
	groupResources = 15
	// groupPath is the path of the group's status.
	groupPath = "/v2/projects/bench/composite-apps/shop/v1/deployment-intent-groups/web/status"
)

// groupSubject is the deployment intent group whose status is requested.
var groupSubject = appcontext.GroupRef("bench", "shop", "v1", "web")

// group is a deployment intent group in etcd: one context, with a saved bundle for each app in each cluster. The hub does not
// read the clusters, so that etcd holds all data.
type group struct {
	id             string
	apps, clusters []string
}

// places returns the number of apps in clusters.
func (g *group) places() int { return len(g.apps) * len(g.clusters) }

// resources returns the number of resources in the context.
func (g *group) resources() int { return g.places() * groupResources }

// newGroup writes the context of a group, as EMCO does, and its bundles, as the recorder does.
func newGroup(ctx context.Context, store *appcontext.Store, apps, clusters int) (*group, error) {
	g := &group{}
	for i := range apps {
		g.apps = append(g.apps, fmt.Sprintf("app-%d", i))
	}
	for i := range clusters {
		g.clusters = append(g.clusters, fmt.Sprintf("west+edge%02d", i))
	}
	ac := appcontext.NewAppContext(store)
	g.id = ac.InitAppContext()
	h, err := g.writeHead(ctx, store, ac)
	if err != nil {
		return nil, fmt.Errorf("cannot write context %q: %w", g.id, err)
	}
	members, err := membersOf(groupObjects())
	if err != nil {
		return nil, err
	}
	values, err := resourceValues(g.id, members)
	if err != nil {
		return nil, err
	}
	saved, err := savedStatus(members)
	if err != nil {
		return nil, err
	}
	for _, name := range g.apps {
		app, err := ac.AddApp(ctx, h, name)
		if err != nil {
			return nil, fmt.Errorf("cannot write app %q: %w", name, err)
		}
		err = each(ctx, len(g.clusters), func(ctx context.Context, i int) error {
			at := appcontext.AppInCluster{ContextID: g.id, App: name, Cluster: g.clusters[i]}
			if err := writePlace(ctx, store, ac, app, at, values, saved); err != nil {
				return fmt.Errorf("cannot write %q: %w", at, err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return g, nil
}

// writeHead writes the values of the context itself, and the order of its apps.
func (g *group) writeHead(ctx context.Context, store *appcontext.Store, ac *appcontext.AppContext) (appcontext.Handle, error) {
	h, err := ac.CreateCompositeApp(ctx)
	if err != nil {
		return "", err
	}
	err = store.RecordAction(ctx, appcontext.Record{
		Subject: groupSubject, Action: appcontext.Action{State: appcontext.ActionInstantiated, ContextID: g.id, Time: started, Revision: 1}, StatusContextID: g.id,
	})
	if err != nil {
		return "", err
	}
	err = ac.AddCompositeAppMeta(ctx, appcontext.CompositeAppMeta{
		Project: groupSubject.Project, CompositeApp: groupSubject.CompositeApp, Version: groupSubject.Version, Release: "r1",
		DeploymentIntentGroup: groupSubject.Group, Namespace: "shop", Level: "0", LogicalCloud: "lc1",
	})
	if err != nil {
		return "", err
	}
	if _, err := ac.AddLevelValue(ctx, h, "status", rsyncState{string(appcontext.StateInstantiated)}); err != nil {
		return "", err
	}
	_, err = ac.AddInstruction(ctx, h, "app", "order", `{"apporder":["`+strings.Join(g.apps, `","`)+`"]}`)
	return h, err
}

// rsyncState is a state in the form in which rsync writes it.
type rsyncState struct{ Status string }

// writePlace writes an app in a cluster, and saves its bundle.
func writePlace(ctx context.Context, store *appcontext.Store, ac *appcontext.AppContext, app appcontext.Handle, at appcontext.AppInCluster, values map[string]any, saved string) error {
	cluster, err := ac.AddCluster(ctx, app, at.Cluster)
	if err != nil {
		return err
	}
	var writes []appcontext.Write
	for level, value := range values {
		writes = append(writes, appcontext.Write{Handle: cluster.Level(level), Value: value})
	}
	if err := store.WriteLevels(ctx, at.ContextID, writes, appcontext.Condition{}); err != nil {
		return err
	}
	stored, err := store.ReadBundle(ctx, at)
	if err != nil {
		return err
	}
	return store.SaveBundle(ctx, stored, saved, appcontext.SavedBundle{
		Seen: started, Namespace: "shop", Name: at.ContextID + "-" + at.App, UID: "6f1c1f3e-7d5a-4b1e-9c1d-000000000000", ResourceVersion: "1", Hub: "bench",
	})
}

// groupObjects returns the objects of an app in a cluster, as they exist there. They are smaller than those of the other rows: a
// saved bundle has 10 KB.
func groupObjects() []client.Object {
	a := app{namespace: "shop", name: "web"}
	var objects []client.Object
	for i := range groupResources / 3 {
		name := fmt.Sprintf("web-%d", i)
		deployment := a.deployment(name, 3)
		c := corev1.Container{Name: "server", Image: "registry.example.org/telco/server:1.4.2", Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}
		deployment.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{c}}
		deployment.Status = deploymentStatus(deployment, 3)
		service := a.service()
		service.Name = name
		settings := a.configMap(i)
		settings.Data = map[string]string{"config.yaml": strings.Repeat("setting: value\n", 8)}
		objects = append(objects, deployment, service, settings)
	}
	return objects
}

// resourceValues returns the values in the context below a cluster in which all resources have been applied, by level.
func resourceValues(id string, members []*unstructured.Unstructured) (map[string]any, error) {
	values := map[string]any{"readystatus": string(appcontext.ConnectivityAvailable), "reference": id}
	var order []string
	for _, member := range members {
		template := member.DeepCopy()
		unstructured.RemoveNestedField(template.Object, "status")
		text, err := yaml.Marshal(template.Object)
		if err != nil {
			return nil, fmt.Errorf("cannot encode %q: %w", member.GetName(), err)
		}
		name := member.GetName() + "+" + member.GetKind()
		order = append(order, name)
		key := "resource/" + name
		values[key], values[key+"/status"], values[key+"/reference"] = string(text), rsyncState{string(appcontext.ResourceApplied)}, id
	}
	values["resource/instruction/order"] = `{"resorder":["` + strings.Join(order, `","`) + `"]}`
	return values, nil
}

// savedStatus returns the status of the bundle of an app in a cluster, in the form in which it is saved.
func savedStatus(members []*unstructured.Unstructured) (string, error) {
	text, err := json.Marshal(bundle.Build(members, &bundleStatus{}, started, bundle.Options{}))
	if err != nil {
		return "", fmt.Errorf("cannot encode bundle: %w", err)
	}
	return string(text), nil
}
