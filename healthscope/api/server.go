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

// Limits of a connection, so that slow or broken callers cannot block the server.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = time.Minute
	maxHeaderBytes    = 64 << 10
	// drainTimeout is how long a stop waits for requests in progress. After that, it closes their connections.
	drainTimeout = 10 * time.Second
)

// ServerOptions are the options of a Server.
type ServerOptions struct {
	// Address is the address to listen on, as host:port. Port 0 means any free port. Required.
	Address string
	// Handler serves requests. Required.
	Handler http.Handler
	// TLS enables https. It holds the certificate, or a function that returns it. Default: http.
	TLS *tls.Config
	// Logger logs the start and the end of the server, and connections that fail. Default: no logs.
	Logger *slog.Logger
}

// Server serves a handler over HTTP.
type Server struct{ options ServerOptions }

// NewServer returns a server. It does not listen before it runs.
func NewServer(o ServerOptions) *Server {
	o.Logger = orDiscard(o.Logger)
	if o.TLS != nil {
		o.TLS = o.TLS.Clone()
		o.TLS.MinVersion = max(o.TLS.MinVersion, tls.VersionTLS12)
	}
	return &Server{o}
}

// Run listens and serves until ctx ends. It then refuses connections, waits up to ten seconds for requests in progress, closes the connections
// that remain, and returns. It returns an error when it cannot listen or cannot continue to serve.
func (s *Server) Run(ctx context.Context) error {
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	return s.serve(ctx, listener)
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.options.Address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q for the status API: %w", s.options.Address, err)
	}
	return listener, nil
}

// serve serves on a listener until ctx ends, and then drains.
func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	detached := context.WithoutCancel(ctx) // Requests in progress may end after ctx. Streams would not end by themselves: they watch drainKey.
	server := s.newHTTPServer(context.WithValue(detached, drainKey{}, ctx.Done()))
	var cause error
	served := make(chan struct{})
	go func() {
		defer close(served)
		if s.options.TLS == nil {
			cause = server.Serve(listener)
		} else {
			cause = server.ServeTLS(listener, "", "")
		}
	}()
	s.options.Logger.InfoContext(ctx, "Serving the status API", "address", listener.Addr().String())
	select {
	case <-served:
		return errors.Join(fmt.Errorf("cannot serve the status API on %q: %w", s.options.Address, cause), server.Close())
	case <-ctx.Done():
	}
	s.options.Logger.InfoContext(ctx, "Stopping the status API")
	err := s.drain(detached, server)
	<-served
	return err
}

// newHTTPServer returns the server behind Run; requests is the context that requests descend from.
func (s *Server) newHTTPServer(requests context.Context) *http.Server {
	return &http.Server{
		Handler:           s.options.Handler,
		TLSConfig:         s.options.TLS,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
}

// drain stops a server gracefully, and by force after the time limit. It does not report requests that take longer as an error of the program.
func (s *Server) drain(ctx context.Context, server *http.Server) error {
	limited, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	err := server.Shutdown(limited)
	if limited.Err() == nil {
		return err
	}
	s.options.Logger.InfoContext(ctx, "Cutting off the requests to the status API that are still under way", "after", drainTimeout)
	return server.Close()
}
