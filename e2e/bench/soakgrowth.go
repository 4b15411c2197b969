package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// samplesOfSoak is the number of samples that a soak takes of each process.
	samplesOfSoak = 120
	// leastSamples is the minimum number of samples for a judgement of a process.
	leastSamples = samplesOfSoak / 4
	// growthFactor is the maximum growth of a figure from the first to the last third of the samples.
	growthFactor = 1.1
)

// grows are the figures that are judged. least is the growth that is always allowed, for figures of which growthFactor allows
// less. Resident memory is not judged: it depends on when the system reclaims memory.
var grows = []struct {
	name  string
	least float64
	of    func(metrics) float64
}{
	{"live heap MiB", 8, metrics.liveHeap},
	{"goroutines", 20, func(m metrics) float64 { return m.sum("go_goroutines") }},
	{"descriptors", 10, func(m metrics) float64 { return m.sum("process_open_fds") }},
}

// life is a period of a process in which it does not start to lead. Only samples of the same life can be compared.
type life struct {
	replica, program string
	started          float64
	leads            bool
}

// sample is the figures of a process at one time, in the order of grows.
type sample struct {
	life
	values []float64
}

// takeSamples reads the metrics of all replicas at regular intervals. A replica that does not respond has no sample.
func (s *soaking) takeSamples(ctx context.Context, begin time.Time) error {
	for n := range samplesOfSoak {
		if err := pause(ctx, time.Until(begin.Add(time.Duration(n)*s.options.duration/samplesOfSoak))); err != nil {
			return err
		}
		for _, r := range s.replicas {
			m, err := r.metrics(ctx)
			if err != nil {
				continue
			}
			one := sample{life: life{r.Name, r.program, m.sum("process_start_time_seconds"), m.leads()}}
			for _, g := range grows {
				one.values = append(one.values, g.of(m))
			}
			s.samples = append(s.samples, one)
		}
	}
	return nil
}

// growth compares a figure of a process in the first and the last third of its samples.
type growth struct {
	process, figure    string
	first, last, limit float64
}

// judgeGrowth compares the samples of each life that is long enough, without the first fifth, which is warm-up. It returns an
// error for figures that have grown, and when no replica of a program has led for long enough to be judged.
func judgeGrowth(samples []sample) (all []growth, err error) {
	var order []life
	lives := map[life][]sample{}
	for _, one := range samples {
		if lives[one.life] == nil {
			order = append(order, one.life)
		}
		lives[one.life] = append(lives[one.life], one)
	}
	led := map[string]bool{}
	for _, l := range order {
		own := lives[l]
		if len(own) < leastSamples {
			continue
		}
		led[l.program] = led[l.program] || l.leads
		own = own[len(own)/5:]
		third := len(own) / 3
		for i, g := range grows {
			of := func(samples []sample) float64 {
				values := make([]float64, 0, len(samples))
				for _, one := range samples {
					values = append(values, one.values[i])
				}
				return median(values)
			}
			first, last := of(own[:third]), of(own[len(own)-third:])
			limit := max(first*growthFactor, first+g.least)
			all = append(all, growth{fmt.Sprintf("%s, leads: %t", l.replica, l.leads), g.name, first, last, limit})
			if last > limit {
				err = errors.Join(err, fmt.Errorf("%s of %s has grown from %s to %s, more than to %s", g.name, l.replica, number(first), number(last), number(limit)))
			}
		}
	}
	for _, program := range slices.DeleteFunc(soakedPrograms(), func(p string) bool { return led[p] }) {
		err = errors.Join(err, fmt.Errorf("no %s has led for a quarter of the time without a break: its growth cannot be judged", program))
	}
	return all, err
}
