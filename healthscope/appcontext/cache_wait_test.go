package appcontext_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/healthscope/healthscope/e2e/controlplane"
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

func TestCacheAnswersWaitersWhenEtcdStarts(t *testing.T) {
	t.Parallel()
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	noError(t, etcd.Kill())
	endpoints := []string{etcd.Endpoint()}
	// The cache cannot be loaded while this call ends.
	short := runCache(t, open(t, appcontext.Options{Endpoints: endpoints, Timeout: 100 * time.Millisecond}), appcontext.CacheOptions{})
	if _, _, err := short.Snapshot(t.Context(), "4711"); !errors.Is(err, appcontext.ErrUnavailable) {
		t.Errorf("want ErrUnavailable while etcd is away, got: %v", err)
	}
	patient := runCache(t, open(t, appcontext.Options{Endpoints: endpoints, Timeout: testTimeout}), appcontext.CacheOptions{})
	answered := make(chan error, 1)
	go func() {
		_, _, err := patient.Snapshot(t.Context(), "4711")
		answered <- err
	}()
	noError(t, etcd.Start(t.Context()))
	if err := <-answered; !errors.Is(err, appcontext.ErrNotFound) {
		t.Errorf("want ErrNotFound once etcd answers, got: %v", err)
	}
}
