package appcontext_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

func TestClosedStoreEndsWaitForCache(t *testing.T) {
	t.Parallel()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	noError(t, err)
	defer func() { _ = listener.Close() }()
	store := open(t, appcontext.Options{Endpoints: []string{"http://" + listener.Addr().String()}, Timeout: testTimeout})
	cache := appcontext.NewCache(store, appcontext.CacheOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout/2)
	defer cancel()
	ran, answered := make(chan error, 1), make(chan error, 1)
	go func() { ran <- cache.Run(ctx) }()
	go func() {
		_, _, err := cache.Snapshot(ctx, "1")
		answered <- err
	}()
	connection, err := listener.Accept() // The cache sends a read, and gets no response.
	noError(t, err)
	defer func() { _ = connection.Close() }()
	closeStore(t, store)
	if err := <-answered; !errors.Is(err, appcontext.ErrClosed) {
		t.Errorf("Snapshot: want ErrClosed, got: %v", err)
	}
	if err := <-ran; !errors.Is(err, appcontext.ErrClosed) {
		t.Errorf("Run: want ErrClosed, got: %v", err)
	}
}
