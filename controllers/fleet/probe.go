package fleet

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/rest"
)

// Pauses between probes that get no answer, jittered.
const (
	// probePause is the first one, which doubles with each attempt once the cluster counts as away.
	probePause = time.Second
	// maxProbePause is the longest one for a cluster that was there, so that its return shows soon.
	maxProbePause = 10 * time.Second
	// maxConnectPause is the longest one for a cluster that was never there.
	maxConnectPause = time.Minute
)

// pauses are those between attempts that fail.
type pauses struct{ last time.Duration }

// next returns how long to wait before the next attempt. It is the first pause as long as a cluster is only suspected of being away.
func (p *pauses) next(reach Reachability, known bool) time.Duration {
	longest := maxConnectPause
	if known {
		longest = maxProbePause
	}
	switch {
	case reach == Connected || p.last == 0:
		p.last = probePause
	default:
		p.last = min(2*p.last, longest)
	}
	return p.last*3/4 + rand.N(p.last/4) //nolint:gosec // It is no secret when it is tried again.
}

// probe asks an API server whether it is there, and returns why it seems not to be. That it refuses to answer the question
// is an answer; that it is not ready is none. With a token, which is sent in place of the client's own, it must accept that.
//
// See https://kubernetes.io/docs/reference/using-api/health-checks/ for /readyz, which every client may read by default.
func probe(ctx context.Context, config *rest.Config, client *http.Client, token string) error {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return errors.Wrap(err, "cannot read the server's address")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("readyz").String(), http.NoBody)
	if err != nil {
		return errors.Wrap(err, "cannot ask")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if ctx.Err() != nil {
		err = errors.New("no answer in time")
	}
	if broken := (*url.Error)(nil); errors.As(err, &broken) {
		return broken.Err // Without the address, which is in it already or says nothing.
	}
	if err != nil {
		return err
	}
	_ = response.Body.Close() // It is the status that counts.
	switch {
	case response.StatusCode >= http.StatusInternalServerError:
		return errors.Errorf("it is not ready: /readyz answers %s", response.Status)
	case token != "" && response.StatusCode == http.StatusUnauthorized:
		return errUnauthorized
	}
	return nil
}
