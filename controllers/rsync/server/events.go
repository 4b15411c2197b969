package server

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/healthscope/healthscope/controllers/rsync/rpc"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// accepted is the message of a response when the event is in etcd.
const accepted = "the event is accepted"

// events adds events to the queues of contexts.
type events struct {
	rpc.UnimplementedInstallappServer
	rpc.UnimplementedUpdateappServer

	options Options
}

// InstallApp implements rpc.InstallappServer.
func (e *events) InstallApp(ctx context.Context, r *rpc.InstallAppRequest) (*rpc.InstallAppResponse, error) {
	ok, message, err := e.add(ctx, r.GetAppContext(), deploy.EventInstantiate, "")
	return &rpc.InstallAppResponse{AppContextInstalled: ok, AppContextInstallMessage: message}, err
}

// UninstallApp implements rpc.InstallappServer.
func (e *events) UninstallApp(ctx context.Context, r *rpc.UninstallAppRequest) (*rpc.UninstallAppResponse, error) {
	ok, message, err := e.add(ctx, r.GetAppContext(), deploy.EventTerminate, "")
	return &rpc.UninstallAppResponse{AppContextUninstalled: ok, AppContextUninstallMessage: message}, err
}

// ReadAppContext implements rpc.InstallappServer.
func (e *events) ReadAppContext(ctx context.Context, r *rpc.ReadAppContextRequest) (*rpc.ReadAppContextResponse, error) {
	ok, message, err := e.add(ctx, r.GetAppContext(), deploy.EventRead, "")
	return &rpc.ReadAppContextResponse{AppContextReadSuccessful: ok, AppContextReadMessage: message}, err
}

// UpdateApp implements rpc.UpdateappServer.
func (e *events) UpdateApp(ctx context.Context, r *rpc.UpdateAppRequest) (*rpc.UpdateAppResponse, error) {
	ok, message, err := e.add(ctx, r.GetUpdateToAppContext(), deploy.EventUpdate, r.GetUpdateFromAppContext())
	return &rpc.UpdateAppResponse{AppContextUpdated: ok, AppContextUpdateMessage: message}, err
}

// RollbackApp implements rpc.UpdateappServer.
func (e *events) RollbackApp(ctx context.Context, r *rpc.RollbackAppRequest) (*rpc.RollbackAppResponse, error) {
	ok, message, err := e.add(ctx, r.GetRollbackToAppContext(), deploy.EventUpdate, r.GetRollbackFromAppContext())
	return &rpc.RollbackAppResponse{AppContextRolledback: ok, AppContextRollbackMessage: message}, err
}

// add adds an event to the queue of a context, and reports whether the event was accepted. The message is the reason if it was
// refused. An error means that the context cannot be read or written.
func (e *events) add(ctx context.Context, id string, event deploy.Event, from string) (ok bool, message string, err error) {
	err = e.options.Enqueue(ctx, id, event, from)
	logger := e.options.Logger.WithValues("context", id, "event", event, "from", from, "caller", callerOf(ctx))
	if err == nil {
		logger.Info("Accepted an event")
		return true, accepted, nil
	}
	logger.Info("Did not accept an event", "problem", err.Error())
	if code := codeOf(ctx, err); code != codes.OK {
		return false, "", status.Error(code, err.Error())
	}
	return false, err.Error(), nil
}

// codeOf returns the gRPC code of an error that prevents a response. It returns OK if the context was read and the event was
// refused.
func codeOf(ctx context.Context, err error) codes.Code {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Code()
	}
	switch {
	case errors.Is(err, appcontext.ErrNotFound):
		return codes.NotFound
	case errors.Is(err, appcontext.ErrInvalid):
		return codes.InvalidArgument
	case errors.Is(err, appcontext.ErrMalformed):
		return codes.FailedPrecondition
	case errors.Is(err, appcontext.ErrConflict):
		return codes.Aborted
	case errors.Is(err, appcontext.ErrUnavailable), errors.Is(err, appcontext.ErrDenied), errors.Is(err, appcontext.ErrNoSpace), errors.Is(err, appcontext.ErrClosed):
		return codes.Unavailable
	default:
		return codes.OK
	}
}
