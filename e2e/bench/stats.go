package main

import (
	"slices"
	"time"
)

// percentile returns the smallest sample that so many percent of all samples do not exceed (the nearest rank). There must be samples.
func percentile(samples []time.Duration, percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(samples))
	rank := (percent*len(sorted) + 99) / 100
	return sorted[max(rank, 1)-1]
}

// median returns the middle one of values. There must be values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// milliseconds returns a duration as a number.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
