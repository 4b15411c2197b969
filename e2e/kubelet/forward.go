package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// The timeouts of a port-forward: without data, and until both of its streams are open.
const (
	forwardIdle = time.Minute
	forwardOpen = 10 * time.Second
)

// PodPorts returns the address to which a port of a pod is forwarded.
type PodPorts func(port int32) (address string, err error)

// PortForward implements portforward.PortForwarder.
func (to PodPorts) PortForward(ctx context.Context, pod, _ string, port int32, stream io.ReadWriteCloser) error {
	address, err := to(port)
	if err != nil {
		return fmt.Errorf("cannot forward port %d of pod %q: %w", port, pod, err)
	}
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(connection, stream) // An error means that the caller has disconnected.
		_ = connection.Close()
	}()
	_, _ = io.Copy(stream, connection) // Returning the error would end the whole port-forward, not only this connection.
	return nil
}

// ServePortForward answers a request of an API server to forward ports of a pod, as a kubelet does.
func ServePortForward(w http.ResponseWriter, r *http.Request, pod string, to PodPorts) {
	portforward.ServePortForward(w, r, to, pod, "", nil, forwardIdle, forwardOpen, portforward.SupportedProtocols)
}

// ForwardPorts runs a server that acts as the kubelet of all nodes for "kubectl port-forward". It forwards the ports of the
// Deployment's pods to the process. The caller must call stop.
func (p *Pod) ForwardPorts(ctx context.Context) (stop func(), err error) {
	ports, pods := maps.Clone(p.ports), "/portForward/"+p.options.Namespace+"/"+p.options.Deployment+"-"
	to := func(port int32) (string, error) {
		here, listens := ports[int(port)]
		if !listens {
			return "", errors.New("no program listens on it")
		}
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(here)), nil
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, pods) {
			http.NotFound(w, r)
			return
		}
		ServePortForward(w, r, strings.TrimPrefix(r.URL.Path, "/portForward/"), to)
	}))
	if err := p.beKubelet(ctx, server.Listener.Addr()); err != nil {
		server.Close()
		return nil, fmt.Errorf("cannot forward ports to pods of Deployment %q: %w", p.options.Deployment, err)
	}
	return server.Close, nil
}

// beKubelet sets the address of the kubelet in the status of all nodes.
func (p *Pod) beKubelet(ctx context.Context, at net.Addr) error {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	nodes, err := p.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"status": {"addresses": [{"type": "InternalIP", "address": %q}], "daemonEndpoints": {"kubeletEndpoint": {"Port": %s}}}}`, host, port)
	for i := range nodes.Items {
		if _, err := p.api.CoreV1().Nodes().Patch(ctx, nodes.Items[i].Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return nil
}
