package support

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

const (
	// metricsPort is the name of the port of a pod that serves metrics.
	metricsPort = "metrics"
	// metricsTimeout is how long it may take to read the metrics of a pod through a port-forward.
	metricsTimeout = 30 * time.Second
)

// metrics adds the metrics of a pod that has a port for them.
func (g *gatherer) metrics(ctx context.Context, pod *corev1.Pod) {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			switch {
			case port.Name != metricsPort:
			case g.options.MetricsToken == "":
				g.metricsByProxy(ctx, pod, port.ContainerPort)
			default:
				g.metricsByPortForward(ctx, pod, port.ContainerPort)
			}
		}
	}
}

// metricsByProxy reads metrics as the API server does for its callers. It passes no token on, so that a pod that wants one refuses.
func (g *gatherer) metricsByProxy(ctx context.Context, pod *corev1.Pod, port int32) {
	answer, err := g.client.CoreV1().Pods(pod.Namespace).ProxyGet("https", pod.Name, strconv.Itoa(int(port)), "metrics", nil).Stream(ctx)
	if err != nil {
		err = errors.Errorf("%w; --metrics-token-file reads them with a token, such as one of kubectl create token", err)
	}
	g.keep(metricsFile(pod), answer, err)
}

// metricsByPortForward reads metrics with the token, by https or, if the pod speaks nothing but http, by that: a listener for its own machine has no certificate.
func (g *gatherer) metricsByPortForward(ctx context.Context, pod *corev1.Pod, port int32) {
	if err := verified(g.options.Config); err != nil {
		g.keep(metricsFile(pod), nil, errors.Errorf("the token is not sent, because %w", err))
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, metricsTimeout, errors.Errorf("not done after %s", metricsTimeout))
	defer cancel()
	answer, err := g.askPod(ctx, "https", pod, port)
	if errors.Is(err, http.ErrSchemeMismatch) {
		answer, err = g.askPod(ctx, "http", pod, port)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		<-ctx.Done() // The deadlines of connections are those of the context, and pass a moment before it knows.
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	g.keep(metricsFile(pod), answer, errors.Wrap(err, "cannot read metrics through a port-forward"))
}

// verified returns why it cannot be known that the API server answers. The pod's own certificate proves nothing, so all depends on that.
func verified(config *rest.Config) error {
	transport, err := rest.TLSConfigFor(config)
	switch {
	case err != nil:
		return err
	case config.Insecure || transport != nil && transport.InsecureSkipVerify:
		return errors.New("the kubeconfig does not have the API server verified (insecure-skip-tls-verify)")
	case !strings.HasPrefix(config.Host, "https://"):
		return errors.New("the API server is not reached by https, and so not verified")
	}
	return nil
}

func metricsFile(pod *corev1.Pod) string { return "metrics/" + pod.Name + ".txt" }

// askPod returns what a pod answers to the token at /metrics, if that is 200.
func (g *gatherer) askPod(ctx context.Context, scheme string, pod *corev1.Pod, port int32) (io.ReadCloser, error) {
	way := g.client.CoreV1().RESTClient().Post().Resource(pods.Resource).Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	client := &http.Client{
		Transport: &http.Transport{
			// The transport's own context outlives the request; this one does not.
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return dialPort(ctx, g.options.Config, way, port)
			},
			// The pod makes its certificate itself. That the pod answers is known from the API server and its way to the node.
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // As it says.
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // The token is for the pod.
	}
	at := url.URL{Scheme: scheme, Host: net.JoinHostPort(pod.Name, strconv.Itoa(int(port))), Path: "/metrics"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+g.options.MetricsToken)
	answer, err := client.Do(request)
	if err != nil {
		if failed := (*url.Error)(nil); errors.As(err, &failed) {
			err = failed.Err // The URL says nothing: there is no such host.
		}
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer func() { _ = answer.Body.Close() }() // It has been read.
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
	return nil, errors.Errorf("the pod answers %s: %s", answer.Status, strings.TrimSpace(string(text)))
}
