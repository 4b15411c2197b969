package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// syncLag is the controller's own measure: from when it has seen a change until A&AI has acknowledged it.
const syncLag = "healthscope_aai_sync_lag_seconds"

// bucket is a bucket of a histogram: how many values are not greater than the bound, in seconds.
type bucket struct {
	bound float64
	count uint64
}

// syncLags reads the histogram of lags, as it has become since the controller started.
func (b *bench) syncLags(ctx context.Context) ([]bucket, error) {
	_, text, err := b.hs.Text(ctx, b.hs.Metrics)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("cannot read the controller's metrics: %w", err)
	}
	return bucketsOf(families[syncLag]), nil
}

// bucketsOf returns the buckets of the only histogram of a family, by bound; none when there is none yet.
func bucketsOf(family *dto.MetricFamily) []bucket {
	var buckets []bucket
	for _, m := range family.GetMetric() {
		for _, one := range m.GetHistogram().GetBucket() {
			buckets = append(buckets, bucket{one.GetUpperBound(), one.GetCumulativeCount()})
		}
	}
	return buckets
}

// quantileSince estimates, in seconds, the value that the given part of what came between two readings of a histogram does
// not exceed. As in Prometheus, values are taken to be spread evenly within a bucket, and what is beyond the last finite
// bound counts as that bound. It is an error when nothing came between.
func quantileSince(before, after []bucket, q float64) (float64, error) {
	counts := make([]float64, len(after))
	for i := range after {
		counts[i] = float64(after[i].count)
		if i < len(before) {
			counts[i] -= float64(before[i].count)
		}
	}
	if len(counts) == 0 || counts[len(counts)-1] == 0 {
		return 0, errors.New("cannot tell a quantile: nothing was counted")
	}
	rank := q * counts[len(counts)-1]
	lowest, below := 0.0, 0.0
	for i, count := range counts {
		bound := after[i].bound
		if math.IsInf(bound, 1) {
			break
		}
		if count >= rank {
			return lowest + (bound-lowest)*(rank-below)/(count-below), nil
		}
		lowest, below = bound, count
	}
	return lowest, nil
}
