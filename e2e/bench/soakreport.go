package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
)

// judge prints what a soak was like, and returns an error when a process has grown, or errors in the logs have no explanation.
func (s *soaking) judge(stdout io.Writer) error {
	stretches := stretchesOf(s.samples)
	logs, err := s.readLogs()
	if err != nil {
		return err
	}
	s.print(stdout, stretches, logs)
	return errors.Join(errors.Join(judgeGrowth(stretches)...), logs.err(), s.writeJSON(stretches, logs))
}

// print prints what a soak was like.
func (s *soaking) print(stdout io.Writer, stretches []stretch, logs verdict) {
	changes := 0
	for _, n := range s.changes {
		changes += n
	}
	fmt.Fprintf(stdout, "HealthScope, churning for %s with seed %d, %s changes in a minute: every bundle, every scope and A&AI are right in the end\n\n",
		s.options.duration, s.options.seed, number(float64(changes)/s.churned.Minutes()))
	counted := map[string]int{}
	for _, i := range s.all() {
		counted[string(i.Trouble)]++
	}
	for _, one := range s.seats {
		counted["starts of "+one.Name] = one.starts
		counted["ends of "+one.Name+" by itself"] = one.ended
	}
	maps.Copy(counted, s.changes)
	for _, what := range slices.Sorted(maps.Keys(counted)) {
		fmt.Fprintf(stdout, "- %s: %d\n", what, counted[what])
	}
	fmt.Fprintln(stdout)
	table := [][]string{{"process", "from s", "to s", "figure", "first third", "last third", "at most", "flat"}}
	for _, one := range stretches {
		role := one.Process
		if one.Leads {
			role += ", leading"
		}
		for _, f := range one.Figures {
			limit, flat := "", ""
			if f.Most != nil {
				limit, flat = number(*f.Most), map[bool]string{true: "NO", false: "yes"}[f.grown()]
			}
			table = append(table, []string{role, number(one.From), number(one.To), f.Name, number(f.First), number(f.Last), limit, flat})
		}
	}
	markdown(stdout, table)
	table = [][]string{{"errors in the logs", "lines"}}
	for _, name := range logs.names() {
		table = append(table, []string{name, strconv.Itoa(logs.Explained[name])})
	}
	markdown(stdout, append(table, []string{"without an explanation", strconv.Itoa(len(logs.Unexplained))}))
}

// soakReport is everything that was measured in a soak.
type soakReport struct {
	Duration  string         `json:"duration"`
	Seed      uint64         `json:"seed"`
	Changes   map[string]int `json:"changes"`
	Churned   float64        `json:"churnedSeconds"`
	Incidents []incident     `json:"incidents"`
	Stretches []stretch      `json:"stretches"`
	Logs      verdict        `json:"logs"`
	Samples   []sample       `json:"samples"`
}

// writeJSON writes everything that is known to the file that is asked for.
func (s *soaking) writeJSON(stretches []stretch, logs verdict) error {
	if s.options.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(soakReport{
		Duration: s.options.duration.String(), Seed: s.options.seed, Changes: s.changes, Churned: s.churned.Seconds(),
		Incidents: s.all(), Stretches: stretches, Logs: logs, Samples: s.samples,
	}, "", "  ")
	if err == nil {
		err = os.WriteFile(s.options.json, append(text, '\n'), 0o600) //nolint:gosec // It goes where the command line says.
	}
	if err != nil {
		return fmt.Errorf("cannot write results to %q: %w", s.options.json, err)
	}
	return nil
}
