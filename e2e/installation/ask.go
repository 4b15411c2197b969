package installation

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"time"
)

// askTimeout is the maximum duration of one request to an installation.
const askTimeout = 10 * time.Second

// asker accepts every certificate, because a program without a certificate creates its own, which cannot be verified.
var asker = &http.Client{Transport: &http.Transport{
	TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // As it says.
	DisableKeepAlives: true,                                  // The next request may go to another process at the same address.
}}

// Ask requests a URL with a bearer token, or without one if token is empty. It returns the status code and the body of the
// response.
func (i *Installation) Ask(ctx context.Context, url, token string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := asker.Do(request)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), errors.Join(err, response.Body.Close())
}

// Readyz returns the status code of a program's readiness probe; 0 if the program does not respond. It is for installations by
// the chart.
func (i *Installation) Readyz(ctx context.Context, program string) (int, error) {
	url, err := i.pods[program].Readiness()
	if err != nil {
		return 0, err
	}
	status, _, _ := i.Ask(ctx, url, "")
	return status, nil
}
