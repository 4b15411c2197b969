package main

import (
	"github.com/healthscope/healthscope/controllers/metric"
)

// metricTables are the metrics, below the heading of the page. The packages that describe them come with the commands.
func metricTables() map[string]table {
	metrics := table{{"metric", "type", "labels", "meaning"}}
	for _, m := range metric.All() {
		metrics = append(metrics, []string{code(m.Name), string(m.Type), code(m.Labels...), m.Meaning})
	}
	return map[string]table{"Metrics": metrics}
}
