package server

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/healthscope/healthscope/controllers/rsync/rpc"
	"github.com/healthscope/healthscope/healthscope/api"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// Limits of the resources that callers can use.
const (
	// maxConnections is the maximum number of connections, and maxStreams that of concurrent calls on one connection.
	maxConnections, maxStreams = 500, 100
	// maxRequests is the maximum number of concurrent unary calls, and maxAlerts that of streams of notifications.
	maxRequests, maxAlerts = 64, 1000
	// maxMessage is the maximum size of a message, and maxHeaders that of its headers, of which a token takes most, in bytes.
	maxMessage, maxHeaders = 16 << 10, 64 << 10
	// requestTimeout is the maximum duration of a unary call, even if the deadline of the caller is later.
	requestTimeout = 30 * time.Second
	// handshakeTimeout is how long a caller may take to establish a connection.
	handshakeTimeout = 10 * time.Second
	// pingInterval is the idle time after which the server pings a caller, and pingTimeout is how long the caller may take to
	// answer.
	pingInterval, pingTimeout = time.Minute, 20 * time.Second
	// minPingInterval is the shortest interval at which callers may ping the server.
	minPingInterval = 10 * time.Second
	// drainTimeout is how long a stop waits for the calls in flight.
	drainTimeout = 10 * time.Second
)

// Options configure a server.
type Options struct {
	// Address is the address to listen on, host:port.
	Address string
	// TLS is the configuration of TLS. Without it, the server does not encrypt connections.
	TLS *tls.Config
	// Guard authenticates and authorizes callers. Without it, every caller is allowed.
	Guard api.Guard
	// Store is the etcd with the AppContexts.
	Store *appcontext.Store
	// Enqueue adds an event to the queue of a context. from is the context that an update replaces. When it returns nil, the event
	// is in etcd.
	Enqueue func(ctx context.Context, id string, event deploy.Event, from string) error
	// Logger receives the log messages of the server.
	Logger logr.Logger
}

// Server serves rsync's gRPC services. It runs once.
type Server struct {
	options Options
	// requests limits the number of concurrent unary calls.
	requests *semaphore.Weighted
	alerts   *alerts
	// listening is closed when Start has tried to listen; address is set before.
	listening chan struct{}
	address   string
}

// New returns a server. It does not listen before Start.
func New(o Options) *Server {
	s := &Server{options: o, requests: semaphore.NewWeighted(maxRequests), listening: make(chan struct{})}
	s.alerts = &alerts{server: s, slots: semaphore.NewWeighted(maxAlerts), streams: map[topic]*alertStream{}}
	return s
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves.
func (*Server) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It listens and serves until ctx ends. Then it waits for calls in flight, for at most
// drainTimeout.
func (s *Server) Start(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.options.Address)
	if err == nil {
		s.address = listener.Addr().String()
	}
	close(s.listening)
	if err != nil {
		return errors.Wrapf(err, "cannot listen on %q for rsync's gRPC server", s.options.Address)
	}
	server, healthServer := s.newGRPC()
	served := make(chan error, 1)
	go func() { served <- server.Serve(netutil.LimitListener(listener, maxConnections)) }()
	s.options.Logger.Info("Serving rsync over gRPC", "address", s.address, "tls", s.options.TLS != nil)
	select {
	case err := <-served:
		return errors.Wrapf(err, "cannot serve rsync's gRPC server on %q", s.address)
	case <-ctx.Done():
	}
	healthServer.Shutdown()
	s.alerts.stop()
	stopTimer := time.AfterFunc(drainTimeout, server.Stop)
	defer stopTimer.Stop()
	server.GracefulStop()
	return errors.Wrap(<-served, "cannot stop rsync's gRPC server")
}

// Addr waits until the server listens, and returns its address; empty when it cannot listen, or ctx ends first.
func (s *Server) Addr(ctx context.Context) string {
	select {
	case <-s.listening:
		return s.address
	case <-ctx.Done():
		return ""
	}
}

// newGRPC returns the gRPC server of Start, and its health service.
func (s *Server) newGRPC() (*grpc.Server, *health.Server) {
	options := []grpc.ServerOption{
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeaders), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingInterval, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.interceptUnary),
	}
	if s.options.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.options.TLS)))
	}
	server := grpc.NewServer(options...)
	e := &events{options: s.options}
	rpc.RegisterInstallappServer(server, e)
	rpc.RegisterUpdateappServer(server, e)
	rpc.RegisterReadyNotifyServer(server, s.alerts)
	healthServer := health.NewServer()
	for name := range server.GetServiceInfo() {
		healthServer.SetServingStatus(name, grpc_health_v1.HealthCheckResponse_SERVING)
	}
	grpc_health_v1.RegisterHealthServer(server, healthServer)
	return server, healthServer
}
