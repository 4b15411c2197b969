package commands

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/rest"
)

// connectToServer returns the URL of the server that the flags name, and a transport that sends the token that they name.
func (f *statusFlags) connectToServer() (*url.URL, http.RoundTripper, error) {
	server, err := url.Parse(f.server)
	if err != nil || server.Host == "" || server.Scheme != "http" && server.Scheme != "https" {
		return nil, nil, errors.New("--server must be an http or https URL, such as https://healthscope.example.com")
	}
	if server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		return nil, nil, errors.New("--server must be scheme, host, port and path only: a token comes by --token-file")
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: f.timeout,
		DialContext: (&net.Dialer{Timeout: f.timeout}).DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if f.caFile != "" {
		data, err := os.ReadFile(f.caFile)
		if err != nil {
			return nil, nil, errors.Wrap(err, "cannot read --ca-file")
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(data) {
			return nil, nil, errors.Errorf("cannot use --ca-file %q: it holds no certificate", f.caFile)
		}
	}
	authenticated, err := f.authenticate(transport)
	if err != nil {
		return nil, nil, err
	}
	if authenticated != http.RoundTripper(transport) && server.Scheme == "http" && !isLoopback(server.Hostname()) {
		return nil, nil, errors.Errorf("--server is %q; it must be https, or on this machine: a token must not go over the network in the clear", f.server)
	}
	return server, authenticated, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// authenticate returns a transport that sends the token that the flags name. Without such flags it returns transport itself.
func (f *statusFlags) authenticate(transport http.RoundTripper) (http.RoundTripper, error) {
	fromKubeconfig := f.kubeconfig != "" || f.context != ""
	switch {
	case f.tokenFile != "" && fromKubeconfig:
		return nil, errors.New("--token-file and --kubeconfig or --context are given; one of them must say which token to use")
	case f.tokenFile != "":
		fromFile := tokenTransport{next: transport, token: func(context.Context) (string, error) { return readToken("token-file", f.tokenFile) }}
		_, err := readToken("token-file", f.tokenFile)
		return fromFile, err
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

// tokenTransport sends a bearer token, which it gets for each request, because the token may be renewed.
type tokenTransport struct {
	token func(ctx context.Context) (string, error)
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := t.token(r.Context())
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
