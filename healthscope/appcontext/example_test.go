package appcontext_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// check ends an example if a call has failed.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// get returns the value of a call. If the call has failed, it ends the example.
func get[T any](value T, err error) T {
	check(err)
	return value
}

// exampleStore opens the store of the examples. The tests start its etcd.
func exampleStore() *appcontext.Store {
	return get(appcontext.Open(appcontext.Options{Endpoints: []string{get(sharedEndpoint())}}))
}

// create creates a context for a composite app with one app in two clusters, and records that a user has requested it.
// Orchestrators do this.
func create(ctx context.Context, store *appcontext.Store) (id string) {
	ac := appcontext.NewAppContext(store)
	id = ac.InitAppContext()
	compositeApp := get(ac.CreateCompositeApp(ctx))
	check(store.RecordAction(ctx, appcontext.Record{
		Subject:         appcontext.GroupRef("proj", "vfw", "v1", "group-"+id),
		Action:          appcontext.Action{State: appcontext.ActionInstantiated, ContextID: id, Time: time.Now(), Revision: 1},
		StatusContextID: id,
	}))
	check(ac.AddCompositeAppMeta(ctx, appcontext.CompositeAppMeta{Project: "proj", CompositeApp: "vfw", Version: "v1", DeploymentIntentGroup: "group-" + id}))
	app := get(ac.AddApp(ctx, compositeApp, "sink"))
	for n, name := range []string{"edge01", "edge02"} {
		cluster := get(ac.AddCluster(ctx, app, "provider+"+name))
		check(ac.AddClusterMetaGrp(ctx, cluster, fmt.Sprint(n+1)))
		for _, kind := range []string{"Deployment", "Service"} {
			get(ac.AddResource(ctx, cluster, "sink+"+kind, "kind: "+kind+"\nmetadata:\n  name: sink\n"))
		}
		get(ac.AddInstruction(ctx, cluster, "resource", "order", `{"resorder":["sink+Service","sink+Deployment"]}`))
	}
	return id
}

// label adds a label to a resource in every cluster of an app. Action controllers do this.
func label(ctx context.Context, store *appcontext.Store, id, app, resource string) {
	ac := appcontext.NewAppContext(store)
	get(ac.LoadAppContext(ctx, id))
	for _, cluster := range get(ac.GetClusterNames(ctx, app)) {
		h := get(ac.GetResourceHandle(ctx, app, cluster, resource))
		object, _ := get(ac.GetValue(ctx, h)).(string)
		check(ac.UpdateResourceValue(ctx, h, object+"  labels: {tier: edge}\n"))
	}
}

// place removes the clusters that are not suitable from each group of clusters. Placement controllers do this.
func place(ctx context.Context, store *appcontext.Store, id, app string, suitable func(cluster string) bool) {
	ac := appcontext.NewAppContext(store)
	get(ac.LoadAppContext(ctx, id))
	for _, clusters := range get(ac.GetClusterGroupMap(ctx, app)) {
		for _, name := range clusters {
			if !suitable(name) {
				check(ac.DeleteCluster(ctx, get(ac.GetClusterHandle(ctx, app, name))))
			}
		}
	}
}

// list returns a line for each resource in a context.
func list(ctx context.Context, store *appcontext.Store, id string) (lines string) {
	for _, app := range get(store.Snapshot(ctx, id)).Apps() {
		for _, cluster := range app.Clusters() {
			for _, resource := range cluster.Resources() {
				lines += fmt.Sprintln(app.Name(), cluster.Name(), resource.Name(), strings.Count(get(resource.Body()), "\n"), "lines")
			}
		}
	}
	return lines
}

// These are the flows of a program that creates contexts, of an action controller, which changes resources, and of a placement
// controller, which removes clusters.
func ExampleAppContext() {
	ctx, store := context.Background(), exampleStore()
	id := create(ctx, store)
	fmt.Println(list(ctx, store, id))
	label(ctx, store, id, "sink", "sink+Deployment")
	fmt.Println(list(ctx, store, id))
	place(ctx, store, id, "sink", func(cluster string) bool { return cluster != "provider+edge01" })
	fmt.Println(list(ctx, store, id))
	check(store.Close())
	// Output:
	// sink provider+edge01 sink+Service 3 lines
	// sink provider+edge01 sink+Deployment 3 lines
	// sink provider+edge02 sink+Service 3 lines
	// sink provider+edge02 sink+Deployment 3 lines
	//
	// sink provider+edge01 sink+Service 3 lines
	// sink provider+edge01 sink+Deployment 4 lines
	// sink provider+edge02 sink+Service 3 lines
	// sink provider+edge02 sink+Deployment 4 lines
	//
	// sink provider+edge02 sink+Service 3 lines
	// sink provider+edge02 sink+Deployment 4 lines
}

// A reader with many requests keeps the requested contexts in memory.
func ExampleCache() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := exampleStore()
	id := create(ctx, store)
	cache := appcontext.NewCache(store, appcontext.CacheOptions{})
	stopped := make(chan error, 1)
	go func() { stopped <- cache.Run(ctx) }()

	view := get(cache.View(ctx, appcontext.GroupRef("proj", "vfw", "v1", "group-"+id), ""))
	fmt.Println(view.ContextID == id, view.Info.Actions[0].State, len(view.Context.Apps()), time.Since(view.AsOf) < time.Minute)
	cancel()
	fmt.Println(<-stopped, store.Close())
	// Output:
	// true Instantiated 1 true
	// <nil> <nil>
}
