package portforward

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	forward "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// dialPort connects to a port of a pod by way of the API server, as kubectl port-forward does, but with no port of this machine in between, which
// others could use. target is the URL of the pod's subresource portforward. The connection ends with ctx at the latest.
func dialPort(ctx context.Context, config *rest.Config, target *url.URL, port int32) (net.Conn, error) {
	upgraded, err := overWebSocket(ctx, config, target)
	if httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) {
		upgraded, err = overHTTP(ctx, config, target) // API servers before Kubernetes 1.31 know no other way.
	}
	if err != nil {
		return nil, err
	}
	session, err := spdy.NewClientConnection(upgraded)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { // Streams after their connection: they would wait for it, and it for their readers.
		_, _ = upgraded.Close(), session.Close()
	})
	open := func(kind string) (httpstream.Stream, error) {
		return session.CreateStream(http.Header{
			corev1.StreamType: {kind}, corev1.PortHeader: {strconv.Itoa(int(port))}, corev1.PortForwardRequestIDHeader: {"0"},
		})
	}
	problems, err := open(corev1.StreamTypeError)
	if err != nil {
		return nil, err
	}
	problem := make(chan string, 1)
	go func() { // It ends with the stream, and that with the connection.
		defer close(problem)
		text, _ := io.ReadAll(io.LimitReader(problems, maxProblem)) // Whatever came of it.
		problem <- string(text)
	}()
	data, err := open(corev1.StreamTypeData)
	if err != nil {
		return nil, cause(err, problem)
	}
	return &podConn{streamConn: streamConn{data}, session: session, problem: problem}, nil
}

// podConn is a connection to a port of a pod.
type podConn struct {
	streamConn
	session httpstream.Connection
	// problem has what the node says of a connection that it cannot make or keep, when the connection has ended.
	problem <-chan string
}

func (c *podConn) Read(p []byte) (int, error) {
	n, err := c.streamConn.Read(p)
	if err != nil {
		err = cause(err, c.problem)
	}
	return n, err
}

// cause returns what a node says of an error, or the error itself if it says nothing.
func cause(err error, problem <-chan string) error {
	if text := <-problem; text != "" {
		return errors.New(text)
	}
	return err
}

// Close tells the other end, which would wait for more of what this one sends.
func (c *podConn) Close() error { return c.session.Close() }

// overWebSocket returns a connection for SPDY inside of a WebSocket.
func overWebSocket(ctx context.Context, config *rest.Config, target *url.URL) (net.Conn, error) {
	transport, holder, err := websocket.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	socket, err := websocket.Negotiate(transport, holder, request, forward.WebsocketsSPDYTunnelingPortForwardV1)
	if err != nil {
		return nil, err
	}
	return portforward.NewTunnelingConnection("healthscope", socket), nil
}

// overHTTP returns a connection for SPDY that has been one for HTTP. Other than that of client-go, the request ends with ctx.
func overHTTP(ctx context.Context, config *rest.Config, target *url.URL) (net.Conn, error) {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrades.
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	request.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	request.Header.Set(httpstream.HeaderProtocolVersion, forward.PortForwardV1Name)
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	upgraded, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode == http.StatusSwitchingProtocols && ok {
		return streamConn{upgraded}, nil
	}
	defer func() { _ = answer.Body.Close() }() // It has been read.
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		text = []byte(status.Message)
	}
	return nil, errors.Errorf("the API server answers %s: %s", answer.Status, text)
}

// streamConn makes a connection of what is read and written otherwise. It has no deadlines, and ends when it is closed.
type streamConn struct{ io.ReadWriteCloser }

// noAddr is the address of an end that is not known by one.
type noAddr struct{}

func (noAddr) Network() string { return "spdy" }
func (noAddr) String() string  { return "the API server" }

func (streamConn) LocalAddr() net.Addr              { return noAddr{} }
func (streamConn) RemoteAddr() net.Addr             { return noAddr{} }
func (streamConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (streamConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (streamConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
