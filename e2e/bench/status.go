package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

const (
	// coldStarts is how often the controller is started for the row status-cold.
	coldStarts = 3
	// emcoTime is how long a context is read in EMCO's way; what has not been read then is extrapolated.
	emcoTime = 10 * time.Second
)

// statusBench is a group in an etcd of its own, and the way to its status.
type statusBench struct {
	*group

	endpoint string
	tap      *faults.EtcdTap
	client   *http.Client
	// warm says that the controller runs and has been asked.
	warm bool
}

// newStatusBench starts etcd, writes the group and makes the controller read it through the tap.
func (b *bench) newStatusBench(ctx context.Context) (*statusBench, error) {
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
	s := &statusBench{endpoint: etcd.Endpoint(), client: &http.Client{Transport: transport, Timeout: requestLimit}}
	b.closers = append(b.closers, func() error { transport.CloseIdleConnections(); return nil })
	begin := time.Now()
	if s.group, err = newGroup(ctx, store, 5, b.options.scaled(50, 3)); err != nil {
		return nil, err
	}
	b.logf("wrote a context of %d resources with %d bundles of %d bytes in %s", s.resources(), s.places(), s.bundleBytes, time.Since(begin).Round(time.Millisecond))
	if s.tap, err = faults.StartEtcdTap(s.endpoint, string(appcontext.ContextHandle(s.id))); err != nil {
		return nil, err
	}
	b.closers = append(b.closers, s.tap.Stop)
	return s, b.hs.Configure(fmt.Sprintf("appContext:\n  endpoints: [%s]\n", s.tap.URL))
}

// startForStatus starts the controller anew, and returns when its REST server listens. Nothing has been asked about contexts then.
func (b *bench) startForStatus(ctx context.Context) error {
	if err := b.hs.StopController(); err != nil {
		return err
	}
	if err := b.hs.StartController(ctx); err != nil {
		return err
	}
	return poll(ctx, "the status REST server to listen", func(ctx context.Context) (bool, error) {
		code, _, err := b.hs.Text(ctx, b.hs.API+"/readyz")
		return err == nil && code == http.StatusOK, nil
	})
}

func prepareStatus(ctx context.Context, b *bench) (err error) {
	if b.status == nil {
		b.status, err = b.newStatusBench(ctx)
	}
	return err
}

// ensureStatus makes sure that the controller runs and has everything in memory.
func ensureStatus(ctx context.Context, b *bench) error {
	if err := prepareStatus(ctx, b); err != nil {
		return err
	}
	if !b.status.warm {
		if err := b.startForStatus(ctx); err != nil {
			return err
		}
		b.status.warm = true
	}
	_, err := b.ask(ctx, "type=cluster&output=summary")
	return err
}

// ask gets the document of a query, checks what is in it, and returns it.
func (b *bench) ask(ctx context.Context, query string) ([]byte, error) {
	url := b.hs.API + groupPath + "?" + query
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("cannot ask %q: %w", url, err)
	}
	var body bytes.Buffer
	if err := b.status.do(r, &body); err != nil {
		return nil, err
	}
	if wrong := b.status.wrong(query, body.Bytes()); wrong != "" {
		return nil, fmt.Errorf("the answer to %q is wrong: %s", url, wrong)
	}
	return body.Bytes(), nil
}

// do sends a request, which must be answered with 200, and reads the answer into a buffer.
func (s *statusBench) do(r *http.Request, into *bytes.Buffer) error {
	response, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("cannot ask for a status: %w", err)
	}
	into.Reset()
	_, err = into.ReadFrom(response.Body)
	err = errors.Join(err, response.Body.Close())
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %s: %.500s", response.Status, into)
	}
	if err != nil {
		return fmt.Errorf("cannot ask %q for a status: %w", r.URL, err)
	}
	return nil
}

// statusDocument is what is looked at of a document.
type statusDocument struct {
	Status        string         `json:"status"`
	RsyncStatus   map[string]int `json:"rsync-status"`
	ClusterStatus map[string]int `json:"cluster-status"`
	Problems      []string       `json:"problems"`
	Health        *struct {
		State string `json:"state"`
	} `json:"health"`
	Apps []struct {
		Clusters []struct {
			Resources []json.RawMessage `json:"resources"`
		} `json:"clusters"`
	} `json:"apps"`
}

// wrong returns what is wrong with the answer to a query, or nothing.
func (s *statusBench) wrong(query string, body []byte) string {
	var d statusDocument
	if err := json.Unmarshal(body, &d); err != nil {
		return err.Error()
	}
	has := func(text string) bool { return strings.Contains(query, text) }
	want := map[bool]int{false: s.resources()}[has("output=summary")]
	small := has("output=small")
	switch listed := d.listed(); {
	case len(d.Problems) > 0 || d.Status != string(appcontext.StateInstantiated):
		return fmt.Sprintf("the context is %q, with problems %q", d.Status, d.Problems)
	case !has("type=cluster") && d.RsyncStatus[string(appcontext.ResourceApplied)] != s.resources():
		return fmt.Sprintf("of %d resources there have been applied %v", s.resources(), d.RsyncStatus)
	case (small || has("type=cluster")) && d.ClusterStatus[string(status.Present)] != s.resources():
		return fmt.Sprintf("of %d resources there are %v", s.resources(), d.ClusterStatus)
	case (small || has("health=true")) && (d.Health == nil || d.Health.State != string(healthscope.Ready)):
		return "it is not Ready"
	case listed != want:
		return fmt.Sprintf("it lists %d resources, not %d", listed, want)
	}
	return ""
}

// listed is the number of resources that the document lists.
func (d *statusDocument) listed() int {
	n := 0
	for _, a := range d.Apps {
		for _, c := range a.Clusters {
			n += len(c.Resources)
		}
	}
	return n
}

// measureStatusCold starts the controller several times, and asks for the status once each time.
func measureStatusCold(ctx context.Context, b *bench) ([]figure, error) {
	s := b.status
	var took []time.Duration
	var most faults.EtcdReads
	for range coldStarts {
		if err := b.startForStatus(ctx); err != nil {
			return nil, err
		}
		if before := s.tap.Take(); before != (faults.EtcdReads{}) {
			return nil, fmt.Errorf("the controller has read from etcd before it was asked for anything: %+v", before)
		}
		begin := time.Now()
		if _, err := b.ask(ctx, "type=cluster&output=all"); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
		r := s.tap.Take()
		most = faults.EtcdReads{Contents: max(most.Contents, r.Contents), Others: max(most.Others, r.Others), Bytes: max(most.Bytes, r.Bytes)}
	}
	s.warm = true
	return []figure{
		{Name: "resources", Value: float64(s.resources())},
		{Name: "range reads of the context", Value: float64(most.Contents), Peer: "48768", Target: new(1.0)},
		{Name: "other reads of etcd", Value: float64(most.Others)},
		{Name: "MiB read from etcd", Value: mebibytes(most.Bytes), Peer: "28"},
		{Name: "first answer ms", Value: milliseconds(percentile(took, 50))},
		{Name: "slowest first answer ms", Value: milliseconds(percentile(took, 100))},
	}, nil
}

// inEMCOsWay measures how a document would be read in EMCO's way.
func (s *statusBench) inEMCOsWay(ctx context.Context, limit time.Duration) (cost emcoCost, err error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.endpoint}, DialTimeout: requestLimit, Logger: zap.NewNop()})
	if err != nil {
		return emcoCost{}, fmt.Errorf("cannot connect to etcd: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	r := &emcoReader{client: client}
	return r.read(ctx, s.group, limit)
}
