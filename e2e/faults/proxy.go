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

// headerTimeout bounds how long a client may take to send the head of a request.
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

// Start starts a proxy to the API server that a configuration leads to, with the configuration's credentials.
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

// Config returns how to reach the API server through the proxy, without a limit on the client's side.
func (p *Proxy) Config() *rest.Config {
	return &rest.Config{Host: p.host, QPS: -1}
}

// Delay makes every request from now on wait so long before the API server gets it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Refuse makes every request from now on fail for which status does not return
// 0, with the HTTP status it returns. Nil refuses nothing.
func (p *Proxy) Refuse(status func(*http.Request) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = status
}

// Cut breaks all connections, and every new one as soon as it is made, until Mend.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !closed(p.cut) {
		close(p.cut)
	}
}

// Mend ends what Cut began.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if closed(p.cut) {
		p.cut = make(chan struct{})
	}
}

// ExpireWatches ends every open watch with 410 Expired, as an API server does
// that has compacted what the watch was to continue from. The next watch of
// each that names a resourceVersion is refused with 410, too.
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

// Requests returns how many requests have come so far, by method and path, such
// as "GET /api/v1/pods". The method of a watch is WATCH.
func (p *Proxy) Requests() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.requests)
}

// handler returns what serves the proxy's clients.
func (p *Proxy) handler(target *url.URL, transport http.RoundTripper) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// Kubernetes compresses streaming lists from 1.37 on. The transport decompresses what it has asked for itself.
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

// admit counts a request and says what is to be done to it.
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

// continues reports whether a request is a watch that continues from a resourceVersion that it names.
func continues(r *http.Request) bool {
	version := r.URL.Query().Get("resourceVersion")
	return isWatch(r) && version != "" && version != "0" && r.URL.Query().Get("sendInitialEvents") == ""
}

// pause waits, and reports whether ctx lasted.
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
