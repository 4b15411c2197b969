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

func TestAClosedStoreEndsTheWaitForTheCache(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	store := open(t, appcontext.Options{Endpoints: []string{"http://" + listener.Addr().String()}, Timeout: patience})
	cache := appcontext.NewCache(store, appcontext.CacheOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), patience/2)
	defer cancel()
	ran, answered := make(chan error, 1), make(chan error, 1)
	go func() { ran <- cache.Run(ctx) }()
	go func() {
		_, _, err := cache.Snapshot(ctx, "1")
		answered <- err
	}()
	connection, err := listener.Accept() // The cache reads, and gets no answer.
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	closeStore(t, store)
	if err := <-answered; !errors.Is(err, appcontext.ErrClosed) {
		t.Errorf("Snapshot: want ErrClosed, got: %v", err)
	}
	if err := <-ran; !errors.Is(err, appcontext.ErrClosed) {
		t.Errorf("Run: want ErrClosed, got: %v", err)
	}
}

func TestACacheThatWasIdleBeforeItLoadedAnswersWhoWaits(t *testing.T) {
	etcd := ownEtcd(t, controlplane.EtcdOptions{})
	if err := etcd.Kill(); err != nil {
		t.Fatal(err)
	}
	store := open(t, appcontext.Options{Endpoints: []string{etcd.Endpoint()}, Timeout: patience})
	const idle = 2 * time.Second
	cache := runCache(t, store, appcontext.CacheOptions{Idle: idle})
	begin, answered := time.Now(), make(chan error, 1)
	go func() {
		_, _, err := cache.Snapshot(t.Context(), "4711")
		answered <- err
	}()
	eventually(t, "the cache is not idle", func(context.Context) error {
		if age := time.Since(begin); age < 2*idle {
			return errors.New(age.String())
		}
		return nil
	})
	if err := etcd.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; !errors.Is(err, appcontext.ErrNotFound) {
		t.Errorf("want ErrNotFound once etcd answers, got: %v", err)
	}
}
