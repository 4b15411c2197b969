package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// EtcdTap is a proxy between clients and one etcd. It counts what clients read, and delays messages to etcd on demand. It also
// forwards calls that it does not know. It is safe for concurrent use.
type EtcdTap struct {
	server *grpc.Server
	etcd   *grpc.ClientConn
	served sync.WaitGroup
	// URL is the address at which it listens.
	URL string
	// context is the prefix of the keys of the context whose reads are counted separately.
	context string

	mu      sync.Mutex // guards the fields below
	counted EtcdReads
	delay   time.Duration
}

// EtcdReads counts requests to etcd that read.
type EtcdReads struct {
	// Contents is the number of range requests for keys of the context that include values; Others is the number of all other
	// reads.
	Contents, Others int
	// Bytes is the size of the responses.
	Bytes int64
}

// StartEtcdTap starts a tap on the etcd at an endpoint. The context whose reads are counted separately has keys that begin with
// contextKey.
func StartEtcdTap(endpoint, contextKey string) (*EtcdTap, error) {
	etcd, err := grpc.NewClient(strings.TrimPrefix(endpoint, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(passing{}), grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	if err != nil {
		return nil, fmt.Errorf("cannot listen in on etcd: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // It is closed by stop.
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot listen in on etcd: %w", err), etcd.Close())
	}
	t := &EtcdTap{etcd: etcd, URL: "http://" + listener.Addr().String(), context: contextKey}
	t.server = grpc.NewServer(grpc.ForceServerCodec(passing{}), grpc.UnknownServiceHandler(t.pass), grpc.MaxRecvMsgSize(math.MaxInt32))
	t.served.Go(func() { _ = t.server.Serve(listener) })
	return t, nil
}

// Stop ends the tap and all connections through it.
func (t *EtcdTap) Stop() error {
	t.server.Stop()
	t.served.Wait()
	return t.etcd.Close()
}

// Take returns the counts since the last call.
func (t *EtcdTap) Take() EtcdReads {
	t.mu.Lock()
	defer t.mu.Unlock()
	counted := t.counted
	t.counted = EtcdReads{}
	return counted
}

// Delay sets how long each message waits from now on before it is sent to etcd.
func (t *EtcdTap) Delay(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delay = d
}

// hold waits for the delay. It returns false if ctx ends before.
func (t *EtcdTap) hold(ctx context.Context) bool {
	t.mu.Lock()
	delay := t.delay
	t.mu.Unlock()
	return delay == 0 || pause(ctx, delay)
}

// pass forwards a call until it ends.
func (t *EtcdTap) pass(_ any, client grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(client)
	header, _ := metadata.FromIncomingContext(client.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(client.Context(), header))
	defer cancel()
	server, err := t.etcd.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return err
	}
	go t.ask(method, client, server) // It ends with the client's stream, which ends when this function returns.
	for {
		var message []byte
		if err := server.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if reading(method) {
			t.mu.Lock()
			t.counted.Bytes += int64(len(message))
			t.mu.Unlock()
		}
		if err := client.SendMsg(&message); err != nil {
			return err
		}
	}
}

// ask forwards the messages of a client.
func (t *EtcdTap) ask(method string, client grpc.ServerStream, server grpc.ClientStream) {
	for {
		var message []byte
		if err := client.RecvMsg(&message); err != nil {
			_ = server.CloseSend()
			return
		}
		t.count(method, message)
		if !t.hold(client.Context()) {
			return
		}
		if server.SendMsg(&message) != nil {
			return
		}
	}
}

// The methods of etcd's API that count as reads. A transaction may read.
const (
	methodRange = "/etcdserverpb.KV/Range"
	methodTxn   = "/etcdserverpb.KV/Txn"
)

// reading reports whether a method reads.
func reading(method string) bool {
	return method == methodRange || method == methodTxn
}

// count counts a request if it reads.
func (t *EtcdTap) count(method string, message []byte) {
	if !reading(method) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var r etcdserverpb.RangeRequest
	if method == methodRange && proto.Unmarshal(message, &r) == nil && r.RangeEnd != nil && !r.KeysOnly && !r.CountOnly && strings.HasPrefix(string(r.Key), t.context) {
		t.counted.Contents++
		return
	}
	t.counted.Others++
}

// passing is a codec that leaves messages unchanged.
type passing struct{}

func (passing) Name() string { return "proto" }

func (passing) Marshal(message any) ([]byte, error) {
	if m, ok := message.(*[]byte); ok {
		return *m, nil
	}
	return nil, fmt.Errorf("cannot pass on %T", message)
}

func (passing) Unmarshal(data []byte, message any) error {
	m, ok := message.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot pass on %T", message)
	}
	*m = data
	return nil
}
