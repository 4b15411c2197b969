package kubeconfig

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Times of connections to a member.
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	// pingAfter is how long a connection is silent before it is asked whether it is alive, and pingTimeout how long the answer may take:
	// together they are when the loss of a peer that says nothing is noticed.
	pingAfter   = 8 * time.Second
	pingTimeout = 5 * time.Second
)

const (
	// maxHeader is the size in bytes of an answer's header.
	maxHeader = 64 << 10
	// idleConnections are those that are kept of a server without HTTP/2, as client-go does.
	idleConnections = 25
)

// newTransport returns a pool of connections to one server. It takes no proxy from the environment.
func newTransport(config *tls.Config, disableCompression bool) *http.Transport {
	// HTTP/2 is asked by pings whether it is alive, HTTP/1.1, which proxies in front of API servers may speak, by those of TCP.
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: pingAfter, Interval: time.Second, Count: int(pingTimeout / time.Second)}}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    handshakeTimeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DisableCompression:     disableCompression,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        idleTimeout,
	}
}
