// Package charted tests HealthScope as an operator runs it: the real Helm
// installs it on a real API server. The monitor and the controller are processes
// with the arguments of the chart's Deployments and the rights that the chart grants.
package charted
