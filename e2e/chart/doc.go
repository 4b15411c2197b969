// Package chart runs Helm on the chart in charts/healthscope. Its tests hold
// the chart to its word: what may be set and what is refused, that what comes
// out is what Kubernetes and the program take, and that the kustomizations in
// config make the same.
package chart
