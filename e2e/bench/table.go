package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// figure is something that was measured.
type figure struct {
	// Name says what, with its unit.
	Name string `json:"name"`
	// Value is how much it was.
	Value float64 `json:"value"`
	// Peer is what was measured of EMCO's monitor, or of oam-kubernetes-runtime's controller; empty where nothing was.
	Peer string `json:"peer,omitempty"`
	// Target is the most that it is to be; nil where there is no target.
	Target *float64 `json:"target,omitempty"`
	// Met says whether the target is met; nil where there is none, or at a scale at which it says nothing.
	Met *bool `json:"met,omitempty"`
}

// process is what a process used while a row was measured.
type process struct {
	Name string `json:"name"`
	// CPUSeconds is CPU time, and CPUPercent the same in percent of one core.
	CPUSeconds float64 `json:"cpuSeconds"`
	CPUPercent float64 `json:"cpuPercent"`
	// RSSMiB and PeakMiB are resident memory at the end, and at most.
	RSSMiB  float64 `json:"rssMiB"`
	PeakMiB float64 `json:"peakMiB"`
}

// requestCount is how many requests of a kind HealthScope sent to the API server.
type requestCount struct {
	request
	Count     int     `json:"count"`
	PerSecond float64 `json:"perSecond"`
}

// outcome is a row of the table.
type outcome struct {
	ID   string `json:"id"`
	Work string `json:"work"`
	// Seconds is how long it was measured.
	Seconds   float64        `json:"seconds"`
	Figures   []figure       `json:"figures"`
	Processes []process      `json:"processes"`
	Requests  []requestCount `json:"requests"`
	// BundleBytes and ScopeBytes are the sizes of the requests that wrote bundles and scopes, together.
	BundleBytes float64 `json:"bundleBytes"`
	ScopeBytes  float64 `json:"scopeBytes"`
	// ServerRequests is the number of requests that the API server answered, also its own and those of the load generator.
	ServerRequests float64 `json:"serverRequests"`
}

// report is everything that was measured in a run.
type report struct {
	Started time.Time `json:"started"`
	CPUs    int       `json:"cpus"`
	System  string    `json:"system"`
	Scale   float64   `json:"scale"`
	Rows    []outcome `json:"rows"`
}

func newReport(o options) *report {
	return &report{Started: started, CPUs: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Scale: o.scale}
}

// newOutcome puts together what was measured of a row. At a smaller scale, targets of quantities are not comparable.
func newOutcome(r row, figures []figure, used result, scale float64) outcome {
	out := outcome{
		ID: r.id, Work: r.work, Seconds: used.length.Seconds(), Figures: slices.Clone(figures), BundleBytes: used.bundleBytes, ScopeBytes: used.scopeBytes, ServerRequests: used.all,
	}
	for i := range out.Figures {
		if f := &out.Figures[i]; f.Target != nil && scale == 1 {
			f.Met = new(f.Value <= *f.Target)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used.processes)) {
		u := used.processes[name]
		out.Processes = append(out.Processes, process{
			Name: name, CPUSeconds: u.cpu.Seconds(), CPUPercent: 100 * u.cpu.Seconds() / used.length.Seconds(),
			RSSMiB: mebibytes(u.rss), PeakMiB: mebibytes(u.peak),
		})
	}
	for _, kind := range used.requests.sorted() {
		n := used.requests[kind]
		out.Requests = append(out.Requests, requestCount{request: kind, Count: n, PerSecond: float64(n) / used.length.Seconds()})
	}
	return out
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// writeJSON writes the report to a file.
func (r *report) writeJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o600) //nolint:gosec // It goes where the command line says.
	}
	if err != nil {
		return fmt.Errorf("cannot write results to %q: %w", path, err)
	}
	return nil
}

// print writes the report for people, as tables in Markdown.
func (r *report) print(out io.Writer) {
	fmt.Fprintf(out, "HealthScope on %d CPUs (%s), scale %v, %s\n\n", r.CPUs, r.System, r.Scale, r.Started.Format(time.RFC3339))
	figures := [][]string{{"id", "figure", "peer", "target", "ours", "met"}}
	processes := [][]string{{"id", "process", "CPU s", "CPU %", "RSS MiB", "peak MiB"}}
	traffic := [][]string{{"id", "client", "verb", "resource", "requests", "per s"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		for _, f := range row.Figures {
			target, met := "", ""
			if f.Target != nil {
				target = number(*f.Target)
			}
			if f.Met != nil {
				met = map[bool]string{true: "yes", false: "NO"}[*f.Met]
			}
			figures = append(figures, []string{row.ID, f.Name, f.Peer, target, number(f.Value), met})
		}
		for _, p := range row.Processes {
			processes = append(processes, []string{row.ID, p.Name, number(p.CPUSeconds), number(p.CPUPercent), number(p.RSSMiB), number(p.PeakMiB)})
		}
		for _, q := range row.Requests {
			verb := q.Verb
			if q.Failed {
				verb += " (failed)"
			}
			traffic = append(traffic, []string{row.ID, q.Client, verb, q.Resource, strconv.Itoa(q.Count), number(q.PerSecond)})
		}
	}
	for _, t := range []struct {
		title string
		rows  [][]string
	}{{"Figures", figures}, {"What processes used meanwhile", processes}, {"HealthScope's requests to the API server", traffic}} {
		fmt.Fprintf(out, "%s\n\n", t.title)
		markdown(out, t.rows)
	}
}

// number writes a number with as many decimals as matter.
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

// markdown writes a table, its columns aligned.
func markdown(out io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	line := func(cells []string) {
		for i, cell := range cells {
			fmt.Fprintf(out, "| %-*s ", widths[i], cell)
		}
		fmt.Fprintln(out, "|")
	}
	line(rows[0])
	for _, width := range widths {
		fmt.Fprint(out, "|", strings.Repeat("-", width+2))
	}
	fmt.Fprintln(out, "|")
	for _, row := range rows[1:] {
		line(row)
	}
	fmt.Fprintln(out)
}
