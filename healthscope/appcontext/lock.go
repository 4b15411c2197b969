package appcontext

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// Lock is held by one program at a time. Writes that have it as a condition fail once it is lost.
type Lock struct {
	// Abandoned is true when the previous holder has not released the lock: its requests may still be in flight.
	Abandoned bool
	// Revision is the revision of etcd at which the lock was taken.
	Revision int64

	session *concurrency.Session
	mutex   *concurrency.Mutex
	// holderKey is the key that exists from when the lock is taken until it is released.
	holderKey string
	lost      chan struct{}
}

// lockTTLSeconds is for how many seconds a lock outlives a program that was killed.
const lockTTLSeconds = 10

// Lock waits for a lock and returns it. The lock is lost when the program does not renew it for lockTTLSeconds.
func (s *Store) Lock(ctx context.Context, name string) (*Lock, error) {
	operation := fmt.Sprintf("cannot take lock %q", name)
	client, err := s.connect(ctx)
	if err != nil {
		return nil, wrap(operation, translate(ctx, err))
	}
	callCtx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	grant, err := client.Grant(callCtx, lockTTLSeconds)
	if err != nil {
		return nil, wrap(operation, translate(ctx, err))
	}
	session, err := concurrency.NewSession(client, concurrency.WithLease(grant.ID), concurrency.WithTTL(lockTTLSeconds))
	if err != nil {
		return nil, wrap(operation, translate(ctx, err))
	}
	lock := &Lock{
		session: session, mutex: concurrency.NewMutex(session, ownPrefix+"lock/"+name), holderKey: ownPrefix + "lock-holder/" + name, lost: make(chan struct{}),
	}
	if err = lock.acquire(ctx); err == nil {
		err = lock.recordHolder(ctx, s)
	}
	if err != nil {
		s.abandonSession(ctx, session)
		return nil, wrap(operation, translate(ctx, err))
	}
	return lock, nil
}

// acquire waits for the lock until ctx ends. The mutex alone would then wait until etcd answers, to leave the queue.
func (l *Lock) acquire(ctx context.Context) error {
	taken := make(chan error, 1)
	go func() { taken <- l.mutex.Lock(ctx) }()
	select {
	case err := <-taken:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// abandonSession ends a session, also when ctx has ended. It waits for etcd no longer than any other call does: the lease expires anyway.
func (s *Store) abandonSession(ctx context.Context, session *concurrency.Session) {
	session.Orphan()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.Timeout)
	defer cancel()
	_, _ = session.Client().Revoke(ctx, session.Lease())
}

// recordHolder records that the lock is held, and finds out whether the previous holder has released it.
func (l *Lock) recordHolder(ctx context.Context, s *Store) error {
	callCtx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	result, err := l.session.Client().Txn(callCtx).If(l.mutex.IsOwner()).
		Then(clientv3.OpGet(l.holderKey, clientv3.WithCountOnly()), clientv3.OpPut(l.holderKey, l.mutex.Key())).Commit()
	switch {
	case err != nil:
		return err
	case !result.Succeeded:
		return keyError(ErrConflict, l.mutex.Key())
	}
	l.Revision = result.Header.Revision
	l.Abandoned = result.Responses[0].GetResponseRange().Count > 0
	go l.watchKey(s, result.Header.Revision) //nolint:contextcheck // It ends with the session.
	return nil
}

// watchKey closes lost when the key of the lock is deleted or the session ends. The session alone would notice only at its
// next renewal that etcd has ended it.
func (l *Lock) watchKey(s *Store, revision int64) {
	defer close(l.lost)
	ctx, cancel := context.WithCancel(l.session.Ctx())
	defer cancel()
	deleted := false
	_ = s.watch(ctx, l.mutex.Key(), func(r clientv3.WatchResponse) { // Without the watch, the end of the session shows later.
		if len(r.Events) > 0 {
			deleted = true
			cancel()
		}
	}, clientv3.WithRev(revision+1), clientv3.WithFilterPut())
	if !deleted {
		<-l.session.Done()
	}
}

// Lost is closed when the lock is lost or released.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// Release lets another program take the lock immediately. The caller must have ended all work that needs the lock.
func (l *Lock) Release() error {
	ctx, cancel := context.WithTimeout(l.session.Ctx(), lockTTLSeconds*time.Second)
	defer cancel()
	_, err := l.session.Client().Txn(ctx).If(l.mutex.IsOwner()).Then(clientv3.OpDelete(l.holderKey)).Commit()
	return wrap("cannot release lock", errors.Join(err, l.session.Close()))
}
