package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// samplesOfSoak is how many samples a soak takes of each process.
	samplesOfSoak = 120
	// leastSamples is how many samples a process must have to be judged: a quarter of those of a soak.
	leastSamples = samplesOfSoak / 4
	// growthPercent is how much a figure may grow from the first to the last third of a process's samples.
	growthPercent = 10
	// scrapeLimit is how long a process may take to tell its metrics.
	scrapeLimit = 5 * time.Second
)

// The figures of a process.
const (
	figureHeap        = "live heap MiB"
	figureMemory      = "RSS MiB"
	figureGoroutines  = "goroutines"
	figureDescriptors = "descriptors"
)

// growth is how much each figure may grow at least, where growthPercent is less. What is not named is not judged: what is
// resident depends on when memory is given back, which is not said.
var growth = map[string]float64{figureHeap: 8, figureGoroutines: 20, figureDescriptors: 10}

// sample is what a process takes at a time.
type sample struct {
	Seconds float64 `json:"seconds"`
	// Process is the name of the replica, and Program that of its program.
	Process string `json:"process"`
	Program string `json:"program"`
	// Life tells its processes apart, and Leads says whether it led.
	Life  float64 `json:"life"`
	Leads bool    `json:"leads"`
	// Values are by figure.
	Values map[string]float64 `json:"values"`
}

// takeSamples reads the metrics of all processes at regular times, until the context ends or the duration is over. A process that does not answer has no sample.
func (s *soaking) takeSamples(ctx context.Context, begin time.Time) error {
	interval := s.options.duration / samplesOfSoak
	for n := range samplesOfSoak {
		if err := pause(ctx, time.Until(begin.Add(time.Duration(n)*interval))); err != nil {
			return err
		}
		for _, one := range s.seats {
			if st, ok := one.state(ctx); ok {
				s.samples = append(s.samples, sample{
					Seconds: time.Since(begin).Seconds(), Process: one.Name, Program: one.program, Life: st.life, Leads: st.leads, Values: st.values,
				})
			}
		}
	}
	return nil
}

// stretch is a time in which a process neither ended nor came to lead: only then its figures can be compared.
type stretch struct {
	Process string  `json:"process"`
	Program string  `json:"program"`
	Leads   bool    `json:"leads"`
	From    float64 `json:"from"`
	To      float64 `json:"to"`
	// Figures are those of a stretch that is long enough to be judged.
	Figures []flatness `json:"figures,omitempty"`
}

// flatness says whether a figure has grown in a stretch.
type flatness struct {
	Name string `json:"name"`
	// First and Last are the medians of the first and the last third of the samples.
	First float64 `json:"first"`
	Last  float64 `json:"last"`
	// Most is how much Last may be; nil when it is not judged.
	Most *float64 `json:"most,omitempty"`
}

// grown says whether the figure has grown too much.
func (f flatness) grown() bool { return f.Most != nil && f.Last > *f.Most }

// stretchesOf divides samples, which are in the order of time, into stretches, and compares the figures of those that are long enough.
func stretchesOf(samples []sample) []stretch {
	type key struct {
		process string
		life    float64
		leads   bool
	}
	var order []key
	of := map[key][]sample{}
	for _, one := range samples {
		k := key{one.Process, one.Life, one.Leads}
		if of[k] == nil {
			order = append(order, k)
		}
		of[k] = append(of[k], one)
	}
	var all []stretch
	for _, k := range order {
		own := of[k]
		all = append(all, stretch{
			Process: k.process, Program: own[0].Program, Leads: k.leads, From: own[0].Seconds, To: own[len(own)-1].Seconds, Figures: flatnesses(own),
		})
	}
	return all
}

// flatnesses compares the first and the last third of samples, after a fifth that is warm-up; nil when they are too few.
func flatnesses(samples []sample) []flatness {
	if len(samples) < leastSamples {
		return nil
	}
	samples = samples[len(samples)/5:]
	third := len(samples) / 3
	var all []flatness
	for _, name := range []string{figureHeap, figureGoroutines, figureDescriptors, figureMemory} {
		of := func(samples []sample) float64 {
			var values []float64
			for _, one := range samples {
				values = append(values, one.Values[name])
			}
			return median(values)
		}
		f := flatness{Name: name, First: of(samples[:third]), Last: of(samples[len(samples)-third:])}
		if least, judged := growth[name]; judged {
			f.Most = new(f.First + max(f.First*growthPercent/100, least))
		}
		all = append(all, f)
	}
	return all
}

// judgeGrowth returns what is wrong with stretches: figures that have grown, and programs of which none has led for long enough to tell.
func judgeGrowth(stretches []stretch) []error {
	var errs []error
	for _, program := range soakedPrograms() {
		if !slices.ContainsFunc(stretches, func(s stretch) bool { return s.Program == program && s.Leads && s.Figures != nil }) {
			errs = append(errs, fmt.Errorf("no %s has led for a quarter of the time without a break: it cannot be told whether it grows", program))
		}
	}
	for _, s := range stretches {
		for _, f := range s.Figures {
			if f.grown() {
				errs = append(errs, fmt.Errorf("%s of %s has grown from %s to %s, more than %s, in %s", f.Name, s.Process, number(f.First), number(f.Last), number(*f.Most),
					time.Duration((s.To-s.From)*float64(time.Second)).Round(time.Second)))
			}
		}
	}
	return errs
}
