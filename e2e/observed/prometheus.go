package observed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/e2e/process"
)

const (
	// readyTimeout is the maximum duration of the start of Prometheus, stopTimeout that of its end, and requestTimeout that of
	// one request.
	readyTimeout   = time.Minute
	stopTimeout    = 15 * time.Second
	requestTimeout = 10 * time.Second
	// poll is the interval at which its readiness is checked.
	poll = 50 * time.Millisecond
	// interval is the interval at which Prometheus scrapes and evaluates rules.
	interval = "1s"
)

// Target is a target of Prometheus.
type Target struct {
	// Job is the name of the job.
	Job string
	// URL is the URL of the metrics.
	URL string
	// Scrape holds other fields of the scrape configuration, for example for authorization and TLS. It may be nil.
	Scrape map[string]any
}

// Prometheus is a running Prometheus.
type Prometheus struct {
	url     string
	process *process.Process
}

// Start starts Prometheus with a file of rules in a directory, which must exist, and returns when it is ready. program is the
// path of the program.
func Start(ctx context.Context, program, dir string, rules []byte, targets ...Target) (*Prometheus, error) {
	config, err := configuration(targets)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"prometheus.yml": config, "rules.yaml": rules} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, fmt.Errorf("cannot configure Prometheus: %w", err)
		}
	}
	port, err := process.ReservePort()
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port.Number))
	p := &Prometheus{url: "http://" + address}
	p.process, err = process.Start(process.Spec{
		Name: "prometheus", Path: program, Dir: dir, LogPath: filepath.Join(dir, "prometheus.log"),
		Args: []string{"--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address=" + address, "--log.level=warn"},
	})
	if err != nil {
		return nil, err
	}
	if err := p.ready(ctx); err != nil {
		return nil, errors.Join(err, p.process.Kill())
	}
	return p, nil
}

// configuration returns Prometheus's configuration file. A scraped label takes precedence over the target's label of the same
// name.
func configuration(targets []Target) ([]byte, error) {
	var scrapes []map[string]any
	for _, t := range targets {
		at, err := url.Parse(t.URL)
		if err != nil {
			return nil, fmt.Errorf("cannot scrape %q: %w", t.URL, err)
		}
		scrape := map[string]any{
			"job_name": t.Job, "scheme": at.Scheme, "metrics_path": at.Path, "honor_labels": true,
			"static_configs": []any{map[string]any{"targets": []string{at.Host}}},
		}
		maps.Copy(scrape, t.Scrape)
		scrapes = append(scrapes, scrape)
	}
	return yaml.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
		"rule_files":     []string{"rules.yaml"},
		"scrape_configs": scrapes,
	})
}

func (p *Prometheus) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("prometheus is not ready after %s", readyTimeout))
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		if !p.process.Running() {
			return false, p.process.Failure()
		}
		_, err := p.get(ctx, "/-/ready")
		return err == nil, nil
	})
	if err != nil && ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), errors.New(p.process.LogTail()))
	}
	return err
}

// Stop stops Prometheus.
func (p *Prometheus) Stop() error { return p.process.Stop(stopTimeout) }

// Log returns the end of its log.
func (p *Prometheus) Log() string { return p.process.LogTail() }

// Series is a series with its latest value.
type Series struct {
	// Labels are its labels, with the name of the metric as __name__ if it has one.
	Labels map[string]string `json:"metric"`
	// Value is the time in seconds and the value.
	Value [2]any `json:"value"`
}

// Query returns the current value of a PromQL query, which must be a vector.
func (p *Prometheus) Query(ctx context.Context, query string) ([]Series, error) {
	var data struct {
		Type   string   `json:"resultType"`
		Result []Series `json:"result"`
	}
	if err := p.api(ctx, "/api/v1/query?query="+url.QueryEscape(query), &data); err != nil {
		return nil, fmt.Errorf("cannot ask Prometheus for %q: %w", query, err)
	}
	if data.Type != "vector" {
		return nil, fmt.Errorf("cannot ask Prometheus for %q: the answer is a %s, want a vector", query, data.Type)
	}
	return data.Result, nil
}

// QueryRange returns the values of a PromQL query over time, one for each second.
func (p *Prometheus) QueryRange(ctx context.Context, query string, from, to time.Time) (model.Matrix, error) {
	var data struct {
		Result model.Matrix `json:"result"`
	}
	arguments := url.Values{"query": {query}, "start": {from.Format(time.RFC3339)}, "end": {to.Format(time.RFC3339)}, "step": {"1"}}
	if err := p.api(ctx, "/api/v1/query_range?"+arguments.Encode(), &data); err != nil {
		return nil, fmt.Errorf("cannot ask Prometheus for %q: %w", query, err)
	}
	return data.Result, nil
}

// Alert is an alert that is pending or firing.
type Alert struct {
	// Labels are its labels, with its name as alertname.
	Labels map[string]string `json:"labels"`
	// Annotations are its texts.
	Annotations map[string]string `json:"annotations"`
	// State is pending or firing.
	State string `json:"state"`
}

// Firing returns the alerts that fire, by their names.
func (p *Prometheus) Firing(ctx context.Context) (map[string][]Alert, error) {
	var data struct {
		Alerts []Alert `json:"alerts"`
	}
	if err := p.api(ctx, "/api/v1/alerts", &data); err != nil {
		return nil, fmt.Errorf("cannot ask Prometheus for its alerts: %w", err)
	}
	firing := map[string][]Alert{}
	for _, a := range data.Alerts {
		if a.State == "firing" {
			firing[a.Labels["alertname"]] = append(firing[a.Labels["alertname"]], a)
		}
	}
	return firing, nil
}

// api sends a request to Prometheus's API, and decodes the data of the response.
func (p *Prometheus) api(ctx context.Context, path string, into any) error {
	body, err := p.get(ctx, path)
	if err != nil {
		return err
	}
	answer := struct {
		Data any `json:"data"`
	}{into}
	return json.Unmarshal(body, &answer)
}

func (p *Prometheus) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", response.StatusCode, strings.TrimSpace(string(body)))
	}
	return body, err
}
