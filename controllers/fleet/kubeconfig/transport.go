package kubeconfig

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Timeouts of connections to a member.
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	idleTimeout      = 90 * time.Second
	// pingAfter is how long a connection receives nothing before a ping is sent, and pingTimeout how long the answer may take. A peer that
	// does not answer is detected after their sum.
	pingAfter   = 8 * time.Second
	pingTimeout = 5 * time.Second
)

const (
	// maxHeader is the maximum size of an answer's header in bytes.
	maxHeader = 64 << 10
	// idleConnections is the maximum number of idle connections to a server without HTTP/2, as in client-go.
	idleConnections = 25
)

// newTransport returns a transport, with its connection pool, for one server. It ignores proxies in the environment.
func newTransport(config *tls.Config, disableCompression bool) *http.Transport {
	// Pings check HTTP/2 connections. TCP keep-alive checks those of HTTP/1.1, which proxies in front of API servers may use.
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
