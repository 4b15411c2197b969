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

// tokens holds the tokens that are renewed. It is safe for concurrent use.
type tokens struct {
	mu       sync.Mutex
	bySecret map[types.NamespacedName]secretToken
}

// secretToken is the token of a Secret.
type secretToken struct {
	cluster string
	// expires is when it expires; zero if the annotation of the Secret is invalid.
	expires time.Time
	// warning is the last cause for which it was not renewed.
	warning string
}

func newTokens() *tokens { return &tokens{bySecret: map[types.NamespacedName]secretToken{}} }

// record records when the token in a Secret expires. For a new token, it forgets the last warning.
func (t *tokens) record(s *corev1.Secret, expires time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, now := client.ObjectKeyFromObject(s), secretToken{cluster: clusterOf(s), expires: expires}
	if was := t.bySecret[key]; was.cluster == now.cluster && was.expires.Equal(expires) {
		return
	}
	t.bySecret[key] = now
}

// remove removes a Secret that was deleted, or that has no token to renew.
func (t *tokens) remove(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.bySecret, key)
}

// warn records why the token of a Secret is not renewed, and reports whether the cause has changed.
func (t *tokens) warn(s *corev1.Secret, cause string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := client.ObjectKeyFromObject(s)
	token := t.bySecret[key]
	if token.warning == cause {
		return false
	}
	token.warning = cause
	t.bySecret[key] = token
	return true
}

// Describe implements prometheus.Collector.
func (t *tokens) Describe(out chan<- *prometheus.Desc) { out <- metricExpiry.Desc }

// Collect implements prometheus.Collector. If a cluster has two Secrets, it reports the token that expires first.
func (t *tokens) Collect(out chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := map[string]time.Time{}
	for _, token := range t.bySecret {
		if at, ok := first[token.cluster]; !token.expires.IsZero() && (!ok || token.expires.Before(at)) {
			first[token.cluster] = token.expires
		}
	}
	for cluster, at := range first {
		out <- metricExpiry.Value(float64(at.Unix()), cluster)
	}
}
