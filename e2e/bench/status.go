package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// This file has the row about status documents.

const (
	// coldStarts is how often the controller is started to measure the first response.
	coldStarts = 3
	// statusClients is the number of clients that send requests at the same time, each again as soon as it has its response.
	statusClients = 20
)

// statusBench is a group in its own etcd, with the access to its status.
type statusBench struct {
	*group

	endpoint, url string
	client        *http.Client
}

// newStatusBench starts etcd, writes the group and configures the controller to read it.
func (b *bench) newStatusBench(ctx context.Context) (_ *statusBench, err error) {
	etcd, err := controlplane.StartEtcd(ctx, controlplane.EtcdOptions{})
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, etcd.Stop)
	store, err := appcontext.Open(appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Timeout: requestLimit})
	if err != nil {
		return nil, err
	}
	b.closers = append(b.closers, store.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: statusClients, DisableCompression: true}
	b.closers = append(b.closers, func() error { transport.CloseIdleConnections(); return nil })
	s := &statusBench{endpoint: etcd.Endpoint(), url: b.hs.API + groupPath + "?", client: &http.Client{Transport: transport, Timeout: requestLimit}}
	if s.group, err = newGroup(ctx, store, 5, b.options.scaled(50, 3)); err != nil {
		return nil, err
	}
	b.logf("wrote a context of %d resources", s.resources())
	return s, b.hs.Configure(ctx, fmt.Sprintf("appContext:\n  endpoints: [%s]\n", s.endpoint))
}

// get reads the document of a query into a buffer.
func (s *statusBench) get(ctx context.Context, query string, into *bytes.Buffer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+query, http.NoBody)
	if err != nil {
		return fmt.Errorf("cannot ask for %q: %w", query, err)
	}
	response, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("cannot ask for %q: %w", query, err)
	}
	into.Reset()
	_, err = into.ReadFrom(response.Body)
	err = errors.Join(err, response.Body.Close())
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %s: %.500s", response.Status, into)
	}
	if err != nil {
		return fmt.Errorf("cannot ask for %q: %w", query, err)
	}
	return nil
}

// ask returns the document of a query, after a check of its content.
func (s *statusBench) ask(ctx context.Context, query string) ([]byte, error) {
	var body bytes.Buffer
	if err := s.get(ctx, query, &body); err != nil {
		return nil, err
	}
	var d struct {
		Status        string         `json:"status"`
		RsyncStatus   map[string]int `json:"rsync-status"`
		ClusterStatus map[string]int `json:"cluster-status"`
		Problems      []string       `json:"problems"`
		Apps          []struct {
			Clusters []struct {
				Resources []json.RawMessage `json:"resources"`
			} `json:"clusters"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(body.Bytes(), &d); err != nil {
		return nil, fmt.Errorf("cannot decode the answer to %q: %w", query, err)
	}
	listed := 0
	for _, a := range d.Apps {
		for _, c := range a.Clusters {
			listed += len(c.Resources)
		}
	}
	counted, want := d.RsyncStatus[string(appcontext.ResourceApplied)], s.resources()
	if strings.Contains(query, "type=cluster") {
		counted = d.ClusterStatus[string(status.Present)]
	}
	if strings.Contains(query, "output=summary") {
		listed += want
	}
	if len(d.Problems) > 0 || d.Status != string(appcontext.StateInstantiated) || counted != want || listed != want {
		return nil, fmt.Errorf("the answer to %q is wrong: %q with problems %q, %d of %d resources counted, and as many listed: %t", query, d.Status, d.Problems, counted, want, listed == want)
	}
	return body.Bytes(), nil
}

// reads returns the number of Range requests that etcd has handled.
func (s *statusBench) reads(ctx context.Context) (float64, error) {
	m, err := scrape(ctx, http.DefaultClient, s.endpoint+"/metrics")
	return m.sum("grpc_server_handled_total", "grpc_method=Range"), err
}

// cold restarts the controller. It returns the time of the first response, and the number of reads of etcd for it.
func (b *bench) cold(ctx context.Context, s *statusBench) (took time.Duration, reads float64, err error) {
	if err := b.hs.StopController(); err != nil {
		return 0, 0, err
	}
	if err := b.hs.StartController(ctx); err != nil {
		return 0, 0, err
	}
	err = poll(ctx, "the status REST server to listen", func(ctx context.Context) (bool, error) {
		code, _, err := b.hs.Text(ctx, b.hs.API+"/readyz")
		return err == nil && code == http.StatusOK, nil
	})
	if err != nil {
		return 0, 0, err
	}
	before, err := s.reads(ctx)
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	if _, err := s.ask(ctx, "type=cluster&output=all"); err != nil {
		return 0, 0, err
	}
	took = time.Since(begin)
	after, err := s.reads(ctx)
	return took, after - before, err
}

// bareRead returns the floor of the first response: the time in which a client of etcd reads the whole context.
func (s *statusBench) bareRead(ctx context.Context) (_ time.Duration, err error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.endpoint}, DialTimeout: requestLimit, Logger: zap.NewNop()})
	if err != nil {
		return 0, fmt.Errorf("cannot connect to etcd: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	begin := time.Now()
	_, err = c.Get(ctx, string(appcontext.ContextHandle(s.id)), clientv3.WithPrefix())
	return time.Since(begin), err
}

// load has clients request the document of a query for a time, and returns the time of each response. The document must be the
// same each time.
func (s *statusBench) load(ctx context.Context, query string, length time.Duration) (took []time.Duration, err error) {
	want, err := s.ask(ctx, query)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for range statusClients {
		group.Go(func() error {
			var body bytes.Buffer
			for time.Since(begin) < length {
				asked := time.Now()
				if err := s.get(ctx, query, &body); err != nil {
					return err
				}
				d := time.Since(asked)
				if !bytes.Equal(body.Bytes(), want) {
					return fmt.Errorf("the answer to %q has changed, and nothing else has", query)
				}
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
			return nil
		})
	}
	return took, group.Wait()
}

func measureStatus(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.newStatusBench(ctx)
	if err != nil {
		return nil, err
	}
	var first, floor []float64
	most := 0.0
	for range coldStarts {
		bare, err := s.bareRead(ctx)
		if err != nil {
			return nil, err
		}
		took, reads, err := b.cold(ctx, s)
		if err != nil {
			return nil, err
		}
		first, floor, most = append(first, 1000*took.Seconds()), append(floor, 1000*bare.Seconds()), max(most, reads)
	}
	figures := []figure{
		{name: "first answer ms", value: median(first), floor: median(floor), peer: "6600 (storage in memory)", samples: first, floorSamples: floor},
		{name: "first answer reads", value: most, floor: 1, peer: "48768", target: new(5.0)},
	}
	for _, one := range []struct {
		query  string
		target float64
	}{{"type=rsync&output=summary", 5}, {"type=cluster&output=summary", 5}, {"type=rsync&output=all", 50}, {"type=cluster&output=all", 50}} {
		length := b.options.scaledTime(3*time.Second, time.Second)
		took, err := s.load(ctx, one.query, length)
		if err != nil {
			return nil, err
		}
		f := latency(one.query+" ", took, 0)
		f.target, f.peer = &one.target, "6600, once for all"
		figures = append(figures, f, figure{name: one.query + " answers/s", value: float64(len(took)) / length.Seconds()})
	}
	return figures, nil
}
