package server

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/util/workqueue"

	"github.com/healthscope/healthscope/controllers/rsync/rpc"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

const (
	// etcdRetry is the pause before the watch of etcd is restarted after it has ended.
	etcdRetry = 2 * time.Second
	// maxName is the maximum length of the name of a client, and of the id of a context, in bytes.
	maxName = 253
)

// The reasons why the server ends a stream.
var (
	errReplaced     = errors.New("a later stream of the same client for the same context has replaced this one")
	errUnsubscribed = errors.New("the client has unsubscribed")
	errStopping     = errors.New("the server is stopping; connect again")
)

// alerts notifies clients of bundles. There is at most one stream for a caller, client name and context.
type alerts struct {
	rpc.UnimplementedReadyNotifyServer

	server *Server
	// slots bounds the number of streams.
	slots *semaphore.Weighted

	mu       sync.Mutex
	streams  map[topic]*alertStream
	stopping bool
}

// topic identifies a stream. It includes the caller, so that callers cannot end the streams of others.
type topic struct{ caller, client, context string }

// alertStream is the stream of a client for a context.
type alertStream struct{ cancel context.CancelCauseFunc }

// Alert implements rpc.ReadyNotifyServer.
func (a *alerts) Alert(request *rpc.Topic, stream grpc.ServerStreamingServer[rpc.Notification]) error {
	caller, err := a.server.authorize(stream.Context(), verbWatch, rpc.ReadyNotify_Alert_FullMethodName)
	if err != nil {
		return err
	}
	if err := checkTopic(request); err != nil {
		return err
	}
	if !a.slots.TryAcquire(1) {
		return status.Errorf(codes.ResourceExhausted, "there are %d streams of notifications already", maxAlerts)
	}
	defer a.slots.Release(1)
	ctx, end := a.register(stream.Context(), topic{caller, request.GetClientName(), request.GetAppContext()})
	var following sync.WaitGroup
	defer following.Wait()
	defer end()
	// The queue holds an app in a cluster once, even if that changes often while the client reads slowly.
	changed := workqueue.NewTyped[appcontext.AppInCluster]()
	defer context.AfterFunc(ctx, changed.ShutDown)()
	following.Go(func() { a.follow(ctx, request.GetAppContext(), changed.Add) })
	for {
		p, shutdown := changed.Get()
		if shutdown || ctx.Err() != nil {
			return streamStatus(ctx)
		}
		changed.Done(p)
		// The caller may have lost the right, or the token may have expired.
		if _, err := a.server.authorize(ctx, verbWatch, rpc.ReadyNotify_Alert_FullMethodName); err != nil {
			return err
		}
		if err := stream.Send(&rpc.Notification{AppContext: p.ContextID, App: p.App, Cluster: p.Cluster}); err != nil {
			return err
		}
	}
}

// checkTopic rejects an invalid topic.
func checkTopic(t *rpc.Topic) error {
	id, client := t.GetAppContext(), t.GetClientName()
	if id == "" || len(id) > maxName || strings.Contains(id, "/") {
		return status.Errorf(codes.InvalidArgument, "appContext %.300q must be the id of a context", id)
	}
	if len(client) > maxName {
		return status.Errorf(codes.InvalidArgument, "clientName has %d bytes, and may have %d", len(client), maxName)
	}
	return nil
}

// register replaces the stream of a topic. It returns the context of the new stream, and the function that ends it.
func (a *alerts) register(ctx context.Context, t topic) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	added := &alertStream{cancel: cancel}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopping {
		cancel(errStopping)
	}
	if before, ok := a.streams[t]; ok {
		before.cancel(errReplaced)
	}
	a.streams[t] = added
	return ctx, func() {
		cancel(nil)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.streams[t] == added {
			delete(a.streams, t)
		}
	}
}

// streamStatus returns the status of a stream whose context has ended.
func streamStatus(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errUnsubscribed):
		return nil
	case errors.Is(cause, errReplaced):
		return status.Error(codes.Aborted, cause.Error())
	case errors.Is(cause, errStopping):
		return status.Error(codes.Unavailable, cause.Error())
	default:
		return status.FromContextError(ctx.Err()).Err()
	}
}

// follow calls changed for each app in a cluster that has a bundle in a context, and after each write of a bundle, until ctx ends.
func (a *alerts) follow(ctx context.Context, id string, changed func(appcontext.AppInCluster)) {
	last := int64(0)
	for ctx.Err() == nil {
		err := a.server.options.Store.WatchBundles(ctx, id, last, func(p appcontext.AppInCluster, revision int64) {
			last = max(last, revision)
			changed(p)
		})
		if ctx.Err() == nil {
			a.server.options.Logger.V(1).Info("Cannot follow the bundles of a context; retrying", "context", id, "cause", err.Error())
		}
		select {
		case <-ctx.Done():
		case <-time.After(etcdRetry):
		}
	}
}

// Unsubscribe implements rpc.ReadyNotifyServer.
func (a *alerts) Unsubscribe(ctx context.Context, request *rpc.Topic) (*rpc.UnsubscribeResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if stream, ok := a.streams[topic{callerOf(ctx), request.GetClientName(), request.GetAppContext()}]; ok {
		stream.cancel(errUnsubscribed)
	}
	return &rpc.UnsubscribeResponse{}, nil
}

// stop ends all streams, and lets later ones end immediately.
func (a *alerts) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopping = true
	for _, stream := range a.streams {
		stream.cancel(errStopping)
	}
}
