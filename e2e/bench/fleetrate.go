package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// slowest and fastest are the first and the last rate of the row fleet-rate, in changes a second; it doubles from step to step.
	slowest, fastest = 50, 6400
	// stepTime is how long a rate is kept up.
	stepTime = 4 * time.Second
	// keptUp is how late the scopes may be, at p95, for a rate to count as kept up: what an operator takes for at once.
	keptUp = time.Second
)

// measureFleetRate changes bundles of all members ever faster, until the scopes are too late.
func measureFleetRate(ctx context.Context, b *bench) ([]figure, error) {
	var figures []figure
	kept := 0.0
	for rate := slowest; rate <= fastest; rate *= 2 {
		took, offered, err := b.changeMembers(ctx, rate)
		if err != nil {
			return nil, err
		}
		p95 := percentile(took, 95)
		name := fmt.Sprintf("at %d/s: ", rate)
		figures = append(figures, figure{Name: name + "changes per s", Value: offered}, figure{Name: name + "p50 ms", Value: milliseconds(percentile(took, 50))}, figure{Name: name + "p95 ms", Value: milliseconds(p95)})
		if p95 > keptUp || offered < 0.9*float64(rate) {
			break
		}
		kept = offered
	}
	return append([]figure{{Name: "changes per s with p95 within 1 s", Value: kept}}, figures...), b.healMembers(ctx, len(b.fleet.members.Servers))
}

// changeMembers changes bundles at a rate, over all clusters and scopes in turn, and returns how long it took until the scope showed
// each, and how many changes there were in a second. A bundle whose last change does not show yet is left out.
func (b *bench) changeMembers(ctx context.Context, rate int) (took []time.Duration, offered float64, err error) {
	f := b.fleet
	l := &lags[slot]{busy: map[slot]bool{}}
	group, changing := errgroup.WithContext(ctx)
	changes := int(b.options.scaledTime(stepTime, time.Second).Seconds() * float64(rate))
	begin := time.Now()
	for i := range changes {
		if err := pause(changing, time.Until(begin.Add(time.Duration(i)*time.Second/time.Duration(rate)))); err != nil {
			break // One of the changes has failed.
		}
		s := slot{i % len(f.members.Servers), i / len(f.members.Servers) % len(f.apps)}
		if !l.begin(s) {
			continue
		}
		crash := !f.down[s]
		seen := b.plane.scopes.expect("the scope of a member's bundle", f.shows(s, crash))
		at := time.Now()
		f.put(s, crash)
		group.Go(func() error {
			shown, err := seen(changing)
			l.end(s, shown.Sub(at))
			return err
		})
	}
	length := time.Since(begin)
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	return l.took, float64(len(l.took)) / length.Seconds(), nil
}
