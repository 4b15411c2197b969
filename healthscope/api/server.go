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

// Server serves a handler over HTTP.
type Server struct {
	// Address is the address to listen on, as host:port. Port 0 means any free port. Required.
	Address string
	// Handler serves requests. Required.
	Handler http.Handler
	// TLS enables https. It holds the certificate, or a function that returns it. Default: http.
	TLS *tls.Config
	// Logger logs the start and the end of the server, and connections that fail. Default: no logs.
	Logger *slog.Logger
}

// Run listens and serves until ctx ends. It then refuses connections, waits up to ten seconds for requests in progress, closes the connections
// that remain, and returns. It returns an error when it cannot listen or cannot continue to serve.
func (s *Server) Run(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("cannot listen on %q for the status API: %w", s.Address, err)
	}
	return s.serve(ctx, listener)
}

// serve serves on a listener until ctx ends. It then drains, by force after the time limit: requests that take longer are not an error of the
// program.
func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	log := orDiscard(s.Logger)
	detached := context.WithoutCancel(ctx) // Requests in progress may end after ctx. Streams would not end by themselves: they watch drainKey.
	server := s.newHTTPServer(context.WithValue(detached, drainKey{}, ctx.Done()), log)
	served := make(chan error, 1)
	go func() {
		if server.TLSConfig == nil {
			served <- server.Serve(listener)
		} else {
			served <- server.ServeTLS(listener, "", "")
		}
	}()
	log.InfoContext(ctx, "Serving the status API", "address", listener.Addr().String())
	select {
	case err := <-served:
		return errors.Join(fmt.Errorf("cannot serve the status API on %q: %w", s.Address, err), server.Close())
	case <-ctx.Done():
	}
	log.InfoContext(ctx, "Stopping the status API")
	limited, cancel := context.WithTimeout(detached, drainTimeout)
	defer cancel()
	err := server.Shutdown(limited)
	if limited.Err() != nil {
		log.InfoContext(detached, "Cutting off the requests to the status API that are still under way", "after", drainTimeout)
		err = server.Close()
	}
	if stopped := <-served; err == nil && !errors.Is(stopped, http.ErrServerClosed) {
		return stopped
	}
	return err
}

// newHTTPServer returns the server behind Run; requests is the context that requests descend from.
func (s *Server) newHTTPServer(requests context.Context, log *slog.Logger) *http.Server {
	server := &http.Server{
		Handler:           s.Handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		BaseContext:       func(net.Listener) context.Context { return requests },
	}
	if s.TLS != nil {
		server.TLSConfig = s.TLS.Clone()
		server.TLSConfig.MinVersion = max(s.TLS.MinVersion, tls.VersionTLS12)
	}
	return server
}
