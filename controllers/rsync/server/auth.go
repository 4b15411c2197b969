package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/healthscope/healthscope/controllers/rsync/rpc"
	"github.com/healthscope/healthscope/healthscope/api"
)

// The verbs of the rights. The nonResourceURL of a right is the path of a method.
const (
	// verbDeploy lets a caller add events.
	verbDeploy = "deploy"
	// verbWatch lets a caller be notified.
	verbWatch = "watch"
)

// kubernetesPrefix is the prefix of the users and groups that Kubernetes reserves. A client certificate must not name one.
const kubernetesPrefix = "system:"

// interceptUnary limits the time of a unary call and the number of such calls, and rejects calls for which the caller has no right.
// The health service needs none.
func (s *Server) interceptUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if !s.requests.TryAcquire(1) {
		return nil, status.Errorf(codes.ResourceExhausted, "%d calls are handled already; try again", maxRequests)
	}
	defer s.requests.Release(1)
	if strings.HasPrefix(info.FullMethod, "/"+grpc_health_v1.Health_ServiceDesc.ServiceName+"/") {
		return handler(ctx, request)
	}
	verb := verbDeploy
	if info.FullMethod == rpc.ReadyNotify_Unsubscribe_FullMethodName {
		verb = verbWatch
	}
	caller, err := s.authorize(ctx, verb, info.FullMethod)
	if err != nil {
		return nil, err
	}
	return handler(withCaller(ctx, caller), request)
}

// authorize returns the name of the caller if it may call a method; empty when there is no Guard.
func (s *Server) authorize(ctx context.Context, verb, method string) (string, error) {
	if s.options.Guard == nil {
		return "", nil
	}
	caller, err := s.authenticate(ctx)
	if err != nil {
		return "", err
	}
	allowed, err := s.options.Guard.Authorize(ctx, caller, api.Access{Verb: verb, Path: method})
	if err != nil {
		return "", s.guardError(ctx, err)
	}
	if !allowed {
		return "", status.Errorf(codes.PermissionDenied, "user %q may not %s the URL %q", caller.Name, verb, method)
	}
	return caller.Name, nil
}

// authenticate returns the caller of a method: the subject of the client certificate, or otherwise the owner of the bearer token.
func (s *Server) authenticate(ctx context.Context) (api.Caller, error) {
	p, _ := peer.FromContext(ctx)
	if caller, ok := callerFromCertificate(p); ok {
		if hasReservedName(caller) {
			return caller, status.Errorf(codes.Unauthenticated, "the certificate names user %q and groups %q: none may begin with %q", caller.Name, caller.Groups, kubernetesPrefix)
		}
		return caller, nil
	}
	headers := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(headers) != 1 {
		return api.Caller{}, status.Error(codes.Unauthenticated, "there is no client certificate and no bearer token; send one of them")
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return api.Caller{}, status.Error(codes.Unauthenticated, `the metadata "authorization" must be "Bearer <token>"`)
	}
	r := (&http.Request{RemoteAddr: p.Addr.String()}).WithContext(ctx)
	caller, known, err := s.options.Guard.Authenticate(r, token)
	if err != nil {
		return caller, s.guardError(ctx, err)
	}
	if !known {
		return caller, status.Error(codes.Unauthenticated, "the bearer token is not accepted: it may have expired, or be of another cluster")
	}
	return caller, nil
}

// callerFromCertificate returns the caller that a verified certificate names. As in Kubernetes, the common name is the user, and
// the organizations are the groups.
func callerFromCertificate(p *peer.Peer) (api.Caller, bool) {
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 {
		return api.Caller{}, false
	}
	subject := info.State.VerifiedChains[0][0].Subject
	return api.Caller{Name: subject.CommonName, Groups: subject.Organization}, true
}

// hasReservedName reports whether the user or a group of a certificate is empty, or reserved for Kubernetes. The issuer of the
// certificates of rsync's callers need not be an administrator of Kubernetes.
func hasReservedName(caller api.Caller) bool {
	for _, name := range append([]string{caller.Name}, caller.Groups...) {
		if name == "" || strings.HasPrefix(name, kubernetesPrefix) {
			return true
		}
	}
	return false
}

// guardError returns the status of a call that could not be authenticated or authorized because the Guard failed.
func (s *Server) guardError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, api.ErrTooMany):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, api.ErrBusy):
		return status.Error(codes.Unavailable, err.Error())
	}
	s.options.Logger.Error(err, "Cannot find out who a caller is and what they may do")
	return status.Error(codes.Unavailable, "the Kubernetes API server cannot be asked who you are and what you may do; the log says why")
}

// callerKey is the key of the caller's name in a context.
type callerKey struct{}

func withCaller(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, callerKey{}, name)
}

func callerOf(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}
