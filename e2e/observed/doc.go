// Package observed runs a real Prometheus that scrapes HealthScope, with the alerts and the dashboard that HealthScope comes
// with, and checks their results.
package observed
