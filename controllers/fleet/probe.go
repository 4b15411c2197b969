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

// errUnauthorized is why a cluster cannot be read with credentials that are not accepted.
var errUnauthorized = errors.New("the API server does not accept the credentials (401 Unauthorized): the token or the certificate may have expired")

// Pauses between probes that get no answer. They double, with jitter.
const (
	minProbePause = time.Second
	// maxProbePause is the longest one for a cluster that was there, so that its return shows soon.
	maxProbePause = 10 * time.Second
	// maxConnectPause is the longest one for a cluster that was never there.
	maxConnectPause = time.Minute
)

// nextPause returns the pause after a probe that got no answer, by the one before and the longest one.
func nextPause(last, maxPause time.Duration) time.Duration {
	return min(max(2*last, minProbePause), maxPause)
}

// jittered returns a pause that is up to a quarter shorter.
func jittered(pause time.Duration) time.Duration {
	return pause*3/4 + rand.N(pause/4) //nolint:gosec // It is no secret when it is tried again.
}

// try asks an API server whether it is there, and returns why it seems not to be. That it refuses to answer the question
// is an answer; that it is not ready is none. errUnauthorized means that it does not accept the credentials, which are those
// of the client, or a token.
//
// See https://kubernetes.io/docs/reference/using-api/health-checks/ for /readyz, which every client may read by default.
func (a Access) try(ctx context.Context, token string) error {
	base, _, err := rest.DefaultServerUrlFor(a.Config)
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
	response, err := a.Client.Do(request)
	if ctx.Err() != nil {
		err = errors.New("no answer in time")
	}
	if err != nil {
		return withoutAddress(err)
	}
	_ = response.Body.Close() // It is the status that counts.
	switch {
	case response.StatusCode >= http.StatusInternalServerError:
		return errors.Errorf("it is not ready: /readyz answers %s", response.Status)
	case response.StatusCode == http.StatusUnauthorized:
		return errUnauthorized
	}
	return nil
}

// withoutAddress returns the cause of a request that failed, without the address, which is in it already or says nothing.
func withoutAddress(err error) error {
	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
		return urlErr.Err
	}
	return err
}
