package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// burstHops are the hops of an application in a burst: two pods change, and then their bundle.
type burstHops struct {
	pods   [2]*hop
	bundle *hop
}

// another creates an object of the same make, and returns its hop.
func (h *hop) another(ctx context.Context, name string) (*hop, error) {
	object, ok := h.object.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("cannot copy %T", h.object)
	}
	object.SetName(name)
	object.SetResourceVersion("")
	object.SetUID("")
	other := *h
	other.object, other.turn = object, 0
	return &other, other.create(ctx)
}

// forBurst creates the objects of so many applications.
func (f *floor) forBurst(ctx context.Context, apps int) ([]burstHops, error) {
	all := make([]burstHops, apps)
	return all, each(ctx, apps, func(ctx context.Context, i int) (err error) {
		for n := range all[i].pods {
			if all[i].pods[n], err = f.pod.another(ctx, fmt.Sprintf("burst-%d-%d", i, n)); err != nil {
				return err
			}
		}
		all[i].bundle, err = f.bundle.another(ctx, fmt.Sprintf("burst-%d", i))
		return err
	})
}

// burst measures how long bare client-go needs for the changes of a burst, with one write for each bundle.
func (f *floor) burst(ctx context.Context, apps int) (time.Duration, error) {
	all, err := f.forBurst(ctx, apps)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	err = each(ctx, apps, func(ctx context.Context, i int) error {
		group, both := errgroup.WithContext(ctx)
		for _, pod := range all[i].pods {
			group.Go(func() error {
				_, err := pod.measure(both)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		_, err := all[i].bundle.measure(ctx)
		return err
	})
	took := time.Since(begin)
	if err != nil {
		return 0, err
	}
	return took, each(ctx, apps, func(ctx context.Context, i int) error {
		for _, h := range append(all[i].pods[:], all[i].bundle) {
			if err := h.client.Delete(ctx, h.object, client.GracePeriodSeconds(0)); err != nil {
				return fmt.Errorf("cannot delete the floor's object %q: %w", client.ObjectKeyFromObject(h.object), err)
			}
		}
		return nil
	})
}
