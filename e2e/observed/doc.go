// Package observed runs a real Prometheus over HealthScope, with the alerts
// and the dashboard that HealthScope comes with, and looks at what they tell.
package observed
