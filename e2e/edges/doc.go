// Package edges tests HealthScope over several clusters, end to end: a hub and
// two edges, each a control plane of its own, with the programs as processes.
package edges
