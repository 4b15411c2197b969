package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// retryPause is the time before a request is sent again that the API server could not answer.
const retryPause = 100 * time.Millisecond

// stubborn is a client that sends a request again until the API server, which may be away for a while, has answered it. What
// then turns out to have been done is no error. Its gate is closed while the API server is known to be away.
type stubborn struct {
	client.Client

	gate *gate
}

// Create implements client.Client.
func (s stubborn) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	uncertain, err := s.gate.insist(ctx, func(ctx context.Context) error { return s.Client.Create(ctx, o, opts...) })
	if uncertain && apierrors.IsAlreadyExists(err) {
		_, err = s.gate.insist(ctx, func(ctx context.Context) error { return s.Get(ctx, client.ObjectKeyFromObject(o), o) })
	}
	return err
}

// Delete implements client.Client.
func (s stubborn) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	uncertain, err := s.gate.insist(ctx, func(ctx context.Context) error { return s.Client.Delete(ctx, o, opts...) })
	if uncertain && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Patch implements client.Client. The patch must do the same the second time.
func (s stubborn) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	_, err := s.gate.insist(ctx, func(ctx context.Context) error { return s.Client.Patch(ctx, o, patch, opts...) })
	return err
}

// Status implements client.Client.
func (s stubborn) Status() client.SubResourceWriter {
	return stubbornStatus{s.Client.Status(), s.gate}
}

// stubbornStatus is the same for the status of objects that nobody else writes.
type stubbornStatus struct {
	client.SubResourceWriter

	gate *gate
}

// Update implements client.SubResourceWriter.
func (s stubbornStatus) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	uncertain, err := s.gate.insist(ctx, func(ctx context.Context) error { return s.SubResourceWriter.Update(ctx, o, opts...) })
	if uncertain && apierrors.IsConflict(err) {
		return nil // The request that nobody has answered was done: there is no other writer.
	}
	return err
}

// Patch implements client.SubResourceWriter. The patch must do the same the second time.
func (s stubbornStatus) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	_, err := s.gate.insist(ctx, func(ctx context.Context) error { return s.SubResourceWriter.Patch(ctx, o, patch, opts...) })
	return err
}

// gate lets requests to the API server through while it is there.
type gate struct {
	mu sync.Mutex // guards open
	// open is closed while the API server is there.
	open chan struct{}
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

// shut makes requests wait until the function that it returns is called.
func (g *gate) shut() (reopen func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		close(g.open)
	})
}

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for the API server: %w", context.Cause(ctx))
	}
}

// insist sends a request until it is answered. uncertain says that it may have been done before, without an answer.
func (g *gate) insist(ctx context.Context, send func(context.Context) error) (uncertain bool, err error) {
	for {
		if err := g.pass(ctx); err != nil {
			return uncertain, err
		}
		if err = send(ctx); err == nil || answered(err) || ctx.Err() != nil {
			return uncertain, err
		}
		uncertain = true
		if waited := pause(ctx, retryPause); waited != nil {
			return uncertain, errors.Join(err, waited)
		}
	}
}

// answered says whether an error is an answer of the API server about the request, and not about itself.
func answered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	return !apierrors.IsServerTimeout(err) && !apierrors.IsTimeout(err) && !apierrors.IsServiceUnavailable(err) &&
		!apierrors.IsTooManyRequests(err) && !apierrors.IsInternalError(err)
}
