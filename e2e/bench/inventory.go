package main

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/healthscope/healthscope/aai"
	aaiclient "github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/healthscope"
)

// inventory is what the row aai works with.
type inventory struct {
	apps []app
	// documents are the ids in A&AI of the pods, by namespace and name.
	documents map[string]string
	client    *aaiclient.Client
	// key is the floor's document.
	key  aai.Key
	turn int
}

// loneAfter is the time after which a change is a lone one: changes of a tenant that come sooner after each other share requests to A&AI.
const loneAfter = 300 * time.Millisecond

// inventoryTenant is where resources go in A&AI.
var inventoryTenant = aai.Tenant{CloudOwner: installation.CloudOwner, CloudRegionID: installation.CloudRegionID, TenantID: installation.TenantID}

// floorLabels are the labels of the floor's document, in turn.
var floorLabels = [2]healthscope.State{healthscope.Ready, healthscope.Failed}

// prepareInventory makes applications whose resources go to A&AI, and waits until they are there.
func prepareInventory(ctx context.Context, b *bench) error {
	for _, ensure := range []func(context.Context, *bench) error{ensureBundles, ensureScopes} {
		if err := ensure(ctx, b); err != nil {
			return err
		}
	}
	if b.inventory != nil {
		return b.bundles.quiet(ctx, quietTime)
	}
	b.inventory = &inventory{documents: map[string]string{}}
	for i := range b.options.scaled(20, 5) {
		b.inventory.apps = append(b.inventory.apps, app{namespace: inventoryNamespace, name: fmt.Sprintf("%d-web", 9000+i), pods: 10, configMaps: 5})
	}
	apps := b.inventory.apps
	b.apps = append(b.apps, apps...)
	if err := b.createApps(ctx, apps); err != nil {
		return err
	}
	if err := b.createBundles(ctx, apps); err != nil {
		return err
	}
	s := scope{namespace: inventoryNamespace, name: "inventory", apps: apps}
	if err := b.create(ctx, s.object()); err != nil {
		return err
	}
	b.scopes = append(b.scopes, s)
	if _, err := b.plane.scopes.await(ctx, "the scope whose resources go to A&AI", allHealthy([]scope{s})); err != nil {
		return err
	}
	if err := b.awaitInventory(ctx); err != nil {
		return err
	}
	return b.inventoryFloor(ctx)
}

// awaitInventory waits until A&AI holds every pod, and learns the ids of their documents. A&AI announces nothing.
func (b *bench) awaitInventory(ctx context.Context) error {
	want := 10 * len(b.inventory.apps)
	err := poll(ctx, fmt.Sprintf("A&AI to hold %d pods, all Ready", want), func(ctx context.Context) (bool, error) {
		objects, err := b.hs.Objects(ctx)
		for _, o := range objects {
			// The floor's document, which looks like a pod's, is in another namespace.
			if o.Body["kind"] == "Pod" && o.Body["namespace"] == inventoryNamespace && o.Label(stateLabel) == string(healthscope.Ready) {
				b.inventory.documents[fmt.Sprint(o.Body["namespace"], "/", o.Body["name"])] = path.Base(o.URI)
			}
		}
		return len(b.inventory.documents) == want, err
	})
	if err != nil {
		return fmt.Errorf("it holds %d: %w", len(b.inventory.documents), err)
	}
	return nil
}

// inventoryClient returns a client of the load generator's own for A&AI.
func (p *plane) inventoryClient() (*aaiclient.Client, error) {
	c, err := aaiclient.New(aaiclient.Options{BaseURL: p.hs.AAI, AppID: "bench", Credentials: p.hs.Credentials})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for A&AI: %w", err)
	}
	return c, nil
}

// inventoryFloor makes the floor's document in A&AI.
func (b *bench) inventoryFloor(ctx context.Context) error {
	in := b.inventory
	var err error
	if in.client, err = b.inventoryClient(); err != nil {
		return err
	}
	in.key = aai.Key{Tenant: inventoryTenant, ID: "bench-floor"}
	return in.client.PutK8sResource(ctx, in.key, aai.Document{
		ID: in.key.ID, Name: "floor", Version: "v1", Kind: "Pod", Namespace: floorNamespace, Selflink: "http://bench", DataOwner: "bench", DataSource: "bench",
		Labels: []string{stateLabel + "=" + string(floorLabels[0])},
	})
}

// measureFloor returns how long A&AI takes for one patch of a document.
func (in *inventory) measureFloor(ctx context.Context) (time.Duration, error) {
	in.turn = 1 - in.turn
	begin := time.Now()
	err := in.client.PatchK8sResource(ctx, in.key, aai.Patch{Labels: []string{stateLabel + "=" + string(floorLabels[in.turn])}})
	return time.Since(begin), err
}

func measureInventory(ctx context.Context, b *bench) ([]figure, error) {
	in := b.inventory
	var hop []time.Duration
	took, floors, err := b.alternate(ctx, func(ctx context.Context, i int) (time.Duration, error) {
		floor, err := in.measureFloor(ctx)
		if err != nil {
			return 0, fmt.Errorf("cannot patch the floor's document in A&AI: %w", err)
		}
		hop = append(hop, floor)
		if err := pause(ctx, loneAfter); err != nil {
			return 0, err
		}
		return b.flipToInventory(ctx, target{app: in.apps[i%len(in.apps)], pod: i / len(in.apps) % 10})
	}, b.floor.pod, b.floor.bundle)
	if err != nil {
		return nil, err
	}
	if err := b.heal(ctx); err != nil {
		return nil, err
	}
	clear(in.documents)
	return latencies(took, append(floors, hop[warmUp:]), "30000 (notify interval)", "", 5), b.awaitInventory(ctx)
}

// flipToInventory makes a pod crash, or lets it recover, and returns how long it took until A&AI had acknowledged it.
func (b *bench) flipToInventory(ctx context.Context, t target) (time.Duration, error) {
	crash := !b.crashed[t.name()]
	b.crashed[t.name()] = crash
	return b.changeToInventory(ctx, t, crash)
}

// changeToInventory makes a pod crash, or lets it recover, and returns how long it took until A&AI had acknowledged it. Changes of several pods may be under way at a time.
func (b *bench) changeToInventory(ctx context.Context, t target, crash bool) (time.Duration, error) {
	state := healthscope.Ready
	if crash {
		state = healthscope.Failed
	}
	acknowledged := b.tap.expect(b.inventory.documents[t.name().String()], string(state))
	begin := time.Now()
	if err := b.crash(ctx, t.app, t.pod, crash); err != nil {
		return 0, err
	}
	at, err := acknowledged(ctx)
	return at.Sub(begin), err
}
