// Package chart runs Helm on the chart in charts/healthscope. Its tests check
// which values the chart accepts and refuses, that Kubernetes and the program
// accept what it renders, and that the kustomizations in config produce the
// same objects.
package chart
