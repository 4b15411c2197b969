package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// usage is what a process uses.
type usage struct {
	cpu time.Duration
	// rss and peak are bytes of resident memory, now and at most since the last resetPeak.
	rss, peak int64
}

// auditDelay is how much later than a response its audit event may be written.
const auditDelay = 200 * time.Millisecond

// settleTime is how long HealthScope must not have asked for anything before measuring begins. It is longer than auditDelay.
const settleTime = 500 * time.Millisecond

// window is a stretch of time in which it is counted what is used.
type window struct {
	plane  *plane
	begin  time.Time
	before map[string]usage
	text   string
}

// result is what a window has counted.
type result struct {
	length    time.Duration
	processes map[string]usage
	requests  requests
	// bundleBytes and scopeBytes are the bytes of requests that wrote bundles and scopes, all is the number of all requests that the API server answered.
	bundleBytes, scopeBytes, all float64
}

// settle waits until HealthScope asks for nothing any more because of what was prepared, such as an Event for each of a thousand scopes.
func (p *plane) settle(ctx context.Context) error { return settled(ctx, p.audit) }

// settled waits until an audit log says that HealthScope asks for nothing any more but what it always needs.
func settled(ctx context.Context, log *auditLog) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	for {
		if err := pause(ctx, settleTime); err != nil {
			return fmt.Errorf("cannot wait for HealthScope to have nothing to do: %w", err)
		}
		seen, err := log.next()
		if err != nil {
			return err
		}
		maps.DeleteFunc(seen, func(r request, _ int) bool { return r.needed() })
		if len(seen) == 0 {
			return nil
		}
	}
}

// open begins to count, when nothing is left to do. A process that starts later counts from its start.
func (p *plane) open(ctx context.Context) (*window, error) {
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	w := &window{plane: p, before: map[string]usage{}}
	var err error
	if w.text, err = serverMetrics(ctx, p.config); err != nil {
		return nil, err
	}
	for name, pid := range p.pids() {
		if err := resetPeak(pid); err != nil {
			return nil, err
		}
		if w.before[name], err = usageOf(pid); err != nil {
			return nil, err
		}
	}
	w.begin = time.Now()
	return w, nil
}

// close ends counting.
func (w *window) close(ctx context.Context) (result, error) {
	r := result{length: time.Since(w.begin), processes: map[string]usage{}}
	for name, pid := range w.plane.pids() {
		u, err := usageOf(pid)
		if err != nil {
			return r, err
		}
		if before, ok := w.before[name]; ok && before.cpu <= u.cpu {
			u.cpu -= before.cpu
		}
		r.processes[name] = u
	}
	if err := pause(ctx, auditDelay); err != nil {
		return r, err
	}
	var err error
	if r.requests, err = w.plane.audit.next(); err != nil {
		return r, err
	}
	text, err := serverMetrics(ctx, w.plane.config)
	if err != nil {
		return r, err
	}
	const size = "apiserver_request_body_size_bytes_sum"
	r.bundleBytes = sum(text, size, `resource="resourcebundlestates"`, `group="k8splugin.io"`) - sum(w.text, size, `resource="resourcebundlestates"`, `group="k8splugin.io"`)
	r.scopeBytes = sum(text, size, `resource="healthscopes"`, `group="core.oam.dev"`) - sum(w.text, size, `resource="healthscopes"`, `group="core.oam.dev"`)
	r.all = sum(text, "apiserver_request_total") - sum(w.text, "apiserver_request_total")
	return r, nil
}

// serverMetrics reads the API server's own metrics.
func serverMetrics(ctx context.Context, config *rest.Config) (string, error) {
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", fmt.Errorf("cannot make client: %w", err)
	}
	return scrape(ctx, c, config.Host+"/metrics")
}

// scrape reads metrics in Prometheus' text format.
func scrape(ctx context.Context, c *http.Client, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("cannot read %q: %w", url, err)
	}
	response, err := c.Do(r)
	if err != nil {
		return "", fmt.Errorf("cannot read %q: %w", url, err)
	}
	defer response.Body.Close() //nolint:errcheck // Nothing is lost when closing what was only read.
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %s", response.Status)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read %q: %w", url, err)
	}
	return string(body), nil
}

// sum adds up the series of a metric that have all the labels, each written as in the text: name="value".
func sum(text, metric string, labels ...string) float64 {
	total := 0.0
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, metric)
		if !ok || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		rest = strings.TrimSpace(rest)
		value := strings.LastIndexByte(rest, ' ') + 1 // 0 when there are no labels.
		if !hasAll(rest[:value], labels) {
			continue
		}
		if v, err := strconv.ParseFloat(rest[value:], 64); err == nil {
			total += v
		}
	}
	return total
}

func hasAll(series string, labels []string) bool {
	for _, label := range labels {
		if !strings.Contains(series, "{"+label) && !strings.Contains(series, ","+label) {
			return false
		}
	}
	return true
}
