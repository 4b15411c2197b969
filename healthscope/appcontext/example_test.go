package appcontext_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// exampleStore opens the store of the examples. The tests start its etcd.
func exampleStore() (*appcontext.Store, error) {
	url, err := sharedEndpoint()
	if err != nil {
		return nil, err
	}
	return appcontext.Open(appcontext.Options{Endpoints: []string{url}})
}

// create creates a context for a composite app with one app in two clusters, and records that a user has requested it.
// Orchestrators do this.
func create(ctx context.Context, store *appcontext.Store) (id string, err error) {
	ac := appcontext.NewAppContext(store)
	id = ac.InitAppContext()
	compositeApp, err := ac.CreateCompositeApp(ctx)
	if err != nil {
		return "", err
	}
	err = store.RecordAction(ctx, appcontext.Record{
		Subject:         appcontext.GroupRef("proj", "vfw", "v1", "group-"+id),
		Action:          appcontext.Action{State: appcontext.ActionInstantiated, ContextID: id, Time: time.Now(), Revision: 1},
		StatusContextID: id,
	})
	if err != nil {
		return "", err
	}
	meta := appcontext.CompositeAppMeta{Project: "proj", CompositeApp: "vfw", Version: "v1", DeploymentIntentGroup: "group-" + id}
	if err := ac.AddCompositeAppMeta(ctx, meta); err != nil {
		return "", err
	}
	app, err := ac.AddApp(ctx, compositeApp, "sink")
	if err != nil {
		return "", err
	}
	for n, name := range []string{"edge01", "edge02"} {
		cluster, err := ac.AddCluster(ctx, app, "provider+"+name)
		if err != nil {
			return "", err
		}
		if err := ac.AddClusterMetaGrp(ctx, cluster, fmt.Sprint(n+1)); err != nil {
			return "", err
		}
		for _, resource := range []string{"sink+Deployment", "sink+Service"} {
			_, kind, _ := strings.Cut(resource, "+")
			if _, err := ac.AddResource(ctx, cluster, resource, "kind: "+kind+"\nmetadata:\n  name: sink\n"); err != nil {
				return "", err
			}
		}
		if _, err := ac.AddInstruction(ctx, cluster, "resource", "order", `{"resorder":["sink+Service","sink+Deployment"]}`); err != nil {
			return "", err
		}
	}
	return id, nil
}

// label adds a label to a resource in every cluster of an app. Action controllers do this.
func label(ctx context.Context, store *appcontext.Store, id, app, resource string) error {
	ac := appcontext.NewAppContext(store)
	if _, err := ac.LoadAppContext(ctx, id); err != nil {
		return err
	}
	clusters, err := ac.GetClusterNames(ctx, app)
	if err != nil {
		return err
	}
	for _, cluster := range clusters {
		h, err := ac.GetResourceHandle(ctx, app, cluster, resource)
		if err != nil {
			return err
		}
		value, err := ac.GetValue(ctx, h)
		if err != nil {
			return err
		}
		object, _ := value.(string)
		if err := ac.UpdateResourceValue(ctx, h, object+"  labels: {tier: edge}\n"); err != nil {
			return err
		}
	}
	return nil
}

// place removes the clusters that are not suitable from each group of clusters. Placement controllers do this.
func place(ctx context.Context, store *appcontext.Store, id, app string, suitable func(cluster string) bool) error {
	ac := appcontext.NewAppContext(store)
	if _, err := ac.LoadAppContext(ctx, id); err != nil {
		return err
	}
	groups, err := ac.GetClusterGroupMap(ctx, app)
	if err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(groups)) {
		for _, name := range groups[number] {
			if suitable(name) {
				continue
			}
			cluster, err := ac.GetClusterHandle(ctx, app, name)
			if err != nil {
				return err
			}
			if err := ac.DeleteCluster(ctx, cluster); err != nil {
				return err
			}
		}
	}
	return nil
}

// list returns a line for each resource in a context.
func list(ctx context.Context, store *appcontext.Store, id string) (lines []string, err error) {
	snapshot, err := store.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, app := range snapshot.Apps() {
		for _, cluster := range app.Clusters() {
			for _, resource := range cluster.Resources() {
				body, err := resource.Body()
				if err != nil {
					return nil, err
				}
				lines = append(lines, fmt.Sprintln(app.Name(), cluster.Name(), resource.Name(), strings.Count(body, "\n"), "lines"))
			}
		}
	}
	return lines, nil
}

// These are the flows of a program that creates contexts, of an action controller, which changes resources, and of a placement
// controller, which removes clusters.
func ExampleAppContext() {
	ctx := context.Background()
	store, err := exampleStore()
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := create(ctx, store)
	for _, step := range []func() error{
		func() error { return nil },
		func() error { return label(ctx, store, id, "sink", "sink+Deployment") },
		func() error {
			return place(ctx, store, id, "sink", func(cluster string) bool { return cluster != "provider+edge01" })
		},
	} {
		if err == nil {
			err = step()
		}
		var lines []string
		if err == nil {
			lines, err = list(ctx, store, id)
		}
		fmt.Println(strings.Join(lines, ""), err)
	}
	fmt.Println(store.Close())
	// Output:
	// sink provider+edge01 sink+Service 3 lines
	// sink provider+edge01 sink+Deployment 3 lines
	// sink provider+edge02 sink+Service 3 lines
	// sink provider+edge02 sink+Deployment 3 lines
	//  <nil>
	// sink provider+edge01 sink+Service 3 lines
	// sink provider+edge01 sink+Deployment 4 lines
	// sink provider+edge02 sink+Service 3 lines
	// sink provider+edge02 sink+Deployment 4 lines
	//  <nil>
	// sink provider+edge02 sink+Service 3 lines
	// sink provider+edge02 sink+Deployment 4 lines
	//  <nil>
	// <nil>
}

// A reader with many requests keeps the requested contexts in memory.
func ExampleCache() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store, err := exampleStore()
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := create(ctx, store)
	if err != nil {
		fmt.Println(err)
		return
	}
	cache := appcontext.NewCache(store, appcontext.CacheOptions{})
	stopped := make(chan error, 1)
	go func() { stopped <- cache.Run(ctx) }()

	view, err := cache.View(ctx, appcontext.GroupRef("proj", "vfw", "v1", "group-"+id), "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(view.ContextID == id, view.Info.Actions[0].State, len(view.Context.Apps()), time.Since(view.AsOf) < time.Minute)
	cancel()
	fmt.Println(<-stopped, store.Close())
	// Output:
	// true Instantiated 1 true
	// <nil> <nil>
}
