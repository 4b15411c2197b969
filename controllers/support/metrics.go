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
	// metricsPort is the name of the container port that serves metrics.
	metricsPort = "metrics"
	// metricsTimeout is the time limit for reading the metrics of a pod through a port-forward.
	metricsTimeout = 30 * time.Second
)

// addMetrics adds the metrics of a pod, if it has a port named metrics.
func (g *gatherer) addMetrics(ctx context.Context, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeoutCause(ctx, metricsTimeout, errors.Errorf("not done after %s", metricsTimeout))
	defer cancel()
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name != metricsPort {
				continue
			}
			get := g.metricsByPortForward
			if g.options.MetricsToken == "" {
				get = g.metricsByProxy
			}
			body, err := get(ctx, pod, port.ContainerPort)
			g.addResponse("metrics/"+pod.Name+".txt", body, err)
		}
	}
}

// metricsByProxy reads metrics through the API server's proxy subresource. The API server passes no token on, so a pod that requires one rejects
// the request.
func (g *gatherer) metricsByProxy(ctx context.Context, pod *corev1.Pod, port int32) (io.ReadCloser, error) {
	body, err := g.client.CoreV1().Pods(pod.Namespace).ProxyGet("https", pod.Name, strconv.Itoa(int(port)), "metrics", nil).Stream(ctx)
	if err != nil {
		return nil, errors.Errorf("%w; --metrics-token-file reads them with a token, such as one of kubectl create token", err)
	}
	return body, nil
}

// metricsByPortForward reads metrics through a port-forward, with the token.
func (g *gatherer) metricsByPortForward(ctx context.Context, pod *corev1.Pod, port int32) (io.ReadCloser, error) {
	transport := portforward.Transport{Config: g.options.Config, Pod: client.ObjectKeyFromObject(pod), Port: port}
	if err := transport.CheckVerified(); err != nil {
		return nil, errors.Errorf("the token is not sent, because %w", err)
	}
	body, err := g.getMetrics(ctx, transport)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		<-ctx.Done() // The connections have the deadline of ctx, and may report it a moment before ctx does.
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return body, errors.Wrap(err, "cannot read metrics through a port-forward")
}

// getMetrics gets /metrics from a pod with the token. It returns an error unless the status is 200.
func (g *gatherer) getMetrics(ctx context.Context, transport portforward.Transport) (io.ReadCloser, error) {
	httpClient := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // A redirect could send the token elsewhere.
	}
	target := url.URL{Scheme: "https", Host: net.JoinHostPort(transport.Pod.Name, strconv.Itoa(int(transport.Port))), Path: "/metrics"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+g.options.MetricsToken)
	response, err := httpClient.Do(request)
	if err != nil {
		if failed := (*url.Error)(nil); errors.As(err, &failed) {
			err = failed.Err // The URL is left out, because its host does not exist.
		}
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }() // The body has been read.
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxProblemSize))
	return nil, errors.Errorf("the pod answers %s: %s", response.Status, strings.TrimSpace(string(text)))
}
