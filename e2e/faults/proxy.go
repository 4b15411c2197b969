package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// headerTimeout is the maximum time in which a client must send the header of a request.
const headerTimeout = 10 * time.Second

// Proxy stands between clients and one API server. It is safe for concurrent use.
type Proxy struct {
	server *http.Server
	host   string
	served chan error

	mu       sync.Mutex
	delay    time.Duration
	refuse   func(*http.Request) int
	requests map[string]int
	// cut is closed while connections are cut.
	cut chan struct{}
	// watches are the watches that are open.
	watches map[*watchBody]struct{}
	// expired are the paths whose next watch is refused, because its resourceVersion is too old.
	expired map[string]struct{}
}

// Start starts a proxy to the API server of a client configuration. The proxy uses the credentials of the configuration.
func Start(config *rest.Config) (*Proxy, error) {
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot read the address of API server %q: %w", config.Host, err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for API server %q: %w", config.Host, err)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the clients of API server %q: %w", config.Host, err)
	}
	p := &Proxy{
		host: "http://" + listener.Addr().String(), served: make(chan error, 1),
		requests: map[string]int{}, watches: map[*watchBody]struct{}{}, expired: map[string]struct{}{},
	}
	p.cut = make(chan struct{})
	p.server = &http.Server{Handler: p.handler(target, transport), ReadHeaderTimeout: headerTimeout}
	go func() { p.served <- p.server.Serve(listener) }()
	return p, nil
}

// Stop ends the proxy and all connections through it.
func (p *Proxy) Stop() error {
	p.Cut()
	err := p.server.Close()
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// Config returns a client configuration for the API server through the proxy, without a client-side rate limit.
func (p *Proxy) Config() *rest.Config {
	return &rest.Config{Host: p.host, QPS: -1}
}

// Delay sets how long each request waits from now on before it is sent to the API server.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Refuse sets a function that decides about each request from now on. If it returns an HTTP status other than 0, the proxy
// responds with that status instead of forwarding the request. Nil refuses nothing.
func (p *Proxy) Refuse(status func(*http.Request) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = status
}

// Cut breaks the connections of all running requests, and of every new request, until Mend.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !closed(p.cut) {
		close(p.cut)
	}
}

// Mend ends the effect of Cut.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if closed(p.cut) {
		p.cut = make(chan struct{})
	}
}

// ExpireWatches ends every open watch with 410 Expired, like an API server that has compacted the resourceVersion from which the
// watch continues. A watch in another encoding than JSON ends without the error. For each path, the next watch that continues
// from a resourceVersion is also refused with 410.
func (p *Proxy) ExpireWatches() {
	p.mu.Lock()
	open := maps.Clone(p.watches)
	for w := range open {
		p.expired[w.path] = struct{}{}
	}
	p.mu.Unlock()
	for w := range open {
		w.expire()
	}
}

// Requests returns the number of requests so far, by method and path, such as "GET /api/v1/pods". The method of a watch is
// WATCH.
func (p *Proxy) Requests() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.requests)
}

// handler returns the handler for the requests of the proxy's clients.
func (p *Proxy) handler(target *url.URL, transport http.RoundTripper) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// Kubernetes compresses streaming lists from 1.37 on. The transport decompresses a response only if it has set this
			// header itself.
			r.Out.Header.Del("Accept-Encoding")
		},
		Transport:     transport,
		FlushInterval: -1, // Events of a watch must not wait in a buffer.
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusOK && isWatch(r.Request) {
				r.Body = p.watch(r)
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cut, delay, status := p.admit(r)
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-cut:
				cancel()
			case <-ctx.Done():
			}
		}()
		if !pause(ctx, delay) || closed(cut) {
			panic(http.ErrAbortHandler) // The connection breaks.
		}
		if status != 0 {
			writeStatus(w, status)
			return
		}
		forward.ServeHTTP(w, r.WithContext(ctx))
	})
}

// admit counts a request. It returns the channel that is closed when the request is cut, the delay, and the HTTP status with
// which to refuse the request; 0 if it is not refused.
func (p *Proxy) admit(r *http.Request) (cut <-chan struct{}, delay time.Duration, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	method := r.Method
	if isWatch(r) {
		method = "WATCH"
	}
	p.requests[method+" "+r.URL.Path]++
	if p.refuse != nil {
		status = p.refuse(r)
	}
	if _, old := p.expired[r.URL.Path]; old && status == 0 && continues(r) {
		delete(p.expired, r.URL.Path)
		status = http.StatusGone
	}
	return p.cut, p.delay, status
}

// closed reports whether a channel on which nothing is sent is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// isWatch reports whether a request asks for a watch.
func isWatch(r *http.Request) bool {
	watch, err := strconv.ParseBool(r.URL.Query().Get("watch"))
	return err == nil && watch
}

// continues reports whether a request is a watch that names the resourceVersion from which it continues.
func continues(r *http.Request) bool {
	version := r.URL.Query().Get("resourceVersion")
	return isWatch(r) && version != "" && version != "0" && r.URL.Query().Get("sendInitialEvents") == ""
}

// pause waits. It returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
