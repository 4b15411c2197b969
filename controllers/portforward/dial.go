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

// dialPort connects to a port of a pod through the API server, as kubectl port-forward does. Unlike kubectl, it opens no port on this machine,
// which other users could connect to. target is the URL of the pod's portforward subresource. The connection is closed when ctx ends.
func dialPort(ctx context.Context, config *rest.Config, target *url.URL, port int32) (net.Conn, error) {
	conn, err := dialWebSocket(ctx, config, target)
	if httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) {
		conn, err = dialSPDY(ctx, config, target) // API servers before Kubernetes 1.31 support only SPDY.
	}
	if err != nil {
		return nil, err
	}
	session, err := spdy.NewClientConnection(conn)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { // Closing the session first would wait for readers of its streams, which wait for the connection.
		_, _ = conn.Close(), session.Close()
	})
	open := func(kind string) (httpstream.Stream, error) {
		return session.CreateStream(http.Header{
			corev1.StreamType: {kind}, corev1.PortHeader: {strconv.Itoa(int(port))}, corev1.PortForwardRequestIDHeader: {"0"},
		})
	}
	errorStream, err := open(corev1.StreamTypeError)
	if err != nil {
		return nil, err
	}
	remoteError := make(chan string, 1)
	go func() { // The goroutine ends with the stream, and the stream ends with the connection.
		defer close(remoteError)
		text, _ := io.ReadAll(io.LimitReader(errorStream, maxErrorText)) // On an error, text holds what was read before it.
		remoteError <- string(text)
	}()
	data, err := open(corev1.StreamTypeData)
	if err != nil {
		return nil, withRemoteError(err, remoteError)
	}
	return &podConn{streamConn: streamConn{data}, session: session, remoteError: remoteError}, nil
}

// podConn is a connection to a port of a pod.
type podConn struct {
	streamConn
	session httpstream.Connection
	// remoteError receives the node's error message, empty if there is none, when the error stream has ended.
	remoteError <-chan string
}

func (c *podConn) Read(p []byte) (int, error) {
	n, err := c.streamConn.Read(p)
	if err != nil {
		err = withRemoteError(err, c.remoteError)
	}
	return n, err
}

// withRemoteError returns the node's error message as an error, or err if there is none. It waits until the error stream has ended.
func withRemoteError(err error, remoteError <-chan string) error {
	if text := <-remoteError; text != "" {
		return errors.New(text)
	}
	return err
}

// Close closes the session, not only the data stream, so that the node stops waiting for more data.
func (c *podConn) Close() error { return c.session.Close() }

// dialWebSocket returns a connection that tunnels SPDY through a WebSocket.
func dialWebSocket(ctx context.Context, config *rest.Config, target *url.URL) (net.Conn, error) {
	transport, connectionHolder, err := websocket.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	socket, err := websocket.Negotiate(transport, connectionHolder, request, forward.WebsocketsSPDYTunnelingPortForwardV1)
	if err != nil {
		return nil, err
	}
	return portforward.NewTunnelingConnection("healthscope", socket), nil
}

// dialSPDY returns a connection that was upgraded from HTTP to SPDY. Unlike client-go's dialer, it cancels the request when ctx ends.
func dialSPDY(ctx context.Context, config *rest.Config, target *url.URL) (net.Conn, error) {
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
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	conn, ok := response.Body.(io.ReadWriteCloser)
	if response.StatusCode == http.StatusSwitchingProtocols && ok {
		return streamConn{conn}, nil
	}
	defer func() { _ = response.Body.Close() }() // The body has been read.
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorText))
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		text = []byte(status.Message)
	}
	return nil, errors.Errorf("the API server answers %s: %s", response.Status, text)
}

// streamConn is a net.Conn over a stream. It supports no deadlines.
type streamConn struct{ io.ReadWriteCloser }

// noAddr is the address of an endpoint whose address is unknown.
type noAddr struct{}

func (noAddr) Network() string { return "spdy" }
func (noAddr) String() string  { return "the API server" }

func (streamConn) LocalAddr() net.Addr              { return noAddr{} }
func (streamConn) RemoteAddr() net.Addr             { return noAddr{} }
func (streamConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (streamConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (streamConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
