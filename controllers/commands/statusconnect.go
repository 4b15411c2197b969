package commands

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/portforward"
)

// connectToServer returns the URL of the server that the flags name, and a transport that sends the token that they name.
func (s *statusCommand) connectToServer() (*url.URL, http.RoundTripper, error) {
	server, err := url.Parse(s.server)
	if err != nil || server.Host == "" || server.Scheme != "http" && server.Scheme != "https" {
		return nil, nil, errors.New("--server must be an http or https URL, such as https://healthscope.example.com")
	}
	if server.User != nil || server.RawQuery != "" || server.Fragment != "" {
		return nil, nil, errors.New("--server must be scheme, host, port and path only: a token comes by --token-file")
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: s.timeout,
		DialContext: (&net.Dialer{Timeout: s.timeout}).DialContext, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if s.caFile != "" {
		data, err := os.ReadFile(s.caFile)
		if err != nil {
			return nil, nil, errors.Wrap(err, "cannot read --ca-file")
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(data) {
			return nil, nil, errors.Errorf("cannot use --ca-file %q: it holds no certificate", s.caFile)
		}
	}
	authenticated, err := s.authenticate(transport)
	if err != nil {
		return nil, nil, err
	}
	if authenticated != http.RoundTripper(transport) && server.Scheme == "http" && !isLoopback(server.Hostname()) {
		return nil, nil, errors.Errorf("--server is %q; it must be https, or on this machine: a token must not go over the network in the clear", s.server)
	}
	return server, authenticated, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// authenticate returns a transport that sends the token that the flags name. Without such flags it returns transport itself.
func (s *statusCommand) authenticate(transport http.RoundTripper) (http.RoundTripper, error) {
	fromKubeconfig := s.kubeconfig != "" || s.context != ""
	switch {
	case s.tokenFile != "" && fromKubeconfig:
		return nil, errors.New("--token-file and --kubeconfig or --context are given; one of them must say which token to use")
	case s.tokenFile != "":
		fromFile := tokenTransport{next: transport, token: func(context.Context) (string, error) { return readToken("token-file", s.tokenFile) }}
		_, err := readToken("token-file", s.tokenFile)
		return fromFile, err
	case !fromKubeconfig:
		return transport, nil
	}
	config, err := loadRESTConfig(s.kubeconfig, s.context, "status")
	if err != nil {
		return nil, errors.Wrap(err, "cannot find a token")
	}
	if config.BearerToken == "" && config.BearerTokenFile == "" && config.ExecProvider == nil {
		return nil, errors.New("cannot find a token: the context of the kubeconfig file has another way to authenticate; give a token with --token-file, such as one of kubectl create token")
	}
	authenticated, err := rest.HTTPWrappersForConfig(config, transport)
	return authenticated, errors.Wrap(err, "cannot use the token of the kubeconfig file")
}

// tokenTransport sends a bearer token, which it gets for each request, because the token may be renewed.
type tokenTransport struct {
	token func(ctx context.Context) (string, error)
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := t.token(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return t.next.RoundTrip(r)
}

// readToken returns the bearer token in the file that a flag names.
func readToken(flag, path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", errors.Wrap(err, "cannot read --"+flag)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.Errorf("cannot use --%s %q: it must hold one token and nothing else", flag, path)
	}
	return token, nil
}

const (
	// controllerSelector selects the pods of the controller.
	controllerSelector = "app.kubernetes.io/name=healthscope,app.kubernetes.io/component=controller"
	// apiPortName is the name of the container port of the status REST API, and apiPort the port of a pod without such a name.
	apiPortName, apiPort = "api", 8082
	// defaultServiceAccount is the ServiceAccount whose tokens callers without their own token use for the status REST API.
	defaultServiceAccount = "healthscope-status-reader"
	// serviceAccountTokenLifetime is the lifetime of a token of the ServiceAccount: the minimum that Kubernetes allows.
	serviceAccountTokenLifetime = 10 * time.Minute
)

// connectToController returns a URL for the controller's status REST API, and a transport that uses a port-forward.
func (s *statusCommand) connectToController() (*url.URL, http.RoundTripper, error) {
	config, err := loadRESTConfig(s.kubeconfig, s.context, "status")
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot find out how to reach the controller")
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	server := &url.URL{Scheme: "https", Host: "healthscope-controller." + s.controllerNamespace}
	pod := podTransport{config, clientset, s.controllerNamespace}
	if config.BearerToken != "" || config.BearerTokenFile != "" || config.ExecProvider != nil || config.AuthProvider != nil {
		// The pod does not accept the kubeconfig's certificates and passwords.
		transport, err := rest.HTTPWrappersForConfig(config, pod)
		return server, transport, err
	}
	return server, tokenTransport{next: pod, token: func(ctx context.Context) (string, error) {
		return requestToken(ctx, clientset, s.controllerNamespace, s.serviceAccount)
	}}, nil
}

// podTransport sends requests to a ready pod of the controller.
type podTransport struct {
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
}

// RoundTrip implements http.RoundTripper. It looks up a pod for each request, because pods come and go.
func (c podTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	pods, err := c.client.CoreV1().Pods(c.namespace).List(r.Context(), metav1.ListOptions{LabelSelector: controllerSelector})
	if err != nil {
		return nil, errors.Wrapf(err, "cannot find the controller in namespace %q", c.namespace)
	}
	at := slices.IndexFunc(pods.Items, isPodReady)
	if at < 0 {
		return nil, errors.Errorf("no pod of the controller is ready in namespace %q; --controller-namespace looks in another", c.namespace)
	}
	pod := &pods.Items[at]
	transport := portforward.Transport{Config: c.config, Pod: client.ObjectKeyFromObject(pod), Port: apiPortOf(pod)}
	if err := transport.CheckVerified(); err != nil {
		return nil, errors.Wrap(err, "a token is not sent")
	}
	r = r.Clone(r.Context())
	r.URL.Host = net.JoinHostPort("localhost", strconv.Itoa(int(transport.Port))) // A server on a loopback address rejects other hosts.
	r.Host = ""
	response, err := transport.RoundTrip(r)
	return response, errors.Wrapf(err, "cannot ask pod %q", transport.Pod)
}

func isPodReady(pod corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// apiPortOf returns the port on which a pod serves the status REST API.
func apiPortOf(pod *corev1.Pod) int32 {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == apiPortName {
				return p.ContainerPort
			}
		}
	}
	return apiPort
}

// requestToken requests a token of a ServiceAccount with the rights of the caller.
func requestToken(ctx context.Context, client kubernetes.Interface, namespace, name string) (string, error) {
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(serviceAccountTokenLifetime.Seconds()))},
	}, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return "", errors.Wrapf(err, "the kubeconfig has no token for the controller; with --service-account, name a ServiceAccount of namespace %q that may read the status REST API", namespace)
	}
	if err != nil {
		return "", errors.Wrapf(err, "the kubeconfig has no token for the controller, and cannot get one of ServiceAccount %q", namespace+"/"+name)
	}
	return token.Status.Token, nil
}
