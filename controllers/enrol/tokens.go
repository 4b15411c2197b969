package enrol

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/metric"
)

var metricExpiry = metric.New(metric.Gauge, "healthscope_cluster_token_expiry_timestamp_seconds",
	"When the token of a cluster ends, in seconds since 1970, if it is one that is [renewed](clusters.md). Only the replica that leads has it.", "cluster")

// tokens remember when the tokens in Secrets end, and what was complained about last. They are safe for concurrent use.
type tokens struct {
	mu         sync.Mutex
	expiries   map[types.NamespacedName]expiry
	complaints map[types.NamespacedName]string
}

// expiry is when the token of a cluster ends.
type expiry struct {
	cluster string
	at      time.Time
}

func newTokens() *tokens {
	return &tokens{expiries: map[types.NamespacedName]expiry{}, complaints: map[types.NamespacedName]string{}}
}

// see notes when the token in a Secret ends. A token that is another than before leaves nothing to complain about.
func (t *tokens) see(s *corev1.Secret, expires time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, now := client.ObjectKeyFromObject(s), expiry{clusterOf(s), expires}
	if t.expiries[key] != now {
		delete(t.complaints, key)
	}
	t.expiries[key] = now
}

// of returns the Secrets with tokens of a cluster.
func (t *tokens) of(cluster string) []types.NamespacedName {
	t.mu.Lock()
	defer t.mu.Unlock()
	var keys []types.NamespacedName
	for key, e := range t.expiries {
		if e.cluster == cluster {
			keys = append(keys, key)
		}
	}
	return keys
}

// forget forgets a Secret that is gone, or that asks for nothing.
func (t *tokens) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.expiries, key)
	delete(t.complaints, key)
}

// complaint notes what is to be complained about, and returns whether that is news.
func (t *tokens) complaint(s *corev1.Secret, cause string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := client.ObjectKeyFromObject(s)
	if t.complaints[key] == cause {
		return false
	}
	t.complaints[key] = cause
	return true
}

// Describe implements prometheus.Collector.
func (t *tokens) Describe(out chan<- *prometheus.Desc) { out <- metricExpiry.Desc }

// Collect implements prometheus.Collector. Of two Secrets for one cluster, the token that ends first counts.
func (t *tokens) Collect(out chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := map[string]time.Time{}
	for _, e := range t.expiries {
		if at, ok := first[e.cluster]; !ok || e.at.Before(at) {
			first[e.cluster] = e.at
		}
	}
	for cluster, at := range first {
		out <- metricExpiry.Value(float64(at.Unix()), cluster)
	}
}
