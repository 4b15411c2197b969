package commands

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
func (f *statusFlags) connectToController() (*url.URL, http.RoundTripper, error) {
	config, err := loadRESTConfig(f.kubeconfig, f.context, "status")
	if err != nil {
		return nil, nil, errors.Wrap(err, "cannot find out how to reach the controller")
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	server := &url.URL{Scheme: "https", Host: "healthscope-controller." + f.controllerNamespace}
	pod := podTransport{config, clientset, f.controllerNamespace}
	if config.BearerToken != "" || config.BearerTokenFile != "" || config.ExecProvider != nil || config.AuthProvider != nil {
		// The pod does not accept the kubeconfig's certificates and passwords.
		transport, err := rest.HTTPWrappersForConfig(config, pod)
		return server, transport, err
	}
	return server, tokenTransport{next: pod, token: func(ctx context.Context) (string, error) {
		return requestToken(ctx, clientset, f.controllerNamespace, f.serviceAccount)
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
