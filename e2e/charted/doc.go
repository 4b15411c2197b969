// Package charted tests HealthScope as an operator has it: installed by the real
// Helm on a real API server, with monitor and controller as processes that
// run what the chart's Deployments say, with the rights that the chart grants.
package charted
