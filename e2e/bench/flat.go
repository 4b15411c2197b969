package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/healthscope/healthscope/healthscope"
)

const (
	// samplesOfSoak is how many samples a soak takes, and warmUpSamples how many of them do not count.
	samplesOfSoak, warmUpSamples = 120, 12
	// growthPercent and growthMiB are how much memory may grow from the first to the last third of the samples: the greater
	// of the two. growthGoroutines is the same for goroutines.
	growthPercent    = 10
	growthMiB        = 8
	growthGoroutines = 20
)

// sample is what monitor and controller take at a time.
type sample struct {
	Seconds float64 `json:"seconds"`
	// Values are by process and figure.
	Values map[string]float64 `json:"values"`
}

// takeSample reads the metrics of monitor and controller.
func (s *soaking) takeSample(ctx context.Context, at time.Duration) error {
	one := sample{Seconds: at.Seconds(), Values: map[string]float64{}}
	for name, url := range map[string]string{"monitor": s.hs.MonitorMetrics, "controller": s.hs.Metrics} {
		text, err := scrape(ctx, http.DefaultClient, url)
		if err != nil {
			return err
		}
		one.Values[name+" live heap MiB"] = mebibytes(int64(liveHeap(text)))
		one.Values[name+" RSS MiB"] = mebibytes(int64(sum(text, "process_resident_memory_bytes")))
		one.Values[name+" goroutines"] = sum(text, "go_goroutines")
	}
	s.samples = append(s.samples, one)
	return nil
}

// liveHeap is what the last garbage collection left, without what has been allocated since: the collector aims at starting
// again when the heap has grown by GOGC percent.
func liveHeap(text string) float64 {
	return sum(text, "go_memstats_next_gc_bytes") * 100 / (100 + sum(text, "go_gc_gogc_percent"))
}

// flatness says whether a figure has grown during a soak.
type flatness struct {
	Name string `json:"name"`
	// First and Last are the medians of the first and the last third of the samples.
	First float64 `json:"first"`
	Last  float64 `json:"last"`
	// Most is how much Last may be; nil when it is not judged. What is resident depends on when memory is given back, which is not said.
	Most *float64 `json:"most,omitempty"`
}

// flatnesses compares the first and the last third of the samples, after those of the warm-up.
func flatnesses(samples []sample) ([]flatness, error) {
	if len(samples) < warmUpSamples+9 {
		return nil, fmt.Errorf("%d samples are too few to tell whether memory has grown: want at least %d", len(samples), warmUpSamples+9)
	}
	samples = samples[warmUpSamples:]
	third := len(samples) / 3
	var all []flatness
	for _, name := range slices.Sorted(maps.Keys(samples[0].Values)) {
		of := func(samples []sample) float64 {
			var values []float64
			for _, one := range samples {
				values = append(values, one.Values[name])
			}
			return median(values)
		}
		f := flatness{Name: name, First: of(samples[:third]), Last: of(samples[len(samples)-third:])}
		switch _, figure, _ := strings.Cut(name, " "); figure {
		case "goroutines":
			f.Most = new(f.First + max(f.First*growthPercent/100, growthGoroutines))
		case "live heap MiB":
			f.Most = new(f.First + max(f.First*growthPercent/100, growthMiB))
		}
		all = append(all, f)
	}
	return all, nil
}

// judge prints what a soak took, and returns an error when something has grown.
func (s *soaking) judge(o options, stdout io.Writer) error {
	all, err := flatnesses(s.samples)
	if err != nil {
		return err
	}
	table := [][]string{{"figure", "first third", "last third", "at most", "flat"}}
	var grown []error
	for _, f := range all {
		limit, flat := "", ""
		if f.Most != nil {
			limit, flat = number(*f.Most), "yes"
			if f.Last > *f.Most {
				flat = "NO"
				grown = append(grown, fmt.Errorf("%s has grown from %s to %s, more than %s", f.Name, number(f.First), number(f.Last), limit))
			}
		}
		table = append(table, []string{f.Name, number(f.First), number(f.Last), limit, flat})
	}
	fmt.Fprintf(stdout, "HealthScope, churning for %s: every bundle, every scope and A&AI are right in the end\n\n", o.duration)
	for _, kind := range slices.Sorted(maps.Keys(s.changes)) {
		fmt.Fprintf(stdout, "- %s: %d\n", kind, s.changes[kind])
	}
	for _, name := range slices.Sorted(maps.Keys(s.killed)) {
		fmt.Fprintf(stdout, "- %s killed: %d\n", name, s.killed[name])
	}
	fmt.Fprintln(stdout)
	markdown(stdout, table)
	return errors.Join(errors.Join(grown...), s.writeJSON(o, all))
}

// writeJSON writes the samples to the file that is asked for.
func (s *soaking) writeJSON(o options, all []flatness) error {
	if o.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"duration": o.duration.String(), "changes": s.changes, "killed": s.killed, "figures": all, "samples": s.samples}, "", "  ")
	if err == nil {
		err = os.WriteFile(o.json, append(text, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot write results to %q: %w", o.json, err)
	}
	return nil
}

// awaitInventory waits until A&AI holds the pods of all applications with a scope, in the right states, and no others. A&AI
// announces nothing.
func (s *soaking) awaitInventory(ctx context.Context) error {
	want := map[string]string{}
	for _, a := range s.apps {
		for i := range a.pods {
			if a.scope == nil || a.absent[i] {
				continue
			}
			state := healthscope.Ready
			if a.crashed[i] {
				state = healthscope.Failed
			}
			want[a.podName(i)] = string(state)
		}
	}
	got := map[string]string{}
	err := poll(ctx, fmt.Sprintf("A&AI to hold %d pods in the right states", len(want)), func(ctx context.Context) (bool, error) {
		objects, err := s.hs.Objects(ctx)
		clear(got)
		for _, o := range objects {
			if o.Body["kind"] == "Pod" {
				got[fmt.Sprint(o.Body["name"])] = o.Label(stateLabel)
			}
		}
		return maps.Equal(got, want), err
	})
	if err != nil {
		return fmt.Errorf("it holds %d, %s: %w", len(got), difference(got, want), err)
	}
	return nil
}

// difference names one pod that is not as it should be.
func difference(got, want map[string]string) string {
	for name, state := range want {
		if got[name] != state {
			return fmt.Sprintf("%q is %q, not %q", name, got[name], state)
		}
	}
	for name, state := range got {
		if _, ok := want[name]; !ok {
			return fmt.Sprintf("%q, which is %s, should not be there", name, state)
		}
	}
	return "which is right"
}
