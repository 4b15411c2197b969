package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// benchClients is the number of concurrent callers.
const benchClients = 20

// big returns the documents of a group of 5 apps × 50 clusters × 15 resources. The hub observes all clusters.
func big(b *testing.B) *Documents {
	b.Helper()
	keys, clusters := etcdKeys{}, memoryClusters{seen: map[[2]string]Observation{}}
	body := deployment + "spec:\n  template:\n    spec:\n      containers:\n" + strings.Repeat("      - {name: web, image: \"example.org/web:1\"}\n", 10)
	for a := range 5 {
		for c := range 50 {
			app, cluster := fmt.Sprintf("app-%d", a), fmt.Sprintf("west+edge%02d", c)
			for r := range 15 {
				keys.put(autumnID, app, cluster, fmt.Sprintf("web-%02d+Deployment", r), body, "Applied", "")
			}
			clusters.seen[[2]string{cluster, autumnID + "-" + app}] = observationOf(cluster, healthscope.Ready)
		}
	}
	snapshot := keys.snapshot(b)
	contexts := &memoryContexts{views: map[appcontext.DeploymentRef]appcontext.View{
		autumn: {Contexts: []string{autumnID}, ContextID: autumnID, Context: snapshot, StatusContext: snapshot},
	}}
	return NewDocuments(DocumentsOptions{Contexts: contexts, Clusters: clusters, Policy: healthscope.DefaultPolicy()})
}

// BenchmarkDocuments sends concurrent requests of 20 callers for the status of a big group, and reports the 95th percentile of the
// latency.
func BenchmarkDocuments(b *testing.B) {
	h := NewHandler(Options{Documents: big(b)})
	serve(h, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "http://localhost"+autumnURL, nil)) // Decodes the contexts, which are then cached.
	for _, query := range []string{"output=summary", "output=summary&type=cluster", "output=all", "output=all&type=cluster", "output=small"} {
		b.Run(query, func(b *testing.B) {
			var mu sync.Mutex
			var took []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				var callers sync.WaitGroup
				for range benchClients {
					callers.Go(func() {
						began := time.Now()
						w := httptest.NewRecorder()
						h.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "http://localhost"+autumnURL+"?"+query, nil))
						if w.Code != http.StatusOK {
							b.Errorf("status %d: %s", w.Code, w.Body)
						}
						mu.Lock()
						defer mu.Unlock()
						took = append(took, time.Since(began))
					})
				}
				callers.Wait()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "ms-p95")
		})
	}
}
