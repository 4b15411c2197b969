package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/healthscope/healthscope/controllers/commands"
	"github.com/healthscope/healthscope/controllers/metric"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// commandTables returns the table of the commands, and a table of the flags of each command, by heading.
func commandTables() map[string]table {
	list := table{{"command", "what it does"}}
	tables := map[string]table{}
	root := commands.NewCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			list = append(list, []string{code(below.CommandPath()), below.Short})
			if below.Name() == "completion" { // Its subcommands, one for each shell, and their flags are cobra's.
				continue
			}
			if flags := flagsOf(below); len(flags) > 1 {
				tables[below.CommandPath()] = flags
			}
			walk(below)
		}
	}
	walk(root)
	tables["Commands"] = list
	return tables
}

// flagsOf returns the table of the flags of a command. It omits --help, which every command has.
func flagsOf(c *cobra.Command) table {
	flags := table{{"flag", "type", "default", "meaning"}}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		names, value := []string{"--" + f.Name}, "none"
		if f.Shorthand != "" {
			names = append(names, "-"+f.Shorthand)
		}
		if f.DefValue != "" {
			value = code(f.DefValue)
		}
		flags = append(flags, []string{code(names...), f.Value.Type(), value, f.Usage})
	})
	return flags
}

// metricTables returns the table of the metrics, by heading. The packages that define the metrics are imported with the
// commands.
func metricTables() map[string]table {
	metrics := table{{"metric", "type", "labels", "meaning"}}
	for _, m := range metric.All() {
		metrics = append(metrics, []string{code(m.Name), string(m.Type), code(m.Labels...), m.Meaning})
	}
	return map[string]table{"Metrics": metrics}
}

// reasonTables returns two tables, by heading: the reasons of HealthScope, and the terminal waiting reasons of containers in
// Kubernetes.
func reasonTables() map[string]table {
	reasons := table{{"reason", "state", "meaning", "what to do"}}
	for _, e := range healthscope.Explanations {
		reasons = append(reasons, []string{code(string(e.Reason)), e.States, e.Meaning, e.Advice})
	}
	waiting := table{{"reason", "what to do"}}
	for _, reason := range slices.Sorted(maps.Keys(rules.TerminalWaitingReasons)) {
		waiting = append(waiting, []string{code(reason), rules.TerminalWaitingReasons[reason]})
	}
	return map[string]table{"Reasons of HealthScope": reasons, "Reasons of Kubernetes": waiting}
}

// conditionTables returns two tables for each condition of a HealthScope, by heading: the meanings of its reasons, and their
// diagnosis and mitigation.
func conditionTables() (meanings, remedies map[string]table) {
	meanings, remedies = map[string]table{}, map[string]table{}
	for condition, reasons := range scope.Conditions {
		means, remedy := table{{"reason", "status", "meaning", "what to do"}}, table{{"reason", "diagnosis", "mitigation"}}
		for _, r := range reasons {
			reason, text := code(string(r.Reason)), conditionTexts[condition][r.Reason]
			means = append(means, []string{reason, string(r.Status), text.meaning, text.advice})
			remedy = append(remedy, []string{reason, text.diagnosis, text.mitigation})
		}
		meanings[condition], remedies[condition] = means, remedy
	}
	return meanings, remedies
}

// eventTable returns the table of the events that report changes of the health of a HealthScope.
func eventTable() table {
	events := table{{"reason", "type", "when"}}
	for _, health := range slices.Sorted(maps.Keys(scope.Events)) {
		e := scope.Events[health]
		events = append(events, []string{code(string(e.Reason)), e.Type, eventTexts[health]})
	}
	return events
}
