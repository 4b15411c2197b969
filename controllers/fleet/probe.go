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

// errUnauthorized means that the API server does not accept the credentials.
var errUnauthorized = errors.New("the API server does not accept the credentials (401 Unauthorized): the token or the certificate may have expired")

// Pauses between probes that get no answer. They double, with jitter.
const (
	minProbePause = time.Second
	// maxProbePause is the maximum for a cluster that has answered before, so that its recovery shows soon.
	maxProbePause = 10 * time.Second
	// maxConnectPause is the maximum for a cluster that has never answered.
	maxConnectPause = time.Minute
)

// nextPause returns the pause after a probe that got no answer: twice the previous one, between minProbePause and maxPause.
func nextPause(last, maxPause time.Duration) time.Duration {
	return min(max(2*last, minProbePause), maxPause)
}

// jittered returns a pause that is up to a quarter shorter.
func jittered(pause time.Duration) time.Duration {
	return pause*3/4 + rand.N(pause/4) //nolint:gosec // The time of a retry is no secret.
}

// try probes an API server, and returns an error when it does not answer or is not ready. A refusal (403) counts as an answer.
// The error is errUnauthorized when the API server does not accept the credentials, which are the token, or without a token
// those of the client.
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
	_ = response.Body.Close() // Only the status matters.
	switch {
	case response.StatusCode >= http.StatusInternalServerError:
		return errors.Errorf("it is not ready: /readyz answers %s", response.Status)
	case response.StatusCode == http.StatusUnauthorized:
		return errUnauthorized
	}
	return nil
}

// withoutAddress returns the cause of a failed request without the address, which the cause contains already or which adds nothing.
func withoutAddress(err error) error {
	if urlErr := (*url.Error)(nil); errors.As(err, &urlErr) {
		return urlErr.Err
	}
	return err
}
