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

// readyTimeout is how long an API server may take to answer a readiness check.
const readyTimeout = 5 * time.Second

// attempt sends one probe to a target. It returns probe.Unanswered unless the API server is reachable.
func (p *Prober) attempt(ctx context.Context, k key, t *target) probe.Outcome {
	access, ok := p.Clusters.Access(k.Cluster)
	if !ok {
		return probe.Unanswered()
	}
	request, err := newRequest(access.Config, k.scope.Namespace, t)
	if err != nil {
		return probe.Unanswered() // The fleet has connected to the same address.
	}
	probeCtx, cancel := context.WithTimeout(ctx, t.spec.Timeout)
	defer cancel()
	outcome, err := send(request.WithContext(probeCtx), access.Client)
	if err == nil {
		return outcome
	}
	// Either the target or the API server is slow or has closed the connection: the API server's readiness tells which.
	readyCtx, cancelReady := context.WithTimeout(ctx, readyTimeout)
	defer cancelReady()
	switch {
	case access.CheckReady(readyCtx) != nil:
		return probe.Unanswered()
	case probeCtx.Err() != nil:
		return probe.TimedOut()
	}
	return probe.BodyTruncated()
}

// newRequest returns the request for a probe. Of the user's input it contains only what package healthscope/probe has validated.
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

// send sends a probe. It returns an error unless the answer is complete, up to probe.MaxBody bytes.
func send(request *http.Request, client *http.Client) (probe.Outcome, error) {
	direct := &http.Client{Transport: client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := direct.Do(request)
	if err != nil {
		return probe.Outcome{}, err
	}
	defer func() { _ = response.Body.Close() }() // The rest of the body is not read.
	body, err := io.ReadAll(io.LimitReader(response.Body, probe.MaxBody))
	if err != nil {
		return probe.Outcome{}, err
	}
	return probe.Judge(response.StatusCode, response.Header.Get("Content-Type"), body), nil
}

var _ Clusters = (*fleet.View)(nil)
