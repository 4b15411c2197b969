package appcontext

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// Store is an etcd with contexts. It holds one client, which everything made from it shares. It is safe for concurrent use.
type Store struct {
	options Options
	// config is that of the client. Its Context ends when the store is closed.
	config clientv3.Config
	cancel context.CancelFunc
	// client holds the client, nil before the first call. Who creates it takes it out meanwhile: with a user, that waits for etcd to
	// answer.
	client chan *clientv3.Client
}

// Open returns a store. It does not connect to etcd yet: each call reports that etcd is unreachable or denies access.
func Open(o Options) (*Store, error) {
	o.setDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("cannot open AppContext store: %w", err)
	}
	tls, err := o.tls()
	if err != nil {
		return nil, fmt.Errorf("cannot open AppContext store: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // It ends with Close, and not with the caller.
	s := &Store{options: o, cancel: cancel, client: make(chan *clientv3.Client, 1)}
	s.client <- nil
	s.config = clientv3.Config{
		Context: ctx, Endpoints: o.Endpoints, TLS: tls, Username: o.Username, Password: o.Password,
		// gRPC closes a connection that delivers nothing after 15 seconds, both together.
		DialTimeout: o.Timeout, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
		// transaction.check returns the better message, so the client's own limit must be higher.
		MaxCallSendMsgSize: 2 * o.MaxRequestBytes,
		Logger:             zap.NewNop(), // Callers get errors.
	}
	if o.ServerName != "" { // gRPC does not look at the one in a tls.Config.
		s.config.DialOptions = []grpc.DialOption{grpc.WithAuthority(o.ServerName)}
	}
	return s, nil
}

// Close closes the connection. Calls fail with ErrClosed from now on, and watches end.
func (s *Store) Close() error {
	s.cancel()
	client := <-s.client
	s.client <- nil
	if client == nil {
		return nil
	}
	if err := client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("cannot close AppContext store: %w", err)
	}
	return nil
}

func (s *Store) isClosed() bool { return s.config.Context.Err() != nil }

// connect returns the client. It creates the client if there is none yet.
func (s *Store) connect(ctx context.Context) (*clientv3.Client, error) {
	var client *clientv3.Client
	select {
	case client = <-s.client:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { s.client <- client }()
	var err error
	switch {
	case s.isClosed():
		return nil, ErrClosed
	case client == nil:
		client, err = clientv3.New(s.config)
	}
	return client, err
}

// call calls f with the client and a deadline, and translates its errors.
func (s *Store) call(ctx context.Context, f func(context.Context, *clientv3.Client) error) error {
	callCtx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	client, err := s.connect(callCtx)
	if err == nil {
		err = f(callCtx, client)
	}
	if err != nil && s.isClosed() {
		return ErrClosed
	}
	return translate(ctx, err)
}

// read returns a range of keys in the order of the keys, and the revision of etcd.
func (s *Store) read(ctx context.Context, key string, options ...clientv3.OpOption) (values []*mvccpb.KeyValue, revision int64, err error) {
	err = s.call(ctx, func(ctx context.Context, client *clientv3.Client) error {
		response, err := client.Get(ctx, key, options...)
		if err == nil {
			values, revision = response.Kvs, response.Header.Revision
		}
		return err
	})
	return values, revision, err
}

// get returns a value, or ErrNotFound.
func (s *Store) get(ctx context.Context, key string) (*mvccpb.KeyValue, error) {
	values, _, err := s.read(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return nil, keyError(ErrNotFound, key)
	}
	return values[0], nil
}

// readEach returns the results of reads at one revision, in their order. There may be any number of reads.
func (s *Store) readEach(ctx context.Context, reads []clientv3.Op) ([]*clientv3.GetResponse, error) {
	var results []*clientv3.GetResponse
	for len(reads) > 0 {
		n := min(len(reads), maxOperations)
		err := s.call(ctx, func(ctx context.Context, client *clientv3.Client) error {
			response, err := client.Txn(ctx).Then(reads[:n]...).Commit()
			if err != nil {
				return err
			}
			for _, r := range response.Responses {
				results = append(results, (*clientv3.GetResponse)(r.GetResponseRange()))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		reads = reads[n:]
	}
	return results, nil
}
