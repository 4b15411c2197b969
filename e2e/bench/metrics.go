package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
	"k8s.io/client-go/rest"
)

// metrics are the families of a program's metrics, by name.
type metrics map[string]*dto.MetricFamily

// scrape reads the metrics at a URL.
func scrape(ctx context.Context, c *http.Client, url string) (_ metrics, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", url, err)
	}
	response, err := c.Do(r)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", url, err)
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("cannot read %q: the answer is %s", url, response.Status)
	}
	return parseMetrics(response.Body)
}

func parseMetrics(text io.Reader) (metrics, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("cannot parse metrics: %w", err)
	}
	return families, nil
}

// sum returns the sum of the series of a metric that have all the labels, given as name=value. The value of a summary is its
// sample count.
func (m metrics) sum(name string, labels ...string) float64 {
	total := 0.0
	for _, series := range m[name].GetMetric() {
		has := map[string]bool{}
		for _, l := range series.GetLabel() {
			has[l.GetName()+"="+l.GetValue()] = true
		}
		all := true
		for _, l := range labels {
			all = all && has[l]
		}
		if all {
			total += series.GetGauge().GetValue() + series.GetCounter().GetValue() + series.GetUntyped().GetValue() + float64(series.GetSummary().GetSampleCount())
		}
	}
	return total
}

// liveHeap returns the heap after the last garbage collection, in MiB: the next collection starts when the heap has grown by
// GOGC percent.
func (m metrics) liveHeap() float64 {
	return m.sum("go_memstats_next_gc_bytes") * 100 / (100 + m.sum("go_gc_gogc_percent")) / mebibyte
}

const mebibyte = 1 << 20

// usage is the writes, the requests and the CPU time of HealthScope since its processes started.
type usage struct {
	// bundles and scopes are the numbers of successful writes of their statuses.
	bundles, scopes float64
	// requests are the requests of monitor and controller to the API server. cpu is their CPU time in seconds.
	requests, cpu map[string]float64
}

// used returns what HealthScope uses while do runs.
func (b *bench) used(ctx context.Context, do func() error) (usage, error) {
	before, err := b.usage(ctx)
	if err != nil {
		return usage{}, err
	}
	if err := do(); err != nil {
		return usage{}, err
	}
	u, err := b.usage(ctx)
	u.bundles -= before.bundles
	u.scopes -= before.scopes
	for program := range before.cpu {
		u.requests[program] -= before.requests[program]
		u.cpu[program] -= before.cpu[program]
	}
	return u, err
}

func (b *bench) usage(ctx context.Context) (usage, error) {
	u := usage{requests: map[string]float64{}, cpu: map[string]float64{}}
	c, err := rest.HTTPClientFor(b.config)
	if err != nil {
		return u, fmt.Errorf("cannot make client: %w", err)
	}
	server, err := scrape(ctx, c, b.config.Host+"/metrics")
	if err != nil {
		return u, err
	}
	u.bundles, u.scopes = server.writes("k8splugin.io", "resourcebundlestates"), server.writes("core.oam.dev", "healthscopes")
	running := b.hs.PIDs()
	for program, url := range b.metricsURLs() {
		if running[program] == 0 {
			continue
		}
		m, err := scrape(ctx, http.DefaultClient, url)
		if err != nil {
			return u, err
		}
		u.requests[program], u.cpu[program] = m.sum("rest_client_requests_total"), m.sum("process_cpu_seconds_total")
	}
	return u, nil
}

func (p *plane) metricsURLs() map[string]string {
	return map[string]string{"monitor": p.hs.MonitorMetrics, "controller": p.hs.Metrics}
}

// writes returns the number of successful writes of the status of a resource. The load generator does not write these statuses.
func (m metrics) writes(group, resource string) float64 {
	n := 0.0
	for _, verb := range []string{"PUT", "PATCH", "APPLY"} {
		n += m.sum("apiserver_request_total", "verb="+verb, "code=200", "group="+group, "resource="+resource, "subresource=status")
	}
	return n
}

// peak returns the maximum resident memory of a program since its start, in MiB; 0 where there is no /proc.
func (b *bench) peak(program string) float64 {
	p, err := procfs.NewProc(b.hs.PIDs()[program])
	if err != nil {
		return 0
	}
	status, err := p.NewStatus()
	if err != nil {
		return 0
	}
	return float64(status.VmHWM) / mebibyte
}

// settle waits until each program sends at most three requests in quietTime, for example to renew Leases.
func (b *bench) settle(ctx context.Context) error {
	for program, url := range b.metricsURLs() {
		if b.hs.PIDs()[program] == 0 {
			continue
		}
		last := -1.0
		err := poll(ctx, program+" to have nothing to do", func(ctx context.Context) (bool, error) {
			m, err := scrape(ctx, http.DefaultClient, url)
			if err != nil {
				return false, err
			}
			before := last
			last = m.sum("rest_client_requests_total")
			return before >= 0 && last-before <= 3, pause(ctx, quietTime)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
