package main

import (
	"github.com/healthscope/healthscope/controllers/metric"
)

// metricTables returns the table of the metrics, by heading. The packages that define the metrics are imported with the
// commands.
func metricTables() map[string]table {
	metrics := table{{"metric", "type", "labels", "meaning"}}
	for _, m := range metric.All() {
		metrics = append(metrics, []string{code(m.Name), string(m.Type), code(m.Labels...), m.Meaning})
	}
	return map[string]table{"Metrics": metrics}
}
