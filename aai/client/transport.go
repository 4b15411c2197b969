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

// files are the certificates that a transport works with, by their paths; empty for none.
type files struct{ ca, cert, key string }

// stamp says which contents of a file were read.
type stamp struct {
	changed time.Time
	size    int64
}

// reloading is a transport that reads its certificates again when their files
// change, as they do when a Secret is renewed. While the new files cannot be
// used, those that were read last stay in use.
type reloading struct {
	files files

	mu      sync.Mutex // guards the rest
	stamps  []stamp
	current *http.Transport
}

// newReloading returns a transport, or an error when the files cannot be used.
func newReloading(f files) (*reloading, error) {
	r := &reloading{files: f}
	r.stamps = r.read()
	current, err := newTransport(f)
	r.current = current
	return r, err
}

// RoundTrip sends a request with the certificates that are in the files now.
func (r *reloading) RoundTrip(request *http.Request) (*http.Response, error) {
	return r.transport().RoundTrip(request)
}

// CloseIdleConnections closes connections that are not in use.
func (r *reloading) CloseIdleConnections() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current.CloseIdleConnections()
}

// transport returns the transport for the files as they are now.
func (r *reloading) transport() *http.Transport {
	now := r.read()
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Equal(now, r.stamps) {
		return r.current
	}
	r.stamps = now
	if renewed, err := newTransport(r.files); err == nil {
		r.current.CloseIdleConnections()
		r.current = renewed
	}
	return r.current
}

// read returns the stamps of the files.
func (r *reloading) read() []stamp {
	var stamps []stamp
	for _, name := range []string{r.files.ca, r.files.cert, r.files.key} {
		var s stamp
		if info, err := os.Stat(name); err == nil {
			s = stamp{changed: info.ModTime(), size: info.Size()}
		}
		stamps = append(stamps, s)
	}
	return stamps
}

const (
	// pingAfter is how long a connection may be silent before it is asked whether it is alive, and pingTimeout how long the answer may take.
	pingAfter, pingTimeout = 8 * time.Second, 5 * time.Second
)

// newTransport returns a transport that verifies certificates, with what is in the files.
func newTransport(f files) (*http.Transport, error) {
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
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}, // Else a connection that has fallen silent is used until TCP gives it up.
		MaxIdleConns:          32,
		MaxIdleConnsPerHost:   32,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}, nil
}
