package probe

import (
	"context"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// wayTimeout is how long an API server may take to say that it is there.
const wayTimeout = 5 * time.Second

// ask probes a target once.
func (p *Prober) ask(ctx context.Context, k key, t *target) probe.Outcome {
	access, ok := p.Clusters.Access(k.Cluster)
	if !ok {
		return probe.Unanswered()
	}
	request, err := newRequest(access.Config, k.scope.Namespace, t)
	if err != nil {
		return probe.Unanswered() // The fleet has connected to the same address.
	}
	within, cancel := context.WithTimeout(ctx, t.spec.Timeout)
	defer cancel()
	outcome, err := send(request.WithContext(within), access.Client)
	if err == nil {
		return outcome
	}
	// The target is slow, or breaks off, or the API server does.
	deadline, end := context.WithTimeout(ctx, wayTimeout)
	defer end()
	switch {
	case access.Ask(deadline) != nil:
		return probe.Unanswered()
	case within.Err() != nil:
		return probe.TimedOut()
	}
	return probe.BrokenOff()
}

// newRequest makes the request for a probe. Nothing in it is the user's but what package probe has let pass.
func newRequest(config *rest.Config, namespace string, t *target) (*http.Request, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	url := base.JoinPath("api", "v1", "namespaces", namespace, "services", t.address, "proxy")
	url.Path += t.spec.Path
	request, err := http.NewRequest(t.spec.Method, url.String(), http.NoBody) //nolint:noctx // It gets its context when it is sent.
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", probe.Accept)
	request.Header.Set("Accept-Encoding", "identity")
	return request, nil
}

// send sends a probe. It fails without a whole answer, as much of it as is read.
func send(request *http.Request, client *http.Client) (probe.Outcome, error) {
	direct := &http.Client{Transport: client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := direct.Do(request)
	if err != nil {
		return probe.Outcome{}, err
	}
	defer func() { _ = response.Body.Close() }() // What is beyond the bound is not read.
	body, err := io.ReadAll(io.LimitReader(response.Body, probe.MaxBody))
	if err != nil {
		return probe.Outcome{}, err
	}
	return probe.Judge(response.StatusCode, response.Header.Get("Content-Type"), body), nil
}

var _ Clusters = (*fleet.View)(nil)
