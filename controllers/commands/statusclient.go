package commands

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/healthscope/api"
)

// maxResponseSize limits the size of a response body, in bytes.
const maxResponseSize = 256 << 20

// statusClient is a client for the status REST API of a hub.
type statusClient struct {
	server  *url.URL
	http    *http.Client
	timeout time.Duration
}

// newServerClient returns a client for the server and the token that the flags name.
func newServerClient(f *statusFlags) (*statusClient, error) {
	server, err := url.Parse(f.server)
	if err != nil || server.Host == "" || server.Scheme != "http" && server.Scheme != "https" {
		return nil, errors.New("--server must be an http or https URL, such as https://healthscope.example.com")
	}
	if server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		return nil, errors.New("--server must be scheme, host, port and path only: a token comes by --token-file")
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: f.timeout,
		DialContext: (&net.Dialer{Timeout: f.timeout}).DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if f.caFile != "" {
		if transport.TLSClientConfig.RootCAs, err = loadCertPool(f.caFile); err != nil {
			return nil, err
		}
	}
	authenticated, err := f.authenticate(transport)
	if err != nil {
		return nil, err
	}
	if authenticated != http.RoundTripper(transport) && server.Scheme == "http" && !isLoopback(server.Hostname()) {
		return nil, errors.Errorf("--server is %q; it must be https, or on this machine: a token must not go over the network in the clear", f.server)
	}
	return newStatusClient(server, authenticated, f.timeout), nil
}

func newStatusClient(server *url.URL, transport http.RoundTripper, timeout time.Duration) *statusClient {
	return &statusClient{
		server: server, timeout: timeout,
		// A redirect could send the token elsewhere.
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// loadCertPool reads a file with CA certificates.
func loadCertPool(path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read --ca-file")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.Errorf("cannot use --ca-file %q: it holds no certificate", path)
	}
	return pool, nil
}

// authenticate returns a transport that sends the token that the flags name. Without such flags it returns transport itself.
func (f *statusFlags) authenticate(transport http.RoundTripper) (http.RoundTripper, error) {
	fromKubeconfig := f.kubeconfig != "" || f.context != ""
	switch {
	case f.tokenFile != "" && fromKubeconfig:
		return nil, errors.New("--token-file and --kubeconfig or --context are given; one of them must say which token to use")
	case f.tokenFile != "":
		if _, err := readToken("token-file", f.tokenFile); err != nil {
			return nil, err
		}
		return fileTokenTransport{f.tokenFile, transport}, nil
	case !fromKubeconfig:
		return transport, nil
	}
	config, err := loadRESTConfig(f.kubeconfig, f.context, "status")
	if err != nil {
		return nil, errors.Wrap(err, "cannot find a token")
	}
	if config.BearerToken == "" && config.BearerTokenFile == "" && config.ExecProvider == nil {
		return nil, errors.New("cannot find a token: the context of the kubeconfig file has another way to authenticate; give a token with --token-file, such as one of kubectl create token")
	}
	authenticated, err := rest.HTTPWrappersForConfig(config, transport)
	return authenticated, errors.Wrap(err, "cannot use the token of the kubeconfig file")
}

// fileTokenTransport sends the token in a file. It reads the file for each request, because the token may be renewed.
type fileTokenTransport struct {
	path string
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t fileTokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := readToken("token-file", t.path)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return t.next.RoundTrip(r)
}

// readToken returns the bearer token in the file that a flag names.
func readToken(flag, path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", errors.Wrap(err, "cannot read --"+flag)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.Errorf("cannot use --%s %q: it must hold one token and nothing else", flag, path)
	}
	return token, nil
}

// url returns the URL of a target.
func (c *statusClient) url(t target, query url.Values) *url.URL {
	var parts []string
	for _, part := range t.path() {
		parts = append(parts, url.PathEscape(part))
	}
	u := c.server.JoinPath(parts...)
	u.RawQuery = query.Encode()
	return u
}

// statusResponse is a response of the server.
type statusResponse struct {
	body []byte
	etag string
	// notModified is true if the document has not changed since the response with the ETag of the request. Then body is empty.
	notModified bool
}

// responseError is an error response of the server.
type responseError struct {
	status int
	text   string
}

func (r *responseError) Error() string { return r.text }

// isPermanent reports whether a retry cannot succeed.
func (r *responseError) isPermanent() bool {
	return r.status < http.StatusInternalServerError && r.status != http.StatusTooManyRequests && r.status != http.StatusRequestTimeout
}

// get gets a document, with a timeout. etag is the ETag of the response that the caller already has, or empty.
func (c *statusClient) get(ctx context.Context, u *url.URL, etag string) (statusResponse, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errors.Errorf("no answer within %s; increase --timeout", c.timeout))
	defer cancel()
	response, err := c.send(ctx, u, "application/json", etag)
	if err != nil {
		return statusResponse{}, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNotModified {
		return statusResponse{etag: etag, notModified: true}, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxResponseSize+1))
	switch {
	case err != nil:
		return statusResponse{}, requestError(ctx, err)
	case len(body) > maxResponseSize:
		return statusResponse{}, errors.Errorf("the answer has more than %d MiB; ask for less, for instance with --app", maxResponseSize>>20)
	}
	return statusResponse{body: body, etag: response.Header.Get("ETag")}, nil
}

// send sends a request. It returns an error for an error response.
func (c *statusClient) send(ctx context.Context, u *url.URL, accept, etag string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("User-Agent", "healthscope-status/"+Version())
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, requestError(ctx, err)
	}
	if response.StatusCode == http.StatusOK || response.StatusCode == http.StatusNotModified && etag != "" {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	return nil, newResponseError(response)
}

// requestError returns the cause of a failed request, without the path and query of the URL, which the caller knows.
func requestError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return errors.Wrapf(wrapped.Err, "cannot ask the server at %s", baseURL(wrapped.URL))
	}
	return err
}

func baseURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "an unknown place"
	}
	return u.Scheme + "://" + u.Host
}

// newResponseError returns the error of an error response.
func newResponseError(response *http.Response) error {
	const maxProblem = 64 << 10
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxProblem)) // On an error, body holds what was read before it.
	r := &responseError{status: response.StatusCode}
	var p api.Problem
	if json.Unmarshal(body, &p) == nil && p.Detail != "" {
		r.text = printable(fmt.Sprintf("%s (%d): %s", cmp.Or(p.Title, http.StatusText(p.Status)), response.StatusCode, p.Detail))
	} else {
		r.text = printable(fmt.Sprintf("the server answers %s without a message; is --server the URL of HealthScope's status REST API?", response.Status))
	}
	if r.status == http.StatusUnauthorized {
		r.text += "; give a token with --token-file, --kubeconfig or --context"
	}
	return r
}
