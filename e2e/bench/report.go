package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aclements/go-moremath/stats"
)

// figure is a measured value, with the values for comparison.
type figure struct {
	// name ends with the unit.
	name  string
	value float64
	// floor is the lowest possible value on this machine, measured in the same run; 0 when it was not measured.
	floor float64
	// peer is the value that was measured for a predecessor.
	peer string
	// target is the maximum of value; nil when there is none. times is the maximum as a multiple of the floor; 0 when there is
	// none.
	target *float64
	times  float64
	// samples and floorSamples are the single measurements from which value and floor are calculated; nil when there is only
	// one.
	samples, floorSamples []float64
}

// result is a figure of a row.
type result struct {
	row string
	figure
}

// latency returns the p95 of took as a figure. Its floor is the sum of the p95 of the hops.
func latency(name string, took []time.Duration, times float64, hops ...[]time.Duration) figure {
	f := figure{name: name + "p95 ms", value: p95(took), times: times, samples: milliseconds(took)}
	for _, hop := range hops {
		f.floor += p95(hop)
	}
	if len(hops) > 0 {
		f.floorSamples = make([]float64, len(hops[0]))
		for _, hop := range hops {
			for i, ms := range milliseconds(hop) {
				f.floorSamples[i] += ms
			}
		}
	}
	return f
}

// p95 returns the 95th percentile in milliseconds.
func p95(took []time.Duration) float64 {
	return stats.Sample{Xs: milliseconds(took)}.Quantile(0.95)
}

// median returns the median of values.
func median(values []float64) float64 { return stats.Sample{Xs: values}.Quantile(0.5) }

func milliseconds(took []time.Duration) []float64 {
	all := make([]float64, len(took))
	for i, d := range took {
		all[i] = 1000 * d.Seconds()
	}
	return all
}

// report prints a table, and writes the results to the file out if one is set.
func report(o options, all []result, out io.Writer) error {
	fmt.Fprintf(out, "HealthScope on %d CPUs (%s/%s), scale %v\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, o.scale)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "row\tfigure\tours\tfloor\tours/floor\tpeer\ttarget\tmet")
	for _, r := range all {
		floor, ratio := "", ""
		if r.floor > 0 {
			floor, ratio = number(r.floor), number(r.value/r.floor)
		}
		fmt.Fprintln(table, strings.Join([]string{r.row, r.name, number(r.value), floor, ratio, r.peer, r.goal(), r.met(o.scale)}, "\t"))
	}
	if err := table.Flush(); err != nil || o.out == "" {
		return err
	}
	if err := os.WriteFile(o.out, []byte(benchmarks(all)), 0o600); err != nil {
		return fmt.Errorf("cannot write results to %q: %w", o.out, err)
	}
	return nil
}

// goal returns the target of a figure as text.
func (f figure) goal() string {
	switch {
	case f.target != nil:
		return number(*f.target)
	case f.times > 0:
		return number(f.times) + " × floor"
	}
	return ""
}

// met returns "yes" or "NO" for the target. It is empty without a target, and at a smaller scale, where a target means nothing.
func (f figure) met(scale float64) string {
	if f.goal() == "" || scale != 1 {
		return ""
	}
	if f.target != nil && f.value > *f.target || f.times > 0 && f.value > f.times*f.floor {
		return "NO"
	}
	return "yes"
}

// benchmarks returns results in Go's benchmark format (https://go.dev/design/14313-benchmark-format). benchstat compares two
// runs, or with -col /of our values with the floor.
func benchmarks(all []result) string {
	var text strings.Builder
	fmt.Fprintf(&text, "goos: %s\ngoarch: %s\n", runtime.GOOS, runtime.GOARCH)
	for _, r := range all {
		words := strings.Fields(strings.ReplaceAll(r.name, "p95 ", ""))
		unit := words[len(words)-1]
		name := "Benchmark" + strings.ToUpper(r.row[:1]) + r.row[1:]
		if len(words) > 1 {
			name += "/" + strings.Join(words[:len(words)-1], "_")
		}
		ours, floor := r.samples, r.floorSamples
		if ours == nil {
			ours = []float64{r.value}
		}
		if floor == nil && r.floor > 0 {
			floor = []float64{r.floor}
		}
		for _, v := range ours {
			fmt.Fprintf(&text, "%s/of=ours 1 %g %s\n", name, v, unit)
		}
		for _, v := range floor {
			fmt.Fprintf(&text, "%s/of=floor 1 %g %s\n", name, v, unit)
		}
	}
	return text.String()
}

// number formats a number: without decimals if it is whole or at least 100, with one from 10, otherwise with two.
func number(v float64) string {
	decimals := 2
	switch {
	case v == float64(int64(v)) || v >= 100:
		decimals = 0
	case v >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}
