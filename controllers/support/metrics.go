package support

import (
	"context"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/portforward"
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

// metricsByPortForward reads metrics with the token.
func (g *gatherer) metricsByPortForward(ctx context.Context, pod *corev1.Pod, port int32) {
	transport := portforward.Transport{Config: g.options.Config, Pod: client.ObjectKeyFromObject(pod), Port: port}
	if err := transport.Verified(); err != nil {
		g.keep(metricsFile(pod), nil, errors.Errorf("the token is not sent, because %w", err))
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, metricsTimeout, errors.Errorf("not done after %s", metricsTimeout))
	defer cancel()
	answer, err := g.askPod(ctx, transport)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		<-ctx.Done() // The deadlines of connections are those of the context, and pass a moment before it knows.
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	g.keep(metricsFile(pod), answer, errors.Wrap(err, "cannot read metrics through a port-forward"))
}

func metricsFile(pod *corev1.Pod) string { return "metrics/" + pod.Name + ".txt" }

// askPod returns what a pod answers to the token at /metrics, if that is 200.
func (g *gatherer) askPod(ctx context.Context, transport portforward.Transport) (io.ReadCloser, error) {
	asking := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // The token is for the pod.
	}
	at := url.URL{Scheme: "https", Host: net.JoinHostPort(transport.Pod.Name, strconv.Itoa(int(transport.Port))), Path: "/metrics"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+g.options.MetricsToken)
	answer, err := asking.Do(request)
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
