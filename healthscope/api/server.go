package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of a connection. They keep slow or broken callers from holding on to the server.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = time.Minute
	maxHeaderBytes    = 64 << 10
	// drainTimeout bounds how long a stop waits for the requests that are under way. What takes longer is cut off.
	drainTimeout = 10 * time.Second
)

// ServerOptions say what a Server serves, and where.
type ServerOptions struct {
	// Address is where to listen, host:port, where port 0 means any free one. Required.
	Address string
	// Handler answers requests. Required.
	Handler http.Handler
	// TLS makes the server speak https. It has the certificate, or the function that knows it. Default: http.
	TLS *tls.Config
	// Logger logs the server's begin and end, and connections that fail. Default: nothing is logged.
	Logger *slog.Logger
}

// Server serves a handler over HTTP.
type Server struct {
	address string
	handler http.Handler
	tls     *tls.Config
	log     *slog.Logger
}

// NewServer returns a server. Nothing is listened on before it runs.
func NewServer(o ServerOptions) *Server {
	s := &Server{address: o.Address, handler: o.Handler, log: orDiscard(o.Logger)}
	if o.TLS != nil {
		s.tls = o.TLS.Clone()
		s.tls.MinVersion = max(s.tls.MinVersion, tls.VersionTLS12)
	}
	return s
}

// Run listens and serves until ctx ends. Then it refuses connections, waits ten
// seconds at most for the requests that are under way, cuts off what takes longer,
// and returns: nil, or an error when it could not listen, or could not continue to serve.
func (s *Server) Run(ctx context.Context) error {
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	return s.serve(ctx, listener)
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q for the status API: %w", s.address, err)
	}
	return listener, nil
}

// serve serves on a listener until ctx ends, and then drains.
func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	detached := context.WithoutCancel(ctx) // Requests outlive ctx: that is what draining means. Streams would never end, and so they look.
	server := s.newHTTPServer(context.WithValue(detached, drainKey{}, ctx.Done()))
	var cause error
	served := make(chan struct{})
	go func() {
		defer close(served)
		if s.tls == nil {
			cause = server.Serve(listener)
		} else {
			cause = server.ServeTLS(listener, "", "")
		}
	}()
	s.log.InfoContext(ctx, "Serving the status API", "address", listener.Addr().String())
	select {
	case <-served:
		return errors.Join(fmt.Errorf("cannot serve the status API on %q: %w", s.address, cause), server.Close())
	case <-ctx.Done():
	}
	s.log.InfoContext(ctx, "Stopping the status API")
	err := s.drain(detached, server)
	<-served
	return err
}

// newHTTPServer returns the server behind Run; requests is the context that requests descend from.
func (s *Server) newHTTPServer(requests context.Context) *http.Server {
	return &http.Server{
		Handler:           s.handler,
		TLSConfig:         s.tls,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
}

// drain stops a server gracefully, or else by force. That a request takes long is no reason for the program to fail.
func (s *Server) drain(ctx context.Context, server *http.Server) error {
	limited, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	err := server.Shutdown(limited)
	if limited.Err() == nil {
		return err
	}
	s.log.InfoContext(ctx, "Cutting off the requests to the status API that are still under way", "after", drainTimeout)
	return server.Close()
}
