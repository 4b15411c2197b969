package appcontext_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

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

func TestCacheIdleBeforeLoadAnswersWaiters(t *testing.T) {
	t.Parallel()
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	noError(t, etcd.Kill())
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Timeout: testTimeout})
	clock := clocktesting.NewFakeClock(time.Now())
	cache := runCache(t, store, appcontext.CacheOptions{Idle: time.Hour, Clock: clock})
	answered := make(chan error, 1)
	go func() {
		_, _, err := cache.Snapshot(t.Context(), "4711")
		answered <- err
	}()
	eventually(t, "the cache does not look at the time", func(context.Context) error {
		if !clock.HasWaiters() {
			return errors.New("not yet")
		}
		return nil
	})
	clock.Step(2 * time.Hour)
	eventually(t, "the cache is not idle", func(context.Context) error {
		if clock.Waiters() < 2 { // It watches again, because the caller still waits.
			return errors.New("not yet")
		}
		return nil
	})
	noError(t, etcd.Start(t.Context()))
	if err := <-answered; !errors.Is(err, appcontext.ErrNotFound) {
		t.Errorf("want ErrNotFound once etcd answers, got: %v", err)
	}
}
