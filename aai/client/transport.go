package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// tlsFiles are the paths of the certificates that a transport uses; empty for none.
type tlsFiles struct{ ca, cert, key string }

// fileVersion identifies the content of a file by its modification time and size.
type fileVersion struct {
	modTime time.Time
	size    int64
}

// reloadingTransport is a transport that reads its certificates again when their files
// change, for instance when a Secret is renewed. While the new files are invalid, it
// uses the last valid certificates.
type reloadingTransport struct {
	tlsFiles tlsFiles

	mu sync.Mutex // guards the rest
	// versions are those of the files that were last read; nil before the first request.
	versions []fileVersion
	current  *http.Transport
}

// newReloadingTransport returns a transport, or an error when the files cannot be used.
func newReloadingTransport(f tlsFiles) (*reloadingTransport, error) {
	current, err := newTransport(f)
	return &reloadingTransport{tlsFiles: f, current: current}, err
}

// RoundTrip sends a request with the current certificates.
func (r *reloadingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.currentTransport().RoundTrip(req)
}

// CloseIdleConnections closes connections that are not in use.
func (r *reloadingTransport) CloseIdleConnections() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current.CloseIdleConnections()
}

// currentTransport returns the transport for the current content of the files.
func (r *reloadingTransport) currentTransport() *http.Transport {
	now := r.fileVersions()
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(now, r.versions) {
		return r.current
	}
	r.versions = now
	if renewed, err := newTransport(r.tlsFiles); err == nil {
		r.current.CloseIdleConnections()
		r.current = renewed
	}
	return r.current
}

// fileVersions returns the versions of the files.
func (r *reloadingTransport) fileVersions() []fileVersion {
	var versions []fileVersion
	for _, name := range []string{r.tlsFiles.ca, r.tlsFiles.cert, r.tlsFiles.key} {
		var s fileVersion
		if info, err := os.Stat(name); err == nil {
			s = fileVersion{modTime: info.ModTime(), size: info.Size()}
		}
		versions = append(versions, s)
	}
	return versions
}

const (
	// pingAfter is the time without traffic after which a connection is checked with a ping. pingTimeout is the maximum time until the response to a ping.
	pingAfter, pingTimeout = 8 * time.Second, 5 * time.Second
)

// newTransport returns a transport that verifies certificates and uses the content of the files.
func newTransport(f tlsFiles) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("cannot read CAFile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cannot find a PEM certificate in CAFile %q", f.ca)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("cannot use CertFile %q with KeyFile %q: %w", f.cert, f.key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   10 * time.Second,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}, // Without pings, a dead connection is used until TCP gives it up.
		MaxIdleConns:          32,
		MaxIdleConnsPerHost:   32,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}, nil
}
